/* SPDX-License-Identifier: Apache-2.0 */
/* events.h - the events of a session, or of a served call. Shared (counted) by the reader and all
 * that may add events. An outer list gets the events, too. */
#ifndef TENREC_PROFILER_EVENTS_H
#define TENREC_PROFILER_EVENTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <tenrec/profiler.h>

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

/* An event in a single block of memory. Until its session stops, start_ns is a time of
 * the monotonic clock. */

enum {
    EVENT_NAME_MAX = 4096, /* bytes of a name with its prefixes */
    EVENT_LABEL_MAX = 255, /* of a worker's or thread's name */
};

/* Copies `name` and the present names of the thread and the worker. Returns NULL if out of memory.
 */
struct tenrec_event *event_new(const struct tenrec_worker *w, uint32_t kind, const char *name);

/* Copies the event, with `prefix` (may be "") before its name. Returns NULL if out of memory, or if
 * the name gets too long. */
struct tenrec_event *event_copy(const struct tenrec_event *from, const char *prefix);
void event_drop(struct tenrec_event *e);

/* Called in the child of a fork, whose thread has another id. */
void event_forget_thread(void);

#endif
