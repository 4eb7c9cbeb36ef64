/* SPDX-License-Identifier: Apache-2.0 */
#include "core/backend/agent_timer.h"

#include "../testing.h"
#include "core/base/clock.h"
#include "core/base/loop.h"

#include <semaphore.h>
#include <stdatomic.h>

struct fixture {
    struct loop *loop;
    struct agent_timers after;
    struct agent_timers_owner one, two;
};

static struct fixture f;
static atomic_int order[8], n_order;

static void set_up(void)
{
    tenrec_error err;

    f = (struct fixture){ 0 };
    atomic_store(&n_order, 0);
    assert_status(loop_open(&f.loop, &err), &err);
    assert_status(agent_timers_init(&f.after, f.loop, &err), &err);
}

static void tear_down(void)
{
    agent_timers_end(&f.after, &f.one);
    agent_timers_end(&f.after, &f.two);
    agent_timers_finish(&f.after);
    loop_close(f.loop);
}

static void note(void *arg)
{
    atomic_store(&order[atomic_fetch_add(&n_order, 1)], (int)(intptr_t)arg);
}

static void add(struct agent_timers_owner *owner, uint64_t ms, int what)
{
    assert_int_equal(agent_timers_add(&f.after, owner, ms, note, (void *)(intptr_t)what),
                     TENREC_OK);
}

TEST_WITH(after_runs_a_timer_when_due, set_up, tear_down)
{
    add(&f.one, 3600000, 3);
    add(&f.one, 1, 1);
    add(&f.two, 0, 2);
    assert_becomes(atomic_load(&n_order) == 2);
}

TEST_WITH(after_end_keeps_the_order_of_time, set_up, tear_down)
{
    add(&f.one, 10800000, 3);
    add(&f.one, 3600000, 1);
    add(&f.two, 1, 0);
    add(&f.one, 7200000, 2);
    assert_becomes(atomic_load(&n_order) == 1);
    agent_timers_end(&f.after, &f.one);
    for (int i = 0; i < 4; i++)
        assert_int_equal(atomic_load(&order[i]), i);
}

TEST_WITH(after_end_runs_only_timers_of_its_owner, set_up, tear_down)
{
    add(&f.one, 3600000, 1);
    add(&f.two, 3600000, 2);
    add(&f.one, 3600000, 3);
    agent_timers_end(&f.after, &f.one);
    assert_int_equal(atomic_load(&n_order), 2);
    assert_int_equal(atomic_load(&order[0]), 1);
    assert_int_equal(atomic_load(&order[1]), 3);
}

TEST_WITH(after_add_refuses_when_its_owner_ended, set_up, tear_down)
{
    agent_timers_end(&f.after, &f.one);
    assert_int_equal(agent_timers_add(&f.after, &f.one, 0, note, NULL), TENREC_ESHUTDOWN);
    add(&f.two, 0, 2);
    assert_becomes(atomic_load(&n_order) == 1);
}

static void hold(uint64_t at_ns, bool sends, int what)
{
    assert_int_equal(
        agent_timers_hold(&f.after, &f.one, at_ns, sends, note, (void *)(intptr_t)what), TENREC_OK);
}

TEST_WITH(after_holds_keep_the_order_of_nanoseconds, set_up, tear_down)
{
    const uint64_t soon = clock_deadline_ms(20);

    hold(soon + 2, true, 3);
    hold(soon, true, 0);
    hold(soon + 1, false, 1);
    hold(soon + 1, true, 2);
    assert_becomes(atomic_load(&n_order) == 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(atomic_load(&order[i]), i);
}

TEST_WITH(after_drain_waits_for_the_holds_that_send, set_up, tear_down)
{
    const uint64_t late = clock_deadline_ms(3600000);

    hold(late, false, 4);
    add(&f.one, 3600000, 5);
    assert_int_equal(agent_timers_drain(&f.after, &f.one, CLOCK_NEVER), 0);
    for (int i = 0; i < 3; i++)
        hold(clock_deadline_ms(20), true, i);
    assert_int_equal(agent_timers_drain(&f.after, &f.one, CLOCK_NEVER), 0);
    assert_int_equal(atomic_load(&n_order), 3);
    hold(late, true, 3);
    assert_int_equal(agent_timers_drain(&f.after, &f.one, clock_deadline_ms(1)), 1);
    assert_int_equal(agent_timers_drain(&f.after, &f.two, CLOCK_NEVER), 0);
    agent_timers_end(&f.after, &f.one);
    assert_int_equal(agent_timers_drain(&f.after, &f.one, CLOCK_NEVER), 0);
    assert_int_equal(atomic_load(&n_order), 6);
}

static atomic_bool entered;
static sem_t leave;

static void stay(void *arg)
{
    (void)arg;
    atomic_store(&entered, true);
    sem_wait(&leave);
    note((void *)1);
}

static void *let_go(void *arg)
{
    (void)arg;
    sem_post(&leave);
    return NULL;
}

TEST_WITH(after_end_waits_for_a_running_timer, set_up, tear_down)
{
    pthread_t thread;

    assert_int_equal(sem_init(&leave, 0, 0), 0);
    assert_int_equal(agent_timers_add(&f.after, &f.one, 0, stay, NULL), TENREC_OK);
    assert_becomes(atomic_load(&entered));
    assert_int_equal(pthread_create(&thread, NULL, let_go, NULL), 0);
    agent_timers_end(&f.after, &f.one);
    assert_int_equal(atomic_load(&n_order), 1);
    pthread_join(thread, NULL);
    sem_destroy(&leave);
}

static void nothing(void *arg)
{
    (void)arg;
}

static void *add_many(void *arg)
{
    for (int i = 0; i < 500; i++)
        agent_timers_add(&f.after, arg, (uint64_t)(i % 3), nothing, NULL);
    return NULL;
}

TEST_WITH(after_add_works_from_many_threads, set_up, tear_down)
{
    struct agent_timers_owner *owners[] = { &f.one, &f.two, &f.one, &f.two };
    pthread_t thread[4];

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, add_many, owners[i]), 0);
    agent_timers_end(&f.after, &f.one);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    agent_timers_end(&f.after, &f.two);
    assert_null(f.after.first);
}
