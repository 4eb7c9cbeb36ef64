/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/profiler.h - traces of calls, with the time spent in each step.
 *
 *     tenrec_profiler_start(w, NULL, &p, &err);
 *     tenrec_rpc_sync(w, "worker1", "add", ...);
 *     tenrec_profiler_stop(p, &err);
 *     tenrec_profiler_write(p, "trace.json", &err);   opens in ui.perfetto.dev
 *     tenrec_profiler_drop(p);
 *
 * A session records events: one for each side of a call, and the events of the program. The
 * callee returns its events of a recorded call with the answer, including events of the workers
 * that it calls in turn; their names begin with the names of the calls on the path:
 *
 *     rpc_sync#add(worker0 -> worker1)
 *     rpc_sync#add(worker0 -> worker1)#remote_op: add
 *
 * While a process records nothing, a call costs one more predicted branch at its begin and at its
 * end.
 */
#ifndef TENREC_PROFILER_H
#define TENREC_PROFILER_H

#include <tenrec/rpc.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct tenrec_profiler;      /* opaque: one session */
struct tenrec_profiler_mark; /* opaque: an open event of the program */

enum tenrec_profiler_scope {
    TENREC_PROFILE_THREAD = 0, /* calls of the starting thread, and all calls caused by them */
    TENREC_PROFILE_WORKER = 1, /* all calls of one worker, both sides */
    TENREC_PROFILE_SERVER = 2, /* all calls served by the workers of this process, and the calls
                                  of their functions */
};

enum tenrec_profiler_flags {
    TENREC_PROFILE_LOCAL = 1 << 0, /* does not request the events of callees */
};

/* NULL options, or a zeroed struct with size set, mean the defaults. */
struct tenrec_profiler_options {
    uint32_t size;        /* sizeof(struct tenrec_profiler_options) */
    uint32_t flags;       /* enum tenrec_profiler_flags */
    uint32_t scope;       /* enum tenrec_profiler_scope */
    uint32_t reserved0;   /* zero */
    uint64_t max_events;  /* excess events are counted, not kept; 0: 100000 */
    uint64_t reserved[4]; /* zero */
};

/* Starts to record.
 *
 * w        borrowed until stop: the worker to which the session belongs; NULL
 *          for TENREC_PROFILE_SERVER
 * ret      owns: drop it
 * errors   EINVAL, ENOMEM
 * threads  any. Sessions nest: an event is recorded in every session that covers it
 * source   torch.autograd.profiler.profile; TENREC_PROFILE_SERVER is
 *          torch.distributed.rpc._server_process_global_profile
 */
tenrec_status tenrec_profiler_start(struct tenrec_worker *w,
                                    const struct tenrec_profiler_options *options,
                                    struct tenrec_profiler **ret, tenrec_error *err);

/* Ends recording. Calls in progress are not recorded.
 *
 * errors   EINVAL (stopped already; a session of a thread: another thread, or
 *          not the innermost)
 */
tenrec_status tenrec_profiler_stop(struct tenrec_profiler *p, tenrec_error *err);

/* Stops the session if it still runs, and frees it with its events. NULL is allowed. */
void tenrec_profiler_drop(struct tenrec_profiler *p);

/* ---- events ---------------------------------------------------------------- */

enum tenrec_event_kind {
    TENREC_EVENT_CALL = 0,  /* the caller's side of a call */
    TENREC_EVENT_SERVE = 1, /* the callee's side */
    TENREC_EVENT_MARK = 2,  /* tenrec_profiler_mark_begin to tenrec_profiler_mark_end */
};

/* One event. Times are nanoseconds. Times of a callee are centered in the caller's round trip:
 * their error is half the difference of the two ways.
 * Grows at its end: given out by pointer only. */
struct tenrec_event {
    const char *name;        /* "rpc_sync#add(worker0 -> worker1)" */
    const char *worker_name; /* of the event */
    const char *thread_name;
    uint64_t thread;       /* the kernel's id of it */
    tenrec_peer worker_id; /* of the event */
    tenrec_peer caller_id; /* with call_id the same on both sides of a call */
    int64_t call_id;       /* the message's; -1 for a mark */
    uint32_t kind;         /* enum tenrec_event_kind */
    int32_t status;        /* TENREC_OK or the error */
    uint64_t start_ns;     /* since the session began */
    uint64_t duration_ns;  /* call: until its future is done; serve: until it is answered */
    uint64_t run_ns;       /* time that its thread spent in it: less than duration_ns if it ended
                              on another thread */
    uint64_t queue_ns;     /* serve: from receipt of the request to start_ns */
    uint64_t wire_ns;      /* call: the round trip without the callee; 0: unknown */
    uint64_t sent_bytes;   /* payload and tensors */
    uint64_t received_bytes;
    uint32_t remote; /* 1: received with an answer */
    uint32_t reserved;
};

/* Returns the events in the order in which they began; before stop 0 or NULL.
 * Borrowed until the session is dropped. */
size_t tenrec_profiler_count(const struct tenrec_profiler *p);
const struct tenrec_event *tenrec_profiler_event(const struct tenrec_profiler *p, size_t i);

/* Returns the number of events that were not kept because they exceeded max_events or were
 * malformed. */
uint64_t tenrec_profiler_dropped(const struct tenrec_profiler *p);

/* The first event whose name contains `part`; NULL if none does.
 *
 * source   get_function_event of torch's dist_utils
 */
const struct tenrec_event *tenrec_profiler_get_function_event(const struct tenrec_profiler *p,
                                                              const char *part);

/* Writes the events as a Chrome trace (JSON), one row per worker and thread,
 * with arrows from each call to its function.
 *
 * errors   EINVAL (not stopped), EOS (the file), ENOMEM
 * source   torch.autograd.profiler.profile.export_chrome_trace
 */
tenrec_status tenrec_profiler_write(const struct tenrec_profiler *p, const char *path,
                                    tenrec_error *err);

/* ---- events of the program -------------------------------------------------- */

/* Begins an event `name` on this thread: in a session of this thread, in the function of a
 * recorded call, or in a session of `w`. Returns NULL if none of them records, or memory has run
 * out. NULL may be ended.
 *
 * w        borrowed until the end
 * source   torch.autograd.profiler.record_function
 */
struct tenrec_profiler_mark *tenrec_profiler_mark_begin(struct tenrec_worker *w, const char *name);

/* The same for a TENREC_LATER call, from any thread and before the call is
 * finished. Until the end, on the same thread, calls of this thread belong to that call. */
struct tenrec_profiler_mark *tenrec_profiler_mark_begin_in_call(const struct tenrec_call *c,
                                                                const char *name);

void tenrec_profiler_mark_end(struct tenrec_profiler_mark *m);

/* Ends the event when `f` is done. Takes `m`.
 *
 * errors   EINVAL (of tenrec_profiler_mark_begin_in_call), ENOMEM; the event ends at once
 * source   record_function._call_end_callbacks_on_future
 */
tenrec_status tenrec_profiler_mark_end_with(struct tenrec_profiler_mark *m, struct tenrec_future *f,
                                            tenrec_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
