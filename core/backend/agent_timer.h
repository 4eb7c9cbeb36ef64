/* SPDX-License-Identifier: Apache-2.0 */
/* agent_timer.h - timers of agents. A timer runs at its time or when its owner ends. */
#ifndef TENREC_BACKEND_AGENT_TIMER_H
#define TENREC_BACKEND_AGENT_TIMER_H

#include <pthread.h>
#include <stdbool.h>
#include <tenrec/error.h>

struct loop;
struct loop_timer;
struct agent_timers_entry;

struct agent_timers {
    struct loop *loop;
    struct loop_timer *timer;
    pthread_mutex_t lock;                    /* guards all below, and `ended` of the owners */
    pthread_cond_t idle;                     /* running became NULL */
    struct agent_timers_entry *first, *last; /* sorted by time */
    const struct agent_timers_owner *running;
};

struct agent_timers_owner {
    bool ended;
};

tenrec_status agent_timers_init(struct agent_timers *a, struct loop *loop, tenrec_error *err);
/* All owners must have ended. */
void agent_timers_finish(struct agent_timers *a);

/* Calls fn(arg) on the loop's thread in `ms` milliseconds, or from agent_timers_end.
 * errors: ENOMEM, ESHUTDOWN (the owner has ended) */
tenrec_status agent_timers_add(struct agent_timers *a, struct agent_timers_owner *owner,
                               uint64_t ms, void (*fn)(void *arg), void *arg);

/* Runs the pending timers of `owner` at once and waits for a running one; from then on
 * agent_timers_add refuses. */
void agent_timers_end(struct agent_timers *a, struct agent_timers_owner *owner);

#endif
