/* SPDX-License-Identifier: Apache-2.0 */
/* recorder.h - the flight recorder: what happened last in this process, and what runs now.
 *
 * Rare events are always recorded; calls, when they have ended (ring.h), while `observe.recorder`
 * is true. */
#ifndef TENREC_RECORDER_RECORDER_H
#define TENREC_RECORDER_RECORDER_H

#include "rpc/call/observe.h"

struct functions;

enum { RECORDER_MARKS = 5 };

extern const struct service recorder_service; /* of a worker (rpc/call/service.h) */

/* Its state in each worker. */
struct recorder {
    struct tenrec_worker *worker; /* set while it runs */
    struct recorder *next;        /* guarded by the lock of the list */
    _Atomic uint64_t stuck_after_ms;
    atomic_bool stacks;
    const char *dump_dir; /* borrowed from the configuration; "": none */
    /* Guarded by the lock of the list: times of checks with the number of calls begun until then,
     * the latest first. A call that began before the oldest mark has lasted too long. */
    struct {
        uint64_t at_ns, calls;
    } mark[RECORDER_MARKS];
};

void recorder_set_stuck_after(struct tenrec_worker *w, uint64_t ms); /* TENREC_FOREVER: never */

/* The recorders of the workers that run, to be walked by `next` until recorders_unlock: the only
 * list of these workers. The try returns false if another thread has the lock. */
struct recorder *recorders_lock(void);
bool recorders_try_lock(struct recorder **ret);
struct recorder *recorders_held(void); /* the first again, while this thread has the lock */
void recorders_unlock(void);

/* The function by which other workers ask for a dump (dump_value.c). errors: ENOMEM */
tenrec_status recorder_serve(struct functions *f, tenrec_error *err);

/* Finds handlers that run, and calls that wait, for longer than `worker.stuck_after`.
 *
 * The tables of calls are looked at four times in that span, so a call costs nothing. */

/* A worker has started, or has another limit. */
void stuck_watch(void);

/* ---- inline_calls.c: the inline handler that each thread runs now. Such a call lives on the stack
 * of its thread and is in no table; it is known here while the recorder is on
 * ------------------------ */

/* Around the handler, on its thread. */
void inline_call_begin(const struct tenrec_call *c);
void inline_call_end(void);

/* A handler that runs, or ran just now. */
struct inline_call {
    uint32_t worker;                 /* its start (tenrec_worker.start) */
    const struct function *function; /* lives as long as the worker */
    tenrec_peer from;
    int64_t id;
    uint32_t thread;
    uint64_t began_ns;
};

/* Calls `fn` for each that runs. `reported` was set by an earlier call for the same handler. */
typedef void inline_calls_fn(void *arg, const struct inline_call *call, bool *reported);
void inline_calls_each(inline_calls_fn *fn, void *arg);

#endif
