/* SPDX-License-Identifier: Apache-2.0 */
/* event.h - an event in a single block of memory. Until its session stops, start_ns is a time of
 * the monotonic clock. */
#ifndef TENREC_PROFILER_EVENT_H
#define TENREC_PROFILER_EVENT_H

#include <tenrec/profiler.h>

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
