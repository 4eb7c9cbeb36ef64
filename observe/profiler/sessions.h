/* SPDX-License-Identifier: Apache-2.0 */
/* sessions.h - the active sessions of this process: of workers, of the whole process, and the trace
 * of the running thread. */
#ifndef TENREC_PROFILER_SESSIONS_H
#define TENREC_PROFILER_SESSIONS_H

#include "observe/profiler/trace.h"

/* Adds to, and removes from, the list of sessions that belong to no thread. */
void sessions_enter(struct tenrec_profiler *p);
void sessions_leave(struct tenrec_profiler *p);

/* Returns true if a session records `w`; *ret_remote is set if one of them records callees, too.
 * served: inside a served call. */
bool sessions_want(const struct tenrec_worker *w, bool served, bool *ret_remote);

/* Adds a copy to each session that began before `began_ns`, the start of the call of `e`. */
void sessions_add(const struct tenrec_worker *w, bool served, uint64_t began_ns,
                  const struct tenrec_event *e, const char *prefix);
void sessions_miss(const struct tenrec_worker *w, bool served, uint64_t n);

/* The innermost open trace of this thread, borrowed. NULL if there is none, or if unrelated code
 * runs (an inline function while the thread waits). */
struct trace *thread_trace(void);

/* Returns true if `t` is the trace that this thread entered last. */
bool thread_trace_is(const struct trace *t);

/* Makes `t` (shared) the trace of this thread. Returns the previous one, which thread_trace_leave
 * restores. */
struct thread_trace {
    struct trace *trace; /* shared, or NULL */
    unsigned depth;      /* thread_state.no_block when it was entered */
};
struct thread_trace thread_trace_enter(struct trace *t);
void thread_trace_leave(struct thread_trace before);

/* Count the recorders: see span_recorders. */
void recorders_add(void);
void recorders_remove(void);

#endif
