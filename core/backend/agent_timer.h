/* SPDX-License-Identifier: Apache-2.0 */
/* agent_timer.h - timers of agents, with the promise that none is forgotten: what
 * is left when its owner ends runs then. */
#ifndef TENREC_BACKEND_AGENT_TIMER_H
#define TENREC_BACKEND_AGENT_TIMER_H

#include <pthread.h>
#include <stdbool.h>
#include <tenrec/error.h>

struct loop;
struct loop_timer;
struct after_entry;

struct after {
    struct loop *loop;
    struct loop_timer *timer;
    pthread_mutex_t lock;             /* guards all below, and `ended` of the owners */
    pthread_cond_t idle;              /* running became NULL */
    struct after_entry *first, *last; /* sorted by time */
    const struct after_owner *running;
};

struct after_owner {
    bool ended;
};

tenrec_status after_init(struct after *a, struct loop *loop, tenrec_error *err);
/* All owners must have ended. */
void after_finish(struct after *a);

/* Calls fn(arg) on the loop's thread in `ms` milliseconds, or from after_end.
 * errors: ENOMEM, ESHUTDOWN (the owner has ended) */
tenrec_status after_add(struct after *a, struct after_owner *owner, uint64_t ms,
                        void (*fn)(void *arg), void *arg);

/* Runs what is left of `owner` here and now, and waits for what is under way;
 * from then on after_add refuses. */
void after_end(struct after *a, struct after_owner *owner);

#endif
