/* SPDX-License-Identifier: Apache-2.0 */
/* userloop.h - the queue of callbacks for the program's own event loop. */
#ifndef TENREC_FUTURE_USERLOOP_H
#define TENREC_FUTURE_USERLOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <tenrec/rpc.h>

struct future_callback;

struct userloop {
    pthread_mutex_t lock; /* guards first, last */
    struct future_callback *first, **last;
    atomic_int fd; /* -1: callbacks run on our threads */
};

void userloop_init(struct userloop *u);
void userloop_finish(struct userloop *u); /* runs the queued callbacks */

/* These two use the userloop of `w`. push takes the list first..*last. */
bool userloop_wanted(struct tenrec_worker *w);
void userloop_push(struct tenrec_worker *w, struct future_callback *first,
                   struct future_callback **last);

#endif
