/* SPDX-License-Identifier: Apache-2.0 */
/* sessions.h - the active sessions of this process: of workers, of the whole process, and the list
 * of the running thread. */
#ifndef TENREC_PROFILER_SESSIONS_H
#define TENREC_PROFILER_SESSIONS_H

#include "observe/profiler/events.h"

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

/* The innermost open list of this thread, borrowed. NULL if there is none, or if unrelated code
 * runs (an inline function while the thread waits). */
struct events *thread_events(void);

/* Returns true if `all` is the list that this thread entered last. */
bool thread_events_is(const struct events *all);

/* Makes `all` (shared) the list of this thread. Returns the previous one, which thread_events_leave
 * restores. */
struct thread_events {
    struct events *events; /* shared, or NULL */
    unsigned depth;        /* thread_state.no_block when it was entered */
};
struct thread_events thread_events_enter(struct events *all);
void thread_events_leave(struct thread_events before);

/* Count what records: while it is not 0, the profiler observes the calls of all workers. */
void recorders_add(void);
void recorders_remove(void);

/* From the new of a worker to its drop. */
struct profiler_service;
void recorders_follow(struct profiler_service *p);
void recorders_forget(const struct profiler_service *p);

/* ---- profiler.c: a session, and its trace as a file ------------------------------------------ */

struct tenrec_profiler {
    struct events *events;   /* shared */
    struct tenrec_worker *w; /* borrowed; NULL for all workers */
    uint32_t scope;
    uint64_t start_ns; /* on the monotonic clock */
    bool running;
    struct thread_events before;  /* scope thread: the thread's previous list */
    struct tenrec_profiler *next; /* in the list of sessions */
};

/* Writes a Chrome trace (trace_json.c).
 *
 * part     the trace will be merged with those of other workers, where arrows may start */
tenrec_status trace_json_write(const struct tenrec_profiler *p, const char *path, bool part,
                               tenrec_error *err);

#endif
