/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base/loop.h"

#include "core/base/clock.h"
#include "core/base/forks.h"
#include "core/base/memory.h"

#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <utlist.h>

enum { JOBS_MAX = 8 };

struct housekeeping {
    struct loop_timer *timer;
    struct housekeeping *next;
};

static struct {
    pthread_mutex_t lock;       /* guards all */
    struct housekeeping *first; /* its timer is used */
    struct {
        housekeeping_fn *fn;
        uint64_t at_ns;
    } job[JOBS_MAX];
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The caller holds the lock. */
static void housekeeping_arm(void)
{
    uint64_t at = CLOCK_NEVER;

    for (size_t i = 0; i < JOBS_MAX && all.job[i].fn; i++)
        if (all.job[i].at_ns < at)
            at = all.job[i].at_ns;
    if (all.first && at != CLOCK_NEVER)
        loop_timer_arm(all.first->timer, at);
}

/* The caller holds the lock. */
static void housekeeping_set(housekeeping_fn *fn, uint64_t at_ns)
{
    size_t i = 0;

    while (i < JOBS_MAX && all.job[i].fn && all.job[i].fn != fn)
        i++;
    assert(i < JOBS_MAX);
    if (!all.job[i].fn)
        all.job[i].at_ns = CLOCK_NEVER;
    all.job[i].fn = fn;
    if (at_ns < all.job[i].at_ns)
        all.job[i].at_ns = at_ns;
}

static void on_timer(void *arg)
{
    const uint64_t now = clock_now_ns();

    (void)arg;
    pthread_mutex_lock(&all.lock);
    for (size_t i = 0; i < JOBS_MAX && all.job[i].fn; i++) {
        housekeeping_fn *fn = all.job[i].fn;
        uint64_t next;
        if (all.job[i].at_ns > now)
            continue;
        all.job[i].at_ns = CLOCK_NEVER;
        pthread_mutex_unlock(&all.lock);
        next = fn(now);
        pthread_mutex_lock(&all.lock);
        housekeeping_set(fn, next);
    }
    housekeeping_arm();
    pthread_mutex_unlock(&all.lock);
}

void housekeeping_at(housekeeping_fn *fn, uint64_t deadline_ns)
{
    pthread_mutex_lock(&all.lock);
    housekeeping_set(fn, deadline_ns);
    housekeeping_arm();
    pthread_mutex_unlock(&all.lock);
}

/* In the child of a fork: the loops are the parent's. */
static void housekeeping_after_fork(void)
{
    pthread_mutex_init(&all.lock, NULL);
    all.first = NULL;
}

static struct fork_hook fork_hook = { .child = housekeeping_after_fork };

tenrec_status housekeeping_join(struct loop *l, struct housekeeping **ret, tenrec_error *err)
{
    struct housekeeping *u = memory_new(1, sizeof *u);
    tenrec_status st;

    if (!u)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a timer");
    st = loop_timer_new(l, on_timer, u, &u->timer, err);
    if (st != TENREC_OK) {
        free(u);
        return st;
    }
    forks_follow(&fork_hook);
    pthread_mutex_lock(&all.lock);
    LL_PREPEND(all.first, u);
    housekeeping_arm();
    pthread_mutex_unlock(&all.lock);
    *ret = u;
    return TENREC_OK;
}

void housekeeping_leave(struct housekeeping *u)
{
    if (!u)
        return;
    pthread_mutex_lock(&all.lock);
    if (all.first) /* not so in the child of a fork */
        LL_DELETE(all.first, u);
    housekeeping_arm(); /* the timer of another loop */
    pthread_mutex_unlock(&all.lock);
    loop_timer_drop(u->timer);
    free(u);
}
