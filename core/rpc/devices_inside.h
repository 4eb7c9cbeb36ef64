/* SPDX-License-Identifier: Apache-2.0 */
/* devices_inside.h - what devices.c and devices_send.c share. */
#ifndef TENREC_RPC_DEVICES_INSIDE_H
#define TENREC_RPC_DEVICES_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "rpc/devices.h"

/* Where tensors go at one other worker. */
struct way {
    struct device_map request;
    struct device_map answer;
};

struct devices {
    struct device_row mine;

    /* Of this life: */
    pthread_rwlock_t lock; /* guards what follows, when members come */
    struct tenrec_device *used;
    _Atomic size_t n_used;
    atomic_bool maps; /* some way below says something, or did */
    struct way *way;  /* by id */
    size_t n_ways;
};

/* One that says nothing yet; NULL: no memory. */
struct devices *devices_make(void);

#endif
