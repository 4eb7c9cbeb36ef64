/* SPDX-License-Identifier: Apache-2.0 */
/* calls.h - the state of a worker's calls in both directions, in one allocation with the worker. */
#ifndef TENREC_CALL_CALLS_H
#define TENREC_CALL_CALLS_H

#include "rpc/call/active_calls.h"
#include "rpc/call/dispatch.h"
#include "rpc/call/function.h"
#include "rpc/call/pending.h"
#include "rpc/future/worker.h"

struct ask;
struct call_observer;
struct chain_port;
struct devices;
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
    _Atomic int64_t view_version; /* that messages of ours tell; 0 in a static group */
    bool (*view_wait)(struct tenrec_worker *w, struct ask *a); /* see monitor_view_wait */
    _Atomic uint32_t observed; /* a bit for each observer that is on: observe.h */
    const struct call_observer *observer[OBSERVERS_OF_CALLS];

    struct call_counts counts;
    struct pending pending;
    struct active_calls active_calls;
    struct functions functions;
    struct dispatch dispatch;
};

/* `c` is zeroed. */
void calls_init(struct calls *c);
void calls_finish(struct calls *c);

#endif
