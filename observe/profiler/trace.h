/* SPDX-License-Identifier: Apache-2.0 */
/* trace.h - the events of a session, or of a served call. Shared (counted) by the reader and all
 * that may add events. An outer trace gets the events, too. */
#ifndef TENREC_PROFILER_TRACE_H
#define TENREC_PROFILER_TRACE_H

#include "observe/profiler/event.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct trace {
    atomic_uint refs;
    atomic_bool open;    /* accepts events */
    bool served;         /* of a served call; else of a session of a thread */
    bool remote;         /* accepts events of callees, too */
    struct trace *outer; /* shared, or NULL */
    size_t max;
    pthread_mutex_t lock; /* guards the fields below */
    struct tenrec_event **event;
    size_t n, room;
    uint64_t dropped;
};

/* trace_new returns a share, or NULL if out of memory. */
struct trace *trace_new(size_t max);
struct trace *trace_share(struct trace *t);
void trace_drop(struct trace *t);

/* Adds a copy to the trace and its outer traces, where they are open. */
void trace_add(struct trace *t, const struct tenrec_event *e, const char *prefix);

/* Counts dropped events, here and in the outer traces. */
void trace_miss(struct trace *t, uint64_t n);

/* Adds no more events from now on, so they can be read without the lock. */
void trace_close(struct trace *t);

/* Returns true if the trace or an outer trace is open. */
bool trace_is_open(const struct trace *t);

/* Returns true if the trace or an outer trace is open and accepts events of callees. */
bool trace_wants_remote(const struct trace *t);

#endif
