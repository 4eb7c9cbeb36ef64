/* SPDX-License-Identifier: Apache-2.0 */
#include "future/pool.h"

#include "base/clock.h"
#include "base/memory.h"
#include "future/thread_state.h"
#include "runtime/threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { LINGER_MS = 1000, EXTRA_MAX = 256 };

struct pool {
    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t work;  /* a task was queued, or stop */
    pthread_cond_t gone;  /* a thread exited */
    struct pool_task *first, **last;
    size_t queued;
    size_t max_queued;
    unsigned max_threads;
    unsigned threads; /* alive */
    unsigned idle;    /* of those, waiting for work */
    unsigned blocked; /* of those, in a Tenrec wait */
    bool stop;
    bool closed;     /* refuses tasks */
    pthread_t ended; /* to be joined, if has_ended */
    bool has_ended;
    atomic_bool full; /* written with the lock */
    void (*drained)(void *arg);
    void *arg;
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
    p->drained = drained;
    p->arg = arg;
    pthread_mutex_init(&p->lock, NULL);
    clock_cond_init(&p->work);
    pthread_cond_init(&p->gone, NULL);
    *ret = p;
    return TENREC_OK;
}

/* Waits for work. Returns NULL if this thread should exit. Lock held. */
static struct pool_task *next_task(struct pool *p)
{
    uint64_t until = 0;
    struct pool_task *t;
    bool timely = true;

    for (;;) {
        /* Too many threads: a blocked one has resumed. */
        if (p->threads - p->blocked > p->max_threads)
            return NULL;
        if (p->first)
            break;
        if (p->stop || !timely)
            return NULL;
        if (!until)
            until = clock_deadline_ms(LINGER_MS);
        p->idle++;
        timely = clock_cond_wait(&p->work, &p->lock, until);
        p->idle--;
    }
    t = p->first;
    p->first = t->next;
    if (!p->first)
        p->last = &p->first;
    p->queued--;
    return t;
}

static void *pool_thread_main(void *arg)
{
    struct pool *p = arg;
    struct pool_task *t;
    pthread_t former;
    bool join;

    thread_state.pool = p;
    pthread_mutex_lock(&p->lock);
    while ((t = next_task(p))) {
        bool drained = pool_full(p) && p->queued <= p->max_queued / 2;
        if (drained)
            atomic_store(&p->full, false);
        pthread_mutex_unlock(&p->lock);
        if (drained && p->drained)
            p->drained(p->arg);
        t->fn(t);
        pthread_mutex_lock(&p->lock);
    }
    /* Each thread that exits joins the thread that exited before it, and pool_close joins the last:
     * no thread is leaked. */
    former = p->ended;
    join = p->has_ended;
    p->ended = pthread_self();
    p->has_ended = true;
    p->threads--;
    pthread_cond_broadcast(&p->gone);
    pthread_mutex_unlock(&p->lock);
    if (join)
        pthread_join(former, NULL);
    return NULL;
}

/* Starts another thread if the queue needs one. Returns false if the pool has no thread. Lock held.
 */
static bool pool_grow(struct pool *p)
{
    pthread_t thread;

    if (p->queued <= p->idle)
        return true;
    if (p->threads - p->blocked >= p->max_threads || p->blocked > EXTRA_MAX)
        return p->threads > 0;
    if (threads_start(&thread, "tenrec-pool", pool_thread_main, p) != 0)
        return p->threads > 0;
    p->threads++;
    return true;
}

tenrec_status pool_run(struct pool *p, struct pool_task *t)
{
    tenrec_status st = TENREC_OK;

    t->next = NULL;
    pthread_mutex_lock(&p->lock);
    if (p->closed) {
        pthread_mutex_unlock(&p->lock);
        return TENREC_ESHUTDOWN;
    }
    p->queued++;
    if (!pool_grow(p)) {
        p->queued--;
        st = TENREC_EOS;
    } else {
        *p->last = t;
        p->last = &t->next;
        if (p->queued >= p->max_queued)
            atomic_store(&p->full, true);
        pthread_cond_signal(&p->work);
    }
    pthread_mutex_unlock(&p->lock);
    return st;
}

struct pool_task *pool_stop(struct pool *p)
{
    struct pool_task *queued;

    pthread_mutex_lock(&p->lock);
    queued = p->first;
    p->first = NULL;
    p->last = &p->first;
    p->queued = 0;
    p->closed = true;
    atomic_store(&p->full, false);
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

void pool_block_begin(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->blocked++;
    pool_grow(p);
    pthread_mutex_unlock(&p->lock);
}

void pool_block_end(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->blocked--;
    pthread_mutex_unlock(&p->lock);
}

struct pool_counts pool_count(struct pool *p)
{
    struct pool_counts n;

    pthread_mutex_lock(&p->lock);
    n = (struct pool_counts){ p->threads, p->idle, p->blocked, p->queued };
    pthread_mutex_unlock(&p->lock);
    return n;
}

void pool_close(struct pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->work);
    while (p->threads > 0)
        pthread_cond_wait(&p->gone, &p->lock);
    pthread_mutex_unlock(&p->lock);
    if (p->has_ended)
        pthread_join(p->ended, NULL);
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->gone);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
