/* SPDX-License-Identifier: Apache-2.0 */
/* trace.h - the events of one session, or of one served call.
 *
 * Shared (counted) by who reads them and by all that may still add one. A trace
 * may have an outer one, which gets its events too. */
#ifndef TENREC_OBSERVE_TRACE_H
#define TENREC_OBSERVE_TRACE_H

#include "observe/event.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct trace {
    atomic_uint refs;
    atomic_bool open;    /* events are still taken */
    bool served;         /* of a served call; else of a session of a thread */
    bool remote;         /* what happens on callees is wanted, too */
    struct trace *outer; /* shared, or NULL */
    size_t max;
    pthread_mutex_t lock; /* guards what follows */
    struct tenrec_event **event;
    size_t n, room;
    uint64_t dropped;
};

/* ret of new: shares; NULL: no memory */
struct trace *trace_new(size_t max);
struct trace *trace_share(struct trace *t);
void trace_drop(struct trace *t);

/* Adds a copy to the trace and to those around it, when they are open. */
void trace_add(struct trace *t, const struct tenrec_event *e, const char *prefix);

/* Counts events that could not be kept, here and around. */
void trace_miss(struct trace *t, uint64_t n);

/* From now on nothing is added; the events are there to be read unlocked. */
void trace_close(struct trace *t);

/* Is the trace, or one around it, open? */
bool trace_is_open(const struct trace *t);

/* Does the trace, or an open one around it, want what happens on callees? */
bool trace_wants_remote(const struct trace *t);

#endif
