/* SPDX-License-Identifier: Apache-2.0 */
/* pool_test.c - threads that start on demand. */
#include "future/pool.h"
#include "future/thread_state.h"

#include "../testing.h"

#include <pthread.h>
#include <stdatomic.h>

struct job {
    struct pool_task task; /* first */
    struct pool *pool;
    pthread_barrier_t *gate;
    bool blocks;
    atomic_int *done;
};

static void run_job(struct pool_task *t)
{
    struct job *j = (struct job *)t;

    if (j->blocks)
        pool_block_begin(j->pool);
    if (j->gate)
        pthread_barrier_wait(j->gate);
    if (j->blocks)
        pool_block_end(j->pool);
    atomic_fetch_add(j->done, 1);
}

static struct pool *open_pool(unsigned threads, size_t max_queued, void (*drained)(void *),
                              void *arg)
{
    struct pool *p = NULL;

    assert_int_equal(pool_open(threads, max_queued, drained, arg, &p, NULL), TENREC_OK);
    return p;
}

TEST(pool_runs_all_tasks_when_closed)
{
    struct pool *p = open_pool(3, 1000, NULL, NULL);
    static struct job job[200];
    atomic_int done = 0;

    for (size_t i = 0; i < 200; i++) {
        job[i] = (struct job){ { NULL, run_job }, p, NULL, false, &done };
        assert_int_equal(pool_run(p, &job[i].task), TENREC_OK);
    }
    assert_true(pool_count(p).threads <= 3);
    pool_close(p);
    assert_int_equal(atomic_load(&done), 200);
}

TEST(pool_starts_no_thread_when_there_is_no_work)
{
    struct pool *p = open_pool(8, 10, NULL, NULL);

    assert_int_equal(pool_count(p).threads, 0);
    pool_close(p);
}

/* One configured thread; four tasks that wait for each other inside of a
 * Tenrec wait: each blocked one is replaced. */
TEST(pool_replaces_a_thread_that_blocks)
{
    struct pool *p = open_pool(1, 10, NULL, NULL);
    pthread_barrier_t gate;
    struct job job[4];
    atomic_int done = 0;

    pthread_barrier_init(&gate, NULL, 4);
    for (size_t i = 0; i < 4; i++) {
        job[i] = (struct job){ { NULL, run_job }, p, &gate, true, &done };
        assert_int_equal(pool_run(p, &job[i].task), TENREC_OK);
    }
    pool_close(p);
    assert_int_equal(atomic_load(&done), 4);
    pthread_barrier_destroy(&gate);
}

static void count_drained(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

TEST(pool_tells_when_full_and_when_drained)
{
    atomic_int done = 0, drained = 0;
    struct pool *p = open_pool(1, 4, count_drained, &drained);
    pthread_barrier_t gate;
    struct job job[6];

    pthread_barrier_init(&gate, NULL, 2);
    for (size_t i = 0; i < 6; i++) {
        job[i] = (struct job){ { NULL, run_job }, p, i == 0 ? &gate : NULL, false, &done };
        assert_int_equal(pool_run(p, &job[i].task), TENREC_OK);
    }
    assert_true(pool_full(p));
    pthread_barrier_wait(&gate);
    pool_close(p);
    assert_int_equal(atomic_load(&done), 6);
    assert_int_equal(atomic_load(&drained), 1);
    pthread_barrier_destroy(&gate);
}
