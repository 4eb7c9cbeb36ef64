/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tensor/storage_pool.h"

#include "core/base/memory.h"
#include "core/base/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SHARED_FROM ((size_t)1 << 20) /* below, waking the helper takes as long as it saves */
#define PIECE ((size_t)64 << 10)      /* bytes that a thread claims at once */

enum helper { HELPER_NONE, HELPER_RUNS, HELPER_REFUSED };

struct parallel_copy {
    pthread_mutex_t use; /* held by the thread with the helper */

    char *to;         /* of the copy under way; set with use and lock */
    const char *from; /* likewise */
    size_t bytes;     /* likewise */
    atomic_size_t taken;

    pthread_mutex_t lock;
    pthread_cond_t changed; /* all under lock: */
    bool open;              /* pieces are left */
    bool helps;             /* the helper copies */
    bool stop;

    pthread_t thread; /* under use, as is: */
    enum helper helper;
};

static void copy_pieces(struct parallel_copy *c)
{
    size_t at;

    while ((at = atomic_fetch_add_explicit(&c->taken, PIECE, memory_order_relaxed)) < c->bytes)
        memcpy(c->to + at, c->from + at, c->bytes - at < PIECE ? c->bytes - at : PIECE);
}

static void *parallel_copy_help(void *arg)
{
    struct parallel_copy *c = arg;

    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (!c->open && !c->stop)
            pthread_cond_wait(&c->changed, &c->lock);
        if (c->stop)
            break;
        c->helps = true;
        pthread_mutex_unlock(&c->lock);
        copy_pieces(c);
        pthread_mutex_lock(&c->lock);
        c->helps = false;
        c->open = false; /* no piece is left */
        pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static bool has_many_cpus(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) > 1;
}

static bool has_helper(struct parallel_copy *c)
{
    if (c->helper == HELPER_NONE)
        c->helper =
            has_many_cpus() && threads_start(&c->thread, "tenrec-copy", parallel_copy_help, c) == 0
                ? HELPER_RUNS
                : HELPER_REFUSED;
    return c->helper == HELPER_RUNS;
}

static void copy_together(struct parallel_copy *c, void *to, const void *from, size_t bytes)
{
    pthread_mutex_lock(&c->lock);
    c->to = to;
    c->from = from;
    c->bytes = bytes;
    atomic_store_explicit(&c->taken, 0, memory_order_relaxed);
    c->open = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    copy_pieces(c);
    pthread_mutex_lock(&c->lock);
    c->open = false;
    while (c->helps)
        pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

void parallel_copy_run(struct parallel_copy *c, void *to, const void *from, size_t bytes)
{
    if (bytes < SHARED_FROM || pthread_mutex_trylock(&c->use) != 0) {
        memcpy(to, from, bytes);
        return;
    }
    if (has_helper(c))
        copy_together(c, to, from, bytes);
    else
        memcpy(to, from, bytes);
    pthread_mutex_unlock(&c->use);
}

tenrec_status parallel_copy_open(struct parallel_copy **ret, tenrec_error *err)
{
    struct parallel_copy *c = memory_new(1, sizeof *c);

    if (!c)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for copies");
    pthread_mutex_init(&c->use, NULL);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    *ret = c;
    return TENREC_OK;
}

void parallel_copy_close(struct parallel_copy *c)
{
    if (!c)
        return;
    if (c->helper == HELPER_RUNS) {
        pthread_mutex_lock(&c->lock);
        c->stop = true;
        pthread_cond_broadcast(&c->changed);
        pthread_mutex_unlock(&c->lock);
        pthread_join(c->thread, NULL);
    }
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    pthread_mutex_destroy(&c->use);
    free(c);
}
