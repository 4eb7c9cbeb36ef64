/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/after.h"

#include "../testing.h"
#include "base/loop.h"

#include <semaphore.h>
#include <stdatomic.h>

struct fixture {
    struct loop *loop;
    struct after after;
    struct after_owner one, two;
};

static struct fixture f;
static atomic_int order[8], n_order;

static int set_up(void **state)
{
    tenrec_error err;

    (void)state;
    f = (struct fixture){ 0 };
    atomic_store(&n_order, 0);
    if (loop_open(&f.loop, &err) != TENREC_OK)
        return -1;
    return after_init(&f.after, f.loop, &err);
}

static int tear_down(void **state)
{
    (void)state;
    after_end(&f.after, &f.one);
    after_end(&f.after, &f.two);
    after_finish(&f.after);
    loop_close(f.loop);
    return 0;
}

static void note(void *arg)
{
    atomic_store(&order[atomic_fetch_add(&n_order, 1)], (int)(intptr_t)arg);
}

static void add(struct after_owner *owner, uint64_t ms, int what)
{
    assert_int_equal(after_add(&f.after, owner, ms, note, (void *)(intptr_t)what), TENREC_OK);
}

static void after_runs_when_it_is_due(void **state)
{
    (void)state;
    add(&f.one, 3600000, 3);
    add(&f.one, 1, 1);
    add(&f.two, 0, 2);
    assert_becomes(atomic_load(&n_order) == 2);
}

static void after_end_keeps_the_order_of_time(void **state)
{
    (void)state;
    add(&f.one, 10800000, 3);
    add(&f.one, 3600000, 1);
    add(&f.two, 1, 0);
    add(&f.one, 7200000, 2);
    assert_becomes(atomic_load(&n_order) == 1);
    after_end(&f.after, &f.one);
    for (int i = 0; i < 4; i++)
        assert_int_equal(atomic_load(&order[i]), i);
}

static void after_end_runs_what_is_left_of_its_owner_only(void **state)
{
    (void)state;
    add(&f.one, 3600000, 1);
    add(&f.two, 3600000, 2);
    add(&f.one, 3600000, 3);
    after_end(&f.after, &f.one);
    assert_int_equal(atomic_load(&n_order), 2);
    assert_int_equal(atomic_load(&order[0]), 1);
    assert_int_equal(atomic_load(&order[1]), 3);
}

static void after_add_refuses_when_its_owner_ended(void **state)
{
    (void)state;
    after_end(&f.after, &f.one);
    assert_int_equal(after_add(&f.after, &f.one, 0, note, NULL), TENREC_ESHUTDOWN);
    add(&f.two, 0, 2);
    assert_becomes(atomic_load(&n_order) == 1);
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

static void after_end_waits_for_the_one_that_runs(void **state)
{
    pthread_t thread;

    (void)state;
    assert_int_equal(sem_init(&leave, 0, 0), 0);
    assert_int_equal(after_add(&f.after, &f.one, 0, stay, NULL), TENREC_OK);
    assert_becomes(atomic_load(&entered));
    assert_int_equal(pthread_create(&thread, NULL, let_go, NULL), 0);
    after_end(&f.after, &f.one);
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
        after_add(&f.after, arg, (uint64_t)(i % 3), nothing, NULL);
    return NULL;
}

static void after_add_works_from_many_threads(void **state)
{
    struct after_owner *owners[] = { &f.one, &f.two, &f.one, &f.two };
    pthread_t thread[4];

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, add_many, owners[i]), 0);
    after_end(&f.after, &f.one);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    after_end(&f.after, &f.two);
    assert_null(f.after.first);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
    const struct CMUnitTest test[] = {
        CASE(after_runs_when_it_is_due),
        CASE(after_end_keeps_the_order_of_time),
        CASE(after_end_runs_what_is_left_of_its_owner_only),
        CASE(after_add_refuses_when_its_owner_ended),
        CASE(after_end_waits_for_the_one_that_runs),
        CASE(after_add_works_from_many_threads),
    };

    return cmocka_run_group_tests_name("after", test, NULL, NULL);
}
