/* SPDX-License-Identifier: Apache-2.0 */
/* sessions.h - who records in this process: the sessions of workers and of the
 * whole process, and the trace that the running thread is in. */
#ifndef TENREC_OBSERVE_SESSIONS_H
#define TENREC_OBSERVE_SESSIONS_H

#include "observe/trace.h"

/* The list of sessions that belong to no thread. */
void sessions_enter(struct tenrec_profiler *p);
void sessions_leave(struct tenrec_profiler *p);

/* Is there one for what happens on `w`, and wants one what happens on callees?
 * served: inside a served call. */
bool sessions_want(const struct tenrec_worker *w, bool served, bool *ret_remote);

/* Adds a copy to each. `began_ns` is when the call began that `e` belongs to: a
 * session has only what began after itself. */
void sessions_add(const struct tenrec_worker *w, bool served, uint64_t began_ns,
                  const struct tenrec_event *e, const char *prefix);
void sessions_miss(const struct tenrec_worker *w, bool served, uint64_t n);

/* The innermost open trace of this thread, borrowed; NULL: none, or code runs
 * here that does not belong to it (an inline function while this thread waits). */
struct trace *thread_trace(void);

/* Is `t` what this thread has entered last? */
bool thread_trace_is(const struct trace *t);

/* Makes `t` (shared once more) the trace of this thread; what was before comes
 * back by thread_trace_leave, which must be given that. */
struct thread_trace {
    struct trace *trace; /* shared, or NULL */
    unsigned depth;      /* thread_state.no_block when it was entered */
};
struct thread_trace thread_trace_enter(struct trace *t);
void thread_trace_leave(struct thread_trace before);

/* One who records more, one less: see span_recorders. */
void recorders_add(void);
void recorders_remove(void);

#endif
