/* SPDX-License-Identifier: Apache-2.0 */
/* devices_send.h - target devices and streams of the tensors of a message. Acquires devices.lock.
 *
 * A worker without device maps pays nothing for a message: its `devices` is NULL, or the message is
 * not inspected. */
#ifndef TENREC_CALL_DEVICES_SEND_H
#define TENREC_CALL_DEVICES_SEND_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <tenrec/agent.h>
#include <tenrec/rpc.h>
#include <tenrec/tensor.h>

#include "core/tensor/device.h"

/* Sets the target devices of a request's tensors, and orders the tensors after this thread's queued
 * work. errors: EDEVICE, EUNSUPPORTED, the driver's */
tenrec_status devices_request(struct tenrec_worker *w, tenrec_peer to, const char *function,
                              struct tenrec_msg *msg, tenrec_error *err);

/* The same for an answer, whose tensors are ready on `s` (NULL: on their own streams). */
tenrec_status devices_answer(struct tenrec_worker *w, tenrec_peer to, struct streams *s,
                             struct tenrec_msg *msg, tenrec_error *err);

/* Returns true if the message, received or to be sent, has a tensor for a device. */
static inline bool devices_in(const struct tenrec_msg *msg)
{
    for (uint32_t i = 0; i < msg->n_tensors; i++)
        if (tenrec_msg_tensor(msg, i)->device.kind != TENREC_CPU)
            return true;
    return false;
}

/* Checks that a received tensor may be placed at `target`. errors: EDEVICE */
tenrec_status devices_check_target(struct tenrec_worker *w, struct tenrec_device target,
                                   tenrec_error *err);

/* The streams on which a call with this request runs. NULL if the worker uses no devices (or out of
 * memory: then the default streams). */
struct streams *devices_call_streams(struct tenrec_worker *w, const struct tenrec_msg *request);

/* ---- the state: of rpc/worker, which fills it ------------------------------- */

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

/* ---- recv_alloc.c: memory for received tensors; worker.lock guards the allocator ---- */

/* A chain_user function: uses the caller's buffer, else the user's allocator, else our own memory.
 */
tenrec_status recv_alloc_tensors(void *worker, tenrec_peer from, struct tenrec_msg *msg,
                                 tenrec_error *err);

/* Returns true if the tensor is contiguous and fills its storage. */
bool recv_alloc_is_plain(const struct tenrec_tensor *t);

#endif
