/* SPDX-License-Identifier: Apache-2.0 */
/* event.h - one event in one block of memory. Until its session stops, start_ns
 * is a time of the monotonic clock. */
#ifndef TENREC_OBSERVE_EVENT_H
#define TENREC_OBSERVE_EVENT_H

#include <tenrec/profiler.h>

enum {
    EVENT_NAME_MAX = 4096, /* bytes of a name with all that stands before it */
    EVENT_LABEL_MAX = 255, /* of a worker's or thread's name */
};

/* Takes the name, and the names of thread and worker as they are now. NULL: no
 * memory. */
struct tenrec_event *event_new(const struct tenrec_worker *w, uint32_t kind, const char *name);

/* A copy whose name is `prefix` (may be "") and then the old one. NULL: no
 * memory, or the name gets too long. */
struct tenrec_event *event_copy(const struct tenrec_event *e, const char *prefix);
void event_drop(struct tenrec_event *e);

/* In the child of a fork: the thread that runs is another one now. */
void event_forget_thread(void);

#endif
