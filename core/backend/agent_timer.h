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
    pthread_cond_t idle;                     /* running became NULL, or `sends` of an owner 0 */
    struct agent_timers_entry *first, *last; /* sorted by time */
    const struct agent_timers_owner *running;
};

struct agent_timers_owner {
    bool ended;
    uint64_t sends; /* of agent_timers_hold: pending, or running */
};

tenrec_status agent_timers_init(struct agent_timers *a, struct loop *loop, tenrec_error *err);
/* All owners must have ended. */
void agent_timers_finish(struct agent_timers *a);

/* Calls fn(arg) on the loop's thread in `ms` milliseconds, or from agent_timers_end.
 * errors: ENOMEM, ESHUTDOWN (the owner has ended) */
tenrec_status agent_timers_add(struct agent_timers *a, struct agent_timers_owner *owner,
                               uint64_t ms, void (*fn)(void *arg), void *arg);

/* Calls fn(arg) at `at_ns` or later, or from agent_timers_end, timers of one time in the order of
 * these calls. agent_timers_drain waits for the timers that send. errors: as agent_timers_add */
tenrec_status agent_timers_hold(struct agent_timers *a, struct agent_timers_owner *owner,
                                uint64_t at_ns, bool sends, void (*fn)(void *arg), void *arg);

/* Waits until the timers of `owner` that send have run. Returns the number of those that are left
 * at the deadline. */
uint64_t agent_timers_drain(struct agent_timers *a, struct agent_timers_owner *owner,
                            uint64_t deadline_ns);

/* Runs the pending timers of `owner` at once and waits for a running one; from then on
 * agent_timers_add refuses. */
void agent_timers_end(struct agent_timers *a, struct agent_timers_owner *owner);

#endif
