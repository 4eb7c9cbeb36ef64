/* SPDX-License-Identifier: Apache-2.0 */
/* pool_test.c - threads that start on demand. */
#include "rpc/future/pool.h"
#include "rpc/future/stall.h"
#include "rpc/future/thread_state.h"

#include "../testing.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
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
        job[i] = (struct job){ { .fn = run_job }, p, NULL, false, &done };
        assert_int_equal(pool_run(p, &job[i].task), TENREC_OK);
    }
    assert_true(pool_count(p).threads <= 3 + 1); /* one may watch the others */
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
        job[i] = (struct job){ { .fn = run_job }, p, &gate, true, &done };
        assert_int_equal(pool_run(p, &job[i].task), TENREC_OK);
    }
    pool_close(p);
    assert_int_equal(atomic_load(&done), 4);
    pthread_barrier_destroy(&gate);
}

/* Two configured threads; six tasks that wait for each other in a lock of their own. */
TEST(pool_starts_threads_behind_tasks_that_block_outside_of_tenrec)
{
    struct pool *p = open_pool(2, 10, NULL, NULL);
    pthread_barrier_t gate;
    struct job job[6];
    atomic_int done = 0;

    pthread_barrier_init(&gate, NULL, 6);
    for (size_t i = 0; i < 6; i++) {
        job[i] = (struct job){ { .fn = run_job }, p, &gate, false, &done };
        assert_int_equal(pool_run(p, &job[i].task), TENREC_OK);
    }
    pool_close(p);
    assert_int_equal(atomic_load(&done), 6);
    pthread_barrier_destroy(&gate);
}

static void use_cpu(void)
{
    struct timespec now;
    int64_t used = 0, begin;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    begin = now.tv_sec * 1000000000 + now.tv_nsec;
    while (used < (int64_t)STALL_NS) {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        used = now.tv_sec * 1000000000 + now.tv_nsec - begin;
    }
}

TEST(stall_is_found_only_where_no_thread_uses_cpu)
{
    struct stalls s = { .first = NULL };
    struct stall_thread runs[3], rests;

    for (int i = 0; i < 3; i++) {
        stall_add(&s, &runs[i]);
        stall_set(&s, &runs[i], true);
    }
    stall_add(&s, &rests);
    stall_find(&s, 10); /* their tasks have just begun */
    assert_int_equal(s.n, 0);
    stall_mark(&s);
    use_cpu();
    stall_find(&s, 10);
    assert_int_equal(s.n, 0);
    stall_mark(&s);
    stall_find(&s, 2);
    assert_int_equal(s.n, 2);
    stall_find(&s, 10);
    assert_int_equal(s.n, 3);
    stall_set(&s, &runs[1], false); /* its task has ended */
    assert_int_equal(s.n, 2);
    use_cpu();
    stall_find(&s, 10);
    assert_int_equal(s.n, 0);
    for (int i = 0; i < 3; i++)
        stall_remove(&s, &runs[i]);
    stall_remove(&s, &rests);
    assert_null(s.first);
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
        job[i] = (struct job){ { .fn = run_job }, p, i == 0 ? &gate : NULL, false, &done };
        assert_int_equal(pool_run(p, &job[i].task), TENREC_OK);
    }
    assert_true(pool_full(p));
    pthread_barrier_wait(&gate);
    pool_close(p);
    assert_int_equal(atomic_load(&done), 6);
    assert_int_equal(atomic_load(&drained), 1);
    pthread_barrier_destroy(&gate);
}

/* Four tasks of 10 bytes for one thread, which holds the first until the gate is passed. */
static void run_held(struct pool *p, struct job *job, pthread_barrier_t *gate, atomic_int *done)
{
    for (size_t i = 0; i < 4; i++) {
        job[i] =
            (struct job){ { .fn = run_job, .bytes = 10 }, p, i == 0 ? gate : NULL, false, done };
        assert_int_equal(pool_run(p, &job[i].task), TENREC_OK);
    }
}

TEST(pool_is_full_when_its_tasks_hold_too_many_bytes)
{
    atomic_int done = 0, drained = 0;
    struct pool *p = open_pool(1, 100, count_drained, &drained);
    pthread_barrier_t gate;
    struct job job[4];

    pthread_barrier_init(&gate, NULL, 2);
    pool_limit_bytes(p, 39);
    run_held(p, job, &gate, &done);
    assert_true(pool_full(p));
    pthread_barrier_wait(&gate);
    assert_becomes(atomic_load(&drained) == 1);
    assert_false(pool_full(p));
    assert_becomes(pool_count(p).idle == 1);
    pool_limit_bytes(p, 40); /* what has run holds nothing */
    run_held(p, job, &gate, &done);
    assert_false(pool_full(p));
    pthread_barrier_wait(&gate);
    pool_close(p);
    assert_int_equal(atomic_load(&done), 8);
    pthread_barrier_destroy(&gate);
}

/* It may wait for a call that would not be read. */
TEST(pool_is_not_full_while_a_running_task_alone_holds_too_many_bytes)
{
    atomic_int done = 0;
    struct pool *p = open_pool(1, 100, NULL, NULL);
    pthread_barrier_t gate;
    struct job job = { { .fn = run_job, .bytes = 1000 }, p, &gate, false, &done };

    pthread_barrier_init(&gate, NULL, 2);
    pool_limit_bytes(p, 10);
    assert_int_equal(pool_run(p, &job.task), TENREC_OK);
    assert_becomes(pool_count(p).queued == 0);
    assert_false(pool_full(p));
    pthread_barrier_wait(&gate);
    pool_close(p);
    pthread_barrier_destroy(&gate);
}

/* ---- threads that all block ---------------------------------------------------------------- */

struct blocking_job {
    struct pool_task task; /* first */
    struct pool *pool;
    sem_t *begun; /* posted at its begin, and when it blocks */
    sem_t *block; /* it blocks then; NULL: at once */
    sem_t *end;
    atomic_int *refused;
};

static void run_blocking(struct pool_task *t)
{
    struct blocking_job *j = (struct blocking_job *)t;

    if (t->refused) {
        atomic_fetch_add(j->refused, 1);
        return;
    }
    sem_post(j->begun);
    if (j->block)
        sem_wait(j->block);
    pool_block_begin(j->pool);
    sem_post(j->begun);
    sem_wait(j->end);
    pool_block_end(j->pool);
}

static void await_posts(sem_t *s, int n)
{
    for (int i = 0; i < n; i++)
        assert_int_equal(sem_wait(s), 0);
}

/* Three threads are the most. The last blocks while two tasks are queued: they are refused then,
 * as is a later one. */
TEST(pool_refuses_tasks_when_all_threads_block)
{
    struct pool *p = open_pool(1, 2, NULL, NULL);
    atomic_int refused = 0;
    sem_t begun, block, end;
    struct blocking_job job[6];
    tenrec_error err;

    sem_init(&begun, 0, 0);
    sem_init(&block, 0, 0);
    sem_init(&end, 0, 0);
    for (int i = 0; i < 6; i++)
        job[i] = (struct blocking_job){ { .fn = run_blocking }, p,    &begun,
                                        i == 2 ? &block : NULL, &end, &refused };
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pool_run(p, &job[i].task), TENREC_OK);
        await_posts(&begun, 2);
    }
    assert_int_equal(pool_run(p, &job[2].task), TENREC_OK);
    await_posts(&begun, 1);
    assert_int_equal(pool_run(p, &job[3].task), TENREC_OK);
    assert_int_equal(pool_run(p, &job[4].task), TENREC_OK);
    assert_int_equal(atomic_load(&refused), 0);
    sem_post(&block);
    assert_becomes(atomic_load(&refused) == 2);
    assert_int_equal(pool_run(p, &job[5].task), TENREC_EAGAIN);
    assert_int_equal(pool_refusal(p, "f", &err), TENREC_EAGAIN);
    assert_text_has(err.text, "3 functions");
    assert_int_equal(pool_count(p).queued, 0);
    for (int i = 0; i < 3; i++)
        sem_post(&end);
    pool_close(p);
}

/* ---- a thread that leads ------------------------------------------------------------------ */

/* The messages of a loop: each round of a leader queues the next burst. */
struct loop {
    struct pool *pool;
    struct job *job;
    size_t n, next, burst;
    bool unsupported;
    atomic_int rounds;
    sem_t leads; /* posted with each round */
};

static tenrec_status loop_lead(void *arg, const struct tenrec_wait *wait)
{
    struct loop *l = arg;
    struct pollfd p = { .fd = wait->wake_fd, .events = POLLIN };

    atomic_fetch_add(&l->rounds, 1);
    sem_post(&l->leads);
    if (l->unsupported)
        return TENREC_EUNSUPPORTED;
    for (size_t i = 0; i < l->burst && l->next < l->n; i++)
        assert_int_equal(pool_run(l->pool, &l->job[l->next++].task), TENREC_OK);
    while (!__atomic_load_n(wait->done, __ATOMIC_ACQUIRE))
        poll(&p, 1, 1000);
    return TENREC_OK;
}

struct noting_job {
    struct pool_task task; /* first */
    pthread_t thread;
    sem_t ran;
};

static void run_noting(struct pool_task *t)
{
    struct noting_job *j = (struct noting_job *)t;

    j->thread = pthread_self();
    sem_post(&j->ran);
}

/* Starts the pool's first thread, which leads once it has run this task. */
static void start_leading(struct pool *p, struct loop *l)
{
    struct noting_job first = { .task = { .fn = run_noting } };

    l->pool = p;
    sem_init(&l->leads, 0, 0);
    sem_init(&first.ran, 0, 0);
    pool_lead_by(p, loop_lead, l);
    assert_int_equal(pool_run(p, &first.task), TENREC_OK);
    assert_int_equal(sem_wait(&first.ran), 0);
    assert_int_equal(sem_wait(&l->leads), 0);
    sem_destroy(&first.ran);
}

/* The loop's tasks wait for one another: other threads are called for those behind the first. */
TEST(pool_leader_calls_threads_for_a_burst)
{
    struct pool *p = open_pool(4, 10, NULL, NULL);
    pthread_barrier_t gate;
    struct job job[4];
    atomic_int done = 0;
    struct loop l = { .job = job, .n = 4, .burst = 4 };

    pthread_barrier_init(&gate, NULL, 4);
    for (size_t i = 0; i < 4; i++)
        job[i] = (struct job){ { .fn = run_job }, p, &gate, false, &done };
    start_leading(p, &l);
    assert_int_equal(sem_wait(&l.leads), 0); /* a thread leads again: all have passed the gate */
    pool_close(p);
    assert_int_equal(atomic_load(&done), 4);
    pthread_barrier_destroy(&gate);
    sem_destroy(&l.leads);
}

/* With one thread in the pool, which sleeps in the loop. */
TEST(pool_wakes_the_leader_for_a_task_of_another_thread)
{
    struct pool *p = open_pool(1, 10, NULL, NULL);
    struct loop l = { .n = 0 };
    struct noting_job j[2] = { { .task = { .fn = run_noting } }, { .task = { .fn = run_noting } } };

    start_leading(p, &l);
    for (int i = 0; i < 2; i++) {
        sem_init(&j[i].ran, 0, 0);
        assert_int_equal(pool_run(p, &j[i].task), TENREC_OK);
        assert_int_equal(sem_wait(&j[i].ran), 0);
        assert_int_equal(sem_wait(&l.leads), 0);
        sem_destroy(&j[i].ran);
    }
    assert_true(pthread_equal(j[0].thread, j[1].thread));
    assert_int_equal(pool_count(p).threads, 1);
    pool_close(p);
    sem_destroy(&l.leads);
}

TEST(pool_works_without_a_loop_to_lead)
{
    struct pool *p = open_pool(1, 10, NULL, NULL);
    struct loop l = { .unsupported = true };
    struct noting_job j = { .task = { .fn = run_noting } };

    start_leading(p, &l);
    sem_init(&j.ran, 0, 0);
    assert_int_equal(pool_run(p, &j.task), TENREC_OK);
    assert_int_equal(sem_wait(&j.ran), 0);
    pool_close(p);
    assert_int_equal(atomic_load(&l.rounds), 1);
    sem_destroy(&j.ran);
    sem_destroy(&l.leads);
}

TEST(pool_leads_no_more_once_told)
{
    struct pool *p = open_pool(2, 10, NULL, NULL);
    struct loop l = { .n = 0 };
    struct noting_job j = { .task = { .fn = run_noting } };
    int rounds;

    start_leading(p, &l);
    pool_lead_by(p, NULL, NULL);
    rounds = atomic_load(&l.rounds);
    sem_init(&j.ran, 0, 0);
    assert_int_equal(pool_run(p, &j.task), TENREC_OK);
    assert_int_equal(sem_wait(&j.ran), 0);
    pool_close(p);
    assert_int_equal(atomic_load(&l.rounds), rounds);
    sem_destroy(&j.ran);
    sem_destroy(&l.leads);
}
