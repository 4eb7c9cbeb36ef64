/* SPDX-License-Identifier: Apache-2.0 */
#include "core/backend/agent_timer.h"

#include "core/base/clock.h"
#include "core/base/loop.h"
#include "core/base/memory.h"

#include <stdlib.h>

struct agent_timers_entry {
    struct agent_timers_entry *prev, *next;
    struct agent_timers_owner *owner;
    uint64_t at_ns;
    bool sends;
    void (*fn)(void *arg);
    void *arg;
};

/* The caller holds the lock. */
static void unlink_entry(struct agent_timers *a, struct agent_timers_entry *e)
{
    *(e->prev ? &e->prev->next : &a->first) = e->next;
    *(e->next ? &e->next->prev : &a->last) = e->prev;
}

/* The caller holds the lock. Searches from the end: most delays are equal, so the newest
 * entry is mostly the last. */
static void link_entry(struct agent_timers *a, struct agent_timers_entry *e)
{
    e->prev = a->last;
    while (e->prev && e->prev->at_ns > e->at_ns)
        e->prev = e->prev->prev;
    e->next = e->prev ? e->prev->next : a->first;
    *(e->prev ? &e->prev->next : &a->first) = e;
    *(e->next ? &e->next->prev : &a->last) = e;
}

/* Takes the entry. The caller holds the lock, which is released meanwhile. */
static void run_entry(struct agent_timers *a, struct agent_timers_entry *e)
{
    unlink_entry(a, e);
    pthread_mutex_unlock(&a->lock);
    e->fn(e->arg);
    pthread_mutex_lock(&a->lock);
    if (e->sends && --e->owner->sends == 0)
        pthread_cond_broadcast(&a->idle);
    free(e);
}

static void run_due(void *arg)
{
    struct agent_timers *a = arg;
    struct agent_timers_entry *e;

    pthread_mutex_lock(&a->lock);
    while ((e = a->first) && e->at_ns <= clock_now_ns()) {
        a->running = e->owner;
        run_entry(a, e);
        a->running = NULL;
        pthread_cond_broadcast(&a->idle);
    }
    if (e)
        loop_timer_arm(a->timer, e->at_ns);
    pthread_mutex_unlock(&a->lock);
}

tenrec_status agent_timers_init(struct agent_timers *a, struct loop *loop, tenrec_error *err)
{
    tenrec_status st;

    *a = (struct agent_timers){ .loop = loop };
    st = loop_timer_new(loop, run_due, a, &a->timer, err);
    if (st != TENREC_OK)
        return st;
    pthread_mutex_init(&a->lock, NULL);
    clock_cond_init(&a->idle);
    return TENREC_OK;
}

void agent_timers_finish(struct agent_timers *a)
{
    loop_timer_drop(a->timer);
    pthread_cond_destroy(&a->idle);
    pthread_mutex_destroy(&a->lock);
}

tenrec_status agent_timers_hold(struct agent_timers *a, struct agent_timers_owner *owner,
                                uint64_t at_ns, bool sends, void (*fn)(void *arg), void *arg)
{
    struct agent_timers_entry *e = memory_new(1, sizeof *e);
    bool ended;

    if (!e)
        return TENREC_ENOMEM;
    *e = (struct agent_timers_entry){
        .owner = owner, .at_ns = at_ns, .sends = sends, .fn = fn, .arg = arg
    };
    pthread_mutex_lock(&a->lock);
    ended = owner->ended;
    if (!ended) {
        link_entry(a, e);
        owner->sends += sends;
        if (a->first == e)
            loop_timer_arm(a->timer, e->at_ns);
    }
    pthread_mutex_unlock(&a->lock);
    if (!ended)
        return TENREC_OK;
    free(e);
    return TENREC_ESHUTDOWN;
}

tenrec_status agent_timers_add(struct agent_timers *a, struct agent_timers_owner *owner,
                               uint64_t ms, void (*fn)(void *arg), void *arg)
{
    return agent_timers_hold(a, owner, clock_deadline_ms(ms), false, fn, arg);
}

uint64_t agent_timers_drain(struct agent_timers *a, struct agent_timers_owner *owner,
                            uint64_t deadline_ns)
{
    uint64_t left;

    pthread_mutex_lock(&a->lock);
    while (owner->sends && clock_cond_wait(&a->idle, &a->lock, deadline_ns))
        continue;
    left = owner->sends;
    pthread_mutex_unlock(&a->lock);
    return left;
}

void agent_timers_end(struct agent_timers *a, struct agent_timers_owner *owner)
{
    struct agent_timers_entry *e, *next;

    pthread_mutex_lock(&a->lock);
    owner->ended = true;
    /* The list may change while the lock is released: start over each time. */
    for (e = a->first; e; e = next) {
        next = e->next;
        if (e->owner != owner)
            continue;
        run_entry(a, e);
        next = a->first;
    }
    while (a->running == owner && !loop_is_me(a->loop))
        pthread_cond_wait(&a->idle, &a->lock);
    pthread_mutex_unlock(&a->lock);
}
