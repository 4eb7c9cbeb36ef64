/* SPDX-License-Identifier: Apache-2.0 */
/* future_test.c - futures that the program completes itself. */
#include "core/base/clock.h"
#include "rpc/future/thread_state.h"

#include "../testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <tenrec/future.h>

enum { LONG_MS = 20000 }; /* only a broken test waits so long */

static struct tenrec_future *make(void)
{
    struct tenrec_future *f = NULL;

    assert_int_equal(tenrec_future_new(&f, NULL), TENREC_OK);
    return f;
}

static void set_int(struct tenrec_future *f, int64_t i)
{
    struct tenrec_value v = tenrec_value_int(i);

    assert_int_equal(tenrec_future_set_value(f, &v, NULL), TENREC_OK);
}

TEST(future_has_its_value_when_set)
{
    struct tenrec_future *f = make();

    assert_false(tenrec_future_done(f));
    assert_null(tenrec_future_value(f));
    set_int(f, 42);
    assert_true(tenrec_future_done(f));
    assert_int_equal(tenrec_future_wait(f, LONG_MS, NULL), TENREC_OK);
    assert_int_equal(tenrec_future_value(f)->u.integer, 42);
    assert_null(tenrec_future_error(f));
    tenrec_future_drop(f);
}

TEST(future_refuses_a_second_value_when_done)
{
    struct tenrec_value v = tenrec_value_int(2);
    struct tenrec_future *f = make();
    tenrec_error why, err;

    set_int(f, 1);
    tenrec_fail(&why, TENREC_EREMOTE, "too late");
    assert_int_equal(tenrec_future_set_value(f, &v, &err), TENREC_EEXIST);
    assert_int_equal(tenrec_future_set_error(f, &why, &err), TENREC_EEXIST);
    assert_int_equal(tenrec_future_value(f)->u.integer, 1);
    tenrec_future_drop(f);
}

TEST(future_tells_its_error_when_failed)
{
    struct tenrec_future *f = make();
    tenrec_error why, err;

    tenrec_fail(&why, TENREC_EREMOTE, "it broke");
    assert_int_equal(tenrec_future_set_error(f, &why, NULL), TENREC_OK);
    assert_int_equal(tenrec_future_wait(f, LONG_MS, &err), TENREC_EREMOTE);
    assert_string_equal(err.text, "it broke");
    assert_null(tenrec_future_value(f));
    tenrec_future_drop(f);
}

TEST(future_wait_times_out_when_the_future_stays_pending)
{
    struct tenrec_future *f = make();
    tenrec_error err;

    assert_int_equal(tenrec_future_wait(f, 5, &err), TENREC_ETIMEDOUT);
    assert_int_equal(tenrec_future_wait(f, -1, &err), TENREC_EINVAL);
    set_int(f, 1);
    assert_int_equal(tenrec_future_wait(f, 5, &err), TENREC_OK);
    tenrec_future_drop(f);
}

TEST(future_wait_is_refused_when_in_a_callback)
{
    struct tenrec_future *f = make();
    tenrec_error err;

    thread_state.no_block++;
    assert_int_equal(tenrec_future_wait(f, LONG_MS, &err), TENREC_EWOULDBLOCK);
    thread_state.no_block--;
    tenrec_future_drop(f);
}

static void *set_later(void *arg)
{
    set_int(arg, 7);
    tenrec_future_drop(arg);
    return NULL;
}

static void *wait_for(void *arg)
{
    struct tenrec_future *f = arg;

    assert_int_equal(tenrec_future_wait(f, LONG_MS, NULL), TENREC_OK);
    return NULL;
}

TEST(future_wakes_all_waiting_threads)
{
    struct tenrec_future *f = make();
    pthread_t waiter[4], setter;

    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&waiter[i], NULL, wait_for, f), 0);
    assert_int_equal(pthread_create(&setter, NULL, set_later, tenrec_future_share(f)), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(waiter[i], NULL);
    pthread_join(setter, NULL);
    tenrec_future_drop(f);
}

static void count(struct tenrec_future *f, void *arg)
{
    assert_true(tenrec_future_done(f));
    assert_true(thread_state.no_block > 0);
    atomic_fetch_add((atomic_int *)arg, 1);
}

TEST(future_runs_callbacks_once_when_done)
{
    struct tenrec_future *f = make();
    atomic_int n = 0;

    assert_int_equal(tenrec_future_add_callback(f, count, &n, NULL), TENREC_OK);
    assert_int_equal(tenrec_future_add_callback(f, count, &n, NULL), TENREC_OK);
    assert_int_equal(atomic_load(&n), 0);
    set_int(f, 1);
    assert_int_equal(atomic_load(&n), 2);
    assert_int_equal(tenrec_future_add_callback(f, count, &n, NULL), TENREC_OK);
    assert_int_equal(atomic_load(&n), 3);
    tenrec_future_drop(f);
}

static tenrec_status add_one(struct tenrec_future *f, void *arg, struct tenrec_value *ret,
                             tenrec_error *err)
{
    tenrec_status st = tenrec_future_wait(f, LONG_MS, err);

    (void)arg;
    if (st == TENREC_OK)
        *ret = tenrec_value_int(tenrec_future_value(f)->u.integer + 1);
    return st;
}

TEST(future_then_chains_values_when_each_is_done)
{
    struct tenrec_future *f = make(), *g, *h;

    assert_int_equal(tenrec_future_then(f, add_one, NULL, &g, NULL), TENREC_OK);
    assert_int_equal(tenrec_future_then(g, add_one, NULL, &h, NULL), TENREC_OK);
    set_int(f, 1);
    assert_int_equal(tenrec_future_wait(h, LONG_MS, NULL), TENREC_OK);
    assert_int_equal(tenrec_future_value(h)->u.integer, 3);
    tenrec_future_drop(f);
    tenrec_future_drop(g);
    tenrec_future_drop(h);
}

TEST(future_then_passes_the_error_on_when_its_source_failed)
{
    struct tenrec_future *f = make(), *g;
    tenrec_error why, err;

    assert_int_equal(tenrec_future_then(f, add_one, NULL, &g, NULL), TENREC_OK);
    tenrec_fail(&why, TENREC_EPEER_LOST, "gone");
    assert_int_equal(tenrec_future_set_error(f, &why, NULL), TENREC_OK);
    assert_int_equal(tenrec_future_wait(g, LONG_MS, &err), TENREC_EPEER_LOST);
    assert_string_equal(err.text, "gone");
    tenrec_future_drop(f);
    tenrec_future_drop(g);
}

TEST(future_wait_all_returns_the_first_error_of_the_list)
{
    struct tenrec_future *f[3] = { make(), make(), make() };
    tenrec_error why, err;

    set_int(f[0], 1);
    assert_int_equal(tenrec_future_wait_all(f, 3, 5, &err), TENREC_ETIMEDOUT);
    tenrec_fail(&why, TENREC_ECANCELED, "third");
    assert_int_equal(tenrec_future_set_error(f[2], &why, NULL), TENREC_OK);
    tenrec_fail(&why, TENREC_EREMOTE, "second");
    assert_int_equal(tenrec_future_set_error(f[1], &why, NULL), TENREC_OK);
    assert_int_equal(tenrec_future_wait_all(f, 3, LONG_MS, &err), TENREC_EREMOTE);
    assert_string_equal(err.text, "second");
    for (size_t i = 0; i < 3; i++)
        tenrec_future_drop(f[i]);
}

TEST(future_wait_any_finds_the_future_that_is_done)
{
    struct tenrec_future *f[20];
    pthread_t setter;
    size_t at = 99;

    for (size_t i = 0; i < 20; i++)
        f[i] = make();
    assert_int_equal(tenrec_future_wait_any(f, 20, 5, &at, NULL), TENREC_ETIMEDOUT);
    assert_int_equal(tenrec_future_wait_any(f, 0, 5, &at, NULL), TENREC_EINVAL);
    assert_int_equal(pthread_create(&setter, NULL, set_later, tenrec_future_share(f[13])), 0);
    assert_int_equal(tenrec_future_wait_any(f, 20, LONG_MS, &at, NULL), TENREC_OK);
    assert_int_equal(at, 13);
    pthread_join(setter, NULL);
    for (size_t i = 0; i < 20; i++)
        tenrec_future_drop(f[i]);
}

TEST(future_cancel_fails_a_pending_future)
{
    struct tenrec_future *f = make();

    tenrec_future_cancel(f);
    assert_int_equal(tenrec_future_wait(f, LONG_MS, NULL), TENREC_ECANCELED);
    tenrec_future_cancel(f);
    tenrec_future_drop(f);
}

static tenrec_status never(struct tenrec_future *f, void *arg, struct tenrec_value *ret,
                           tenrec_error *err)
{
    (void)f, (void)ret, (void)err;
    ++*(int *)arg;
    return TENREC_OK;
}

TEST(future_then_fails_when_its_source_is_dropped)
{
    struct tenrec_future *f = make(), *then = NULL;
    int ran = 0;

    assert_int_equal(tenrec_future_then(f, never, &ran, &then, NULL), TENREC_OK);
    tenrec_future_drop(f);
    assert_int_equal(tenrec_future_wait(then, LONG_MS, NULL), TENREC_ECANCELED);
    assert_int_equal(ran, 0);
    tenrec_future_drop(then);
}

TEST(future_refuses_a_null_callback)
{
    struct tenrec_future *f = make(), *then = NULL;

    assert_int_equal(tenrec_future_add_callback(f, NULL, NULL, NULL), TENREC_EINVAL);
    assert_int_equal(tenrec_future_then(f, NULL, NULL, &then, NULL), TENREC_EINVAL);
    tenrec_future_drop(f);
}

TEST(scope_end_is_refused_when_no_scope_is_open)
{
    tenrec_error err;

    assert_int_equal(tenrec_scope_end(LONG_MS, &err), TENREC_EINVAL);
    assert_int_equal(tenrec_scope_begin(&err), TENREC_OK);
    assert_int_equal(tenrec_scope_end(LONG_MS, &err), TENREC_OK);
}
