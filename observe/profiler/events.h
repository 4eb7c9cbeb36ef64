/* SPDX-License-Identifier: Apache-2.0 */
/* events.h - the events of a session, or of a served call. Shared (counted) by the reader and all
 * that may add events. An outer list gets the events, too. */
#ifndef TENREC_PROFILER_EVENTS_H
#define TENREC_PROFILER_EVENTS_H

#include "observe/profiler/event.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct events {
    atomic_uint refs;
    atomic_bool open;     /* accepts events */
    bool served;          /* of a served call; else of a session of a thread */
    bool remote;          /* accepts events of callees, too */
    struct events *outer; /* shared, or NULL */
    size_t max;
    pthread_mutex_t lock; /* guards the fields below */
    struct tenrec_event **event;
    size_t n, room;
    uint64_t dropped;
};

/* events_new returns a share, or NULL if out of memory. */
struct events *events_new(size_t max);
struct events *events_share(struct events *all);
void events_drop(struct events *all);

/* Adds a copy to the list and its outer lists, where they are open. */
void events_add(struct events *all, const struct tenrec_event *e, const char *prefix);

/* Counts dropped events, here and in the outer lists. */
void events_miss(struct events *all, uint64_t n);

/* Adds no more events from now on, so they can be read without the lock. */
void events_close(struct events *all);

/* Returns true if the list or an outer list is open. */
bool events_are_open(const struct events *all);

/* Returns true if the list or an outer list is open and accepts events of callees. */
bool events_want_remote(const struct events *all);

#endif
