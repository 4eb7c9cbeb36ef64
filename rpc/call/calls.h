/* SPDX-License-Identifier: Apache-2.0 */
/* calls.h - the state of a worker's calls in both directions, in one allocation with the worker;
 * and the devices of the tensors in their messages. */
#ifndef TENREC_CALL_CALLS_H
#define TENREC_CALL_CALLS_H

#include "core/chain/pending.h"
#include "core/tensor/device.h"
#include "rpc/call/function.h"
#include "rpc/call/serve.h"
#include "rpc/call/service.h"
#include "rpc/future/worker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <tenrec/agent.h>
#include <tenrec/tensor.h>

struct call_observer;
struct chain_port;
struct loop_timer;
struct transfer_ops;
struct pool;
struct served_refs_ops;

/* Bit 1 << i of calls.observed turns observer i on. Each runs a function inside those before it. */
enum observer_of_calls {
    OBSERVER_DURATIONS,
    OBSERVER_RECORDER,
    OBSERVER_TRACES,
    OBSERVER_PROFILER,
    OBSERVERS_OF_CALLS,
};

/* Statistics; relaxed, exact when the worker is idle. */
struct call_counts {
    _Atomic uint64_t finished;      /* requests that waited for an answer, completed */
    _Atomic uint64_t one_way;       /* of those, one-way, handed to the wire */
    _Atomic uint64_t one_way_ended; /* one-way requests of members, ended here */
    _Atomic uint64_t timeouts;
    _Atomic uint64_t late_replies;  /* answers to calls already completed */
    _Atomic uint64_t stray_replies; /* answers of a peer that was not called */
    _Atomic uint64_t refused;       /* requests of callers that may not send them */
    _Atomic uint64_t taken;         /* requests whose function was started or queued */
    _Atomic uint64_t served;        /* of those, answered */
    _Atomic uint64_t jobs;          /* control messages begun, without their retries */
    _Atomic uint64_t jobs_ended;
};

/* Target devices of tensors at another worker. The room rpc/devices fills the tables. */
struct device_way {
    struct device_map request;
    struct device_map answer;
};

struct devices {
    struct device_row mine;

    pthread_rwlock_t lock; /* guards the fields below, which change when members join */
    struct tenrec_device *used;
    _Atomic size_t n_used;
    atomic_bool maps;       /* a way below has, or had, a map */
    struct device_way *way; /* by id */
    size_t n_ways;
};

struct calls {
    const struct chain_port *port; /* of the chain; for each call */
    struct loop_timer *deadlines;
    struct pool *pool; /* runs functions */
    _Atomic int64_t timeout_ms;
    atomic_bool closed;                /* no function starts any more (serve_stop) */
    struct tenrec_allocator allocator; /* guarded by worker.lock; size 0: none */
    struct devices *devices;           /* owned by member; NULL: no member names a device */

    /* Set by the rooms above. */
    const struct transfer_ops *transfers;
    const struct served_refs_ops *served_refs;
    _Atomic int64_t view_version; /* announced by our messages; 0 in a static group */
    bool (*view_wait)(struct tenrec_worker *w, struct ask *a); /* see monitor_view_wait */
    _Atomic uint32_t observed; /* a bit for each observer that is on: observe.h */
    const struct call_observer *observer[OBSERVERS_OF_CALLS];
    uint32_t answers_spans; /* a bit for each observer that does */

    struct call_counts counts;
    struct pending pending;
    struct active_calls active_calls;
    struct functions functions;
    struct dispatch dispatch;
};

/* `c` is zeroed. */
void calls_init(struct calls *c);
void calls_finish(struct calls *c);

/* ---- devices_send.c: target devices and streams of the tensors of a message. Acquires
 * devices.lock. A worker without device maps pays nothing for a message: its `devices` is NULL, or
 * the message is not inspected --------------------------------------------------------------------
 */

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

/* ---- recv_alloc.c: memory for received tensors; worker.lock guards the allocator ---- */

/* A chain_user function: uses the caller's buffer, else the user's allocator, else our own memory.
 */
tenrec_status recv_alloc_tensors(void *worker, tenrec_peer from, struct tenrec_msg *msg,
                                 tenrec_error *err);

/* Returns true if the tensor is contiguous and fills its storage. */
bool recv_alloc_is_plain(const struct tenrec_tensor *t);

#endif
