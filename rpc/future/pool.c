/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/future/pool.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/threads.h"
#include "rpc/future/future.h"
#include "rpc/future/stall.h"
#include "rpc/future/thread_state.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { LINGER_MS = 1000, STALLED_TIMES = 7 };

static _Thread_local struct stall_thread *pool_self; /* of a pool's thread */

struct pool {
    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t work;  /* a task was queued, or stop */
    pthread_cond_t gone;  /* a thread exited, or ended to lead */
    pthread_cond_t watch; /* tasks wait for a thread again, or stop */
    struct pool_task *first, **last;
    size_t queued;
    size_t uncalled; /* of those, no thread was woken for */
    size_t max_queued;
    uint64_t bytes; /* of the tasks that are queued or run */
    uint64_t max_bytes;
    unsigned max_threads;
    unsigned threads; /* alive */
    unsigned idle;    /* of those, waiting for work */
    unsigned blocked; /* of those, in a Tenrec wait */
    struct stalls stalls;
    uint64_t taken; /* tasks */
    bool watched;   /* by one thread, whether tasks wait for stalled ones ... */
    bool dozes;     /* ... which does not while no task waits */
    bool stop;
    bool closed;     /* refuses tasks */
    pthread_t ended; /* to be joined, if has_ended */
    bool has_ended;
    atomic_bool full; /* written with the lock */
    atomic_bool told; /* that tasks are refused */
    void (*drained)(void *arg);
    void *arg;
    pool_lead_fn *lead; /* NULL: no thread leads */
    void *lead_arg;
    struct waiter *leader; /* of the thread that leads; NULL: none */
};

tenrec_status pool_open(unsigned max_threads, size_t max_queued, void (*drained)(void *arg),
                        void *arg, struct pool **ret, tenrec_error *err)
{
    struct pool *p = memory_new(1, sizeof *p);

    if (!p)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the pool");
    p->last = &p->first;
    p->max_threads = max_threads;
    p->max_queued = max_queued;
    p->max_bytes = UINT64_MAX;
    p->drained = drained;
    p->arg = arg;
    pthread_mutex_init(&p->lock, NULL);
    clock_cond_init(&p->work);
    clock_cond_init(&p->watch);
    pthread_cond_init(&p->gone, NULL);
    *ret = p;
    return TENREC_OK;
}

void pool_limit_bytes(struct pool *p, uint64_t max_bytes)
{
    pthread_mutex_lock(&p->lock);
    p->max_bytes = max_bytes;
    pthread_mutex_unlock(&p->lock);
}

struct pool_limits pool_limits(struct pool *p)
{
    struct pool_limits most;

    pthread_mutex_lock(&p->lock);
    most = (struct pool_limits){ .queued = p->max_queued, .bytes = p->max_bytes };
    pthread_mutex_unlock(&p->lock);
    return most;
}

/* Lock held. */
static bool pool_is_over(const struct pool *p, size_t max_queued)
{
    return p->queued > max_queued || (p->queued > p->idle && p->bytes > p->max_bytes);
}

static void *pool_thread_main(void *arg);

/* Those of the limit. Lock held. */
static unsigned pool_running(const struct pool *p)
{
    return p->threads - p->blocked - p->stalls.n - p->watched;
}

/* Starts another thread if the queue needs one: the leader may still wait for the loop, and does
 * not count as idle. One above the limit watches the others. Returns false if no thread is left for
 * the queue: there is none, or all are blocked, perhaps by waits for what is queued. Lock held. */
static bool pool_grow(struct pool *p)
{
    pthread_t thread;

    if (p->queued <= p->idle)
        return true;
    if (p->dozes) {
        p->dozes = false;
        pthread_cond_signal(&p->watch);
        return true;
    }
    if (pool_running(p) + (p->watched || p->max_threads == 1) > p->max_threads)
        return true;
    if (p->threads >= p->max_threads + p->max_queued ||
        threads_start(&thread, "tenrec-pool", pool_thread_main, p) != 0)
        return p->threads > p->blocked;
    p->threads++;
    return true;
}

/* Logs once that the pool refuses tasks. */
static void pool_tell(struct pool *p)
{
    if (!atomic_exchange(&p->told, true))
        log_line(TENREC_LOG_WARN, "pool",
                 "all %u threads wait for other calls, and no more can be started (at most "
                 "worker.num_worker_threads + worker.max_queued_calls, and what the system "
                 "permits): calls are refused",
                 pool_count(p).blocked);
}

tenrec_status pool_refusal(struct pool *p, const char *function, tenrec_error *err)
{
    return tenrec_fail(err, TENREC_EAGAIN,
                       "'%s' was not started: %u functions of this worker wait for other calls, "
                       "and it can start no more threads",
                       function, pool_count(p).blocked);
}

/* Wakes a thread for a task that was queued, or is to be. Lock held. */
static void pool_signal(struct pool *p)
{
    if (p->queued > p->idle && p->leader)
        waiter_wake(p->leader);
    else
        pthread_cond_signal(&p->work);
}

/* The leader queues what it reads and calls no thread, as it runs the first task itself. A thread
 * that takes a task calls a thread for the next: short tasks of a burst need no other thread. Lock
 * held. */
static void pool_call_next(struct pool *p)
{
    if (p->uncalled > p->queued)
        p->uncalled = p->queued;
    if (p->uncalled == 0)
        return;
    p->uncalled--;
    pool_grow(p);
    pool_signal(p);
}

/* Reads messages until a task is queued or the time is over. Returns false if it is over. Lock
 * held, but released while it reads. */
static bool pool_lead(struct pool *p, uint64_t until)
{
    pool_lead_fn *const lead = p->lead;
    void *const arg = p->lead_arg;
    struct waiter waiter;
    struct tenrec_wait wait = { .size = sizeof wait, .deadline_ns = until };
    tenrec_status st;

    waiter_init(&waiter, true);
    wait.wake_fd = waiter.fd;
    wait.done = (const uint32_t *)&waiter.woken;
    p->leader = &waiter;
    pthread_mutex_unlock(&p->lock);
    thread_state.waiter = &waiter;
    st = waiter.fd >= 0 ? lead(arg, &wait) : TENREC_EUNSUPPORTED;
    thread_state.waiter = NULL;
    pthread_mutex_lock(&p->lock);
    p->leader = NULL;
    if (st != TENREC_OK && p->lead == lead)
        p->lead = NULL;
    pthread_cond_broadcast(&p->gone);
    waiter_finish(&waiter);
    return clock_now_ns() < until;
}

/* A thread above the limit watches whether tasks wait for others that all block outside of Tenrec:
 * as many again may begin then. Returns false if no task waited until the end. Lock held. */
static bool pool_watch(struct pool *p, uint64_t until)
{
    const bool waits = p->first != NULL;
    const uint64_t taken = p->taken;
    bool timely;

    if (waits)
        stall_mark(&p->stalls);
    p->watched = true;
    p->dozes = !waits;
    timely = clock_cond_wait(&p->watch, &p->lock, waits ? clock_now_ns() + STALL_NS : until);
    p->dozes = p->watched = false;
    if (waits && !timely && p->taken == taken) {
        stall_find(&p->stalls, STALLED_TIMES * p->max_threads);
        p->uncalled = p->queued;
    }
    return waits || timely;
}

/* Waits for work. Returns NULL if this thread should exit. Lock held. */
static struct pool_task *next_task(struct pool *p)
{
    uint64_t until = 0;
    struct pool_task *t;
    bool timely = true;

    for (;;) {
        const bool surplus = pool_running(p) > p->max_threads;

        if (p->first && !surplus)
            break;
        /* Too many threads if not one: a blocked one has resumed. */
        if ((p->stop && !p->first) || !timely || (surplus && (p->watched || p->max_threads == 1)))
            return NULL;
        if (!until)
            until = clock_deadline_ms(LINGER_MS);
        if (surplus) {
            timely = pool_watch(p, until);
            continue;
        }
        if (p->lead && !p->leader) {
            timely = pool_lead(p, until);
            continue;
        }
        p->idle++;
        timely = clock_cond_wait(&p->work, &p->lock, until);
        p->idle--;
    }
    t = p->first;
    p->first = t->next;
    if (!p->first)
        p->last = &p->first;
    p->queued--;
    p->taken++;
    pool_call_next(p);
    return t;
}

static void *pool_thread_main(void *arg)
{
    struct pool *p = arg;
    struct stall_thread self;
    struct pool_task *t;
    pthread_t former;
    bool join;

    thread_state.pool = p;
    pool_self = &self;
    pthread_mutex_lock(&p->lock);
    stall_add(&p->stalls, &self);
    while ((t = next_task(p))) {
        const uint64_t bytes = t->bytes;
        const bool drained = pool_full(p) && !pool_is_over(p, p->max_queued / 2);

        if (drained)
            atomic_store(&p->full, false);
        stall_set(&p->stalls, &self, true);
        pthread_mutex_unlock(&p->lock);
        if (drained && p->drained)
            p->drained(p->arg);
        t->fn(t);
        pthread_mutex_lock(&p->lock);
        stall_set(&p->stalls, &self, false);
        p->bytes -= bytes;
    }
    stall_remove(&p->stalls, &self);
    /* Each thread that exits joins the thread that exited before it, and pool_close joins the last:
     * no thread is leaked. */
    former = p->ended;
    join = p->has_ended;
    p->ended = pthread_self();
    p->has_ended = true;
    p->threads--;
    pool_call_next(p);
    pthread_cond_broadcast(&p->gone);
    pthread_mutex_unlock(&p->lock);
    if (join)
        pthread_join(former, NULL);
    return NULL;
}

static void pool_put(struct pool *p, struct pool_task *t)
{
    *p->last = t;
    p->last = &t->next;
    p->bytes += t->bytes;
    if (pool_is_over(p, p->max_queued - 1))
        atomic_store(&p->full, true);
}

tenrec_status pool_run(struct pool *p, struct pool_task *t)
{
    tenrec_status st = TENREC_OK;

    t->next = NULL;
    t->refused = false;
    pthread_mutex_lock(&p->lock);
    if (p->closed) {
        pthread_mutex_unlock(&p->lock);
        return TENREC_ESHUTDOWN;
    }
    p->queued++;
    if (p->leader && thread_state.waiter == p->leader) {
        pool_put(p, t);
        p->uncalled++;
        waiter_wake(p->leader);
    } else if (pool_grow(p)) {
        pool_put(p, t);
        pool_signal(p);
    } else {
        p->queued--;
        st = p->threads > 0 ? TENREC_EAGAIN : TENREC_EOS;
    }
    pthread_mutex_unlock(&p->lock);
    if (st == TENREC_EAGAIN)
        pool_tell(p);
    return st;
}

void pool_lead_by(struct pool *p, pool_lead_fn *lead, void *arg)
{
    pthread_mutex_lock(&p->lock);
    p->lead = lead;
    p->lead_arg = arg;
    while (!lead && p->leader) {
        waiter_wake(p->leader);
        pthread_cond_wait(&p->gone, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
}

/* Moves the queued tasks out. Lock held. */
static struct pool_task *pool_empty(struct pool *p)
{
    struct pool_task *queued = p->first;

    for (const struct pool_task *t = queued; t; t = t->next)
        p->bytes -= t->bytes;
    p->first = NULL;
    p->last = &p->first;
    p->queued = p->uncalled = 0;
    atomic_store(&p->full, false);
    return queued;
}

struct pool_task *pool_stop(struct pool *p)
{
    struct pool_task *queued;

    pthread_mutex_lock(&p->lock);
    queued = pool_empty(p);
    p->closed = true;
    pthread_mutex_unlock(&p->lock);
    return queued;
}

void pool_resume(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->closed = false;
    pthread_mutex_unlock(&p->lock);
}

bool pool_full(const struct pool *p)
{
    return atomic_load_explicit(&p->full, memory_order_relaxed);
}

/* Refuses tasks that no thread is left for. */
static void pool_refuse(struct pool *p, struct pool_task *first, bool drained)
{
    struct pool_task *next;

    if (drained && p->drained)
        p->drained(p->arg);
    pool_tell(p);
    for (struct pool_task *t = first; t; t = next) {
        next = t->next;
        t->refused = true;
        t->fn(t);
    }
}

void pool_block_begin(struct pool *p)
{
    struct pool_task *refused = NULL;
    bool full;

    pthread_mutex_lock(&p->lock);
    stall_set(&p->stalls, pool_self, false);
    p->blocked++;
    full = pool_full(p);
    if (!pool_grow(p))
        refused = pool_empty(p);
    pthread_mutex_unlock(&p->lock);
    if (refused)
        pool_refuse(p, refused, full);
}

void pool_block_end(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->blocked--;
    stall_set(&p->stalls, pool_self, true);
    pthread_mutex_unlock(&p->lock);
}

struct pool_counts pool_count(struct pool *p)
{
    struct pool_counts n;

    pthread_mutex_lock(&p->lock);
    n = (struct pool_counts){ p->threads, p->idle + (p->leader != NULL), p->blocked, p->queued };
    pthread_mutex_unlock(&p->lock);
    return n;
}

void pool_close(struct pool *p)
{
    if (!p)
        return;
    pool_lead_by(p, NULL, NULL);
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->work);
    pthread_cond_broadcast(&p->watch);
    while (p->threads > 0)
        pthread_cond_wait(&p->gone, &p->lock);
    pthread_mutex_unlock(&p->lock);
    if (p->has_ended)
        pthread_join(p->ended, NULL);
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->watch);
    pthread_cond_destroy(&p->gone);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
