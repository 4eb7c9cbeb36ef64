/* SPDX-License-Identifier: Apache-2.0 */
/* device_ways.h - a worker's devices, and the maps of its tensors to those of others. */
#ifndef TENREC_CALL_DEVICE_WAYS_H
#define TENREC_CALL_DEVICE_WAYS_H

#include <pthread.h>
#include <stdatomic.h>
#include <tenrec/rpc.h>

#include "core/tensor/device_map.h"

/* Target devices of tensors at another worker. */
struct way {
    struct device_map request;
    struct device_map answer;
};

struct devices {
    struct device_row mine;

    pthread_rwlock_t lock; /* guards the fields below, which change when members join */
    struct tenrec_device *used;
    _Atomic size_t n_used;
    atomic_bool maps; /* a way below has, or had, a map */
    struct way *way;  /* by id */
    size_t n_ways;
};

#endif
