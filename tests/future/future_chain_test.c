/* SPDX-License-Identifier: Apache-2.0 */
/* future_chain_test.c - futures that complete one another: no chain is too long for the stack of
 * the thread that completes its first link. */
#include "../testing.h"

#include <pthread.h>
#include <tenrec/future.h>

enum { LONG = 1000000, SHORT = 5000, SMALL_STACK = 128 << 10 };

static struct tenrec_future *make(void)
{
    struct tenrec_future *f = NULL;

    assert_int_equal(tenrec_future_new(&f, NULL), TENREC_OK);
    return f;
}

static tenrec_status add_one(struct tenrec_future *f, void *arg, struct tenrec_value *ret,
                             tenrec_error *err)
{
    const tenrec_status st = tenrec_future_wait(f, 0, err);

    (void)arg;
    if (st == TENREC_OK)
        *ret = tenrec_value_int(tenrec_future_value(f)->u.integer + 1);
    return st;
}

/* Returns the end of a chain of `n` links behind `f`. */
static struct tenrec_future *chain_behind(struct tenrec_future *f, int n)
{
    struct tenrec_future *last = tenrec_future_share(f), *next = NULL;

    for (int i = 0; i < n; i++) {
        assert_int_equal(tenrec_future_then(last, add_one, NULL, &next, NULL), TENREC_OK);
        tenrec_future_drop(last);
        last = next;
    }
    return last;
}

static void *complete(void *arg)
{
    const struct tenrec_value zero = tenrec_value_int(0);

    tenrec_future_set_value(arg, &zero, NULL);
    return NULL;
}

static void run_on_small_stack(void *(*run)(void *), void *arg)
{
    pthread_attr_t attr;
    pthread_t thread;

    pthread_attr_init(&attr);
    assert_int_equal(pthread_attr_setstacksize(&attr, SMALL_STACK), 0);
    assert_int_equal(pthread_create(&thread, &attr, run, arg), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
}

TEST(chain_of_a_million_thens_completes)
{
    struct tenrec_future *f = make(), *last = chain_behind(f, LONG);

    complete(f);
    assert_true(tenrec_future_done(last));
    assert_int_equal(tenrec_future_value(last)->u.integer, LONG);
    tenrec_future_drop(f);
    tenrec_future_drop(last);
}

TEST(chain_of_thens_completes_on_a_small_stack)
{
    struct tenrec_future *f = make(), *last = chain_behind(f, SHORT);

    run_on_small_stack(complete, f);
    assert_true(tenrec_future_done(last));
    assert_int_equal(tenrec_future_value(last)->u.integer, SHORT);
    tenrec_future_drop(f);
    tenrec_future_drop(last);
}

static void *drop(void *arg)
{
    tenrec_future_drop(arg);
    return NULL;
}

TEST(chain_of_thens_fails_on_a_small_stack_when_its_source_is_dropped)
{
    struct tenrec_future *f = make(), *last = chain_behind(f, SHORT);
    tenrec_error err;

    run_on_small_stack(drop, f);
    assert_int_equal(tenrec_future_wait(last, 0, &err), TENREC_ECANCELED);
    tenrec_future_drop(last);
}

/* A future, and the future that its callback completes. */
struct link {
    struct tenrec_future *f;
    struct link *next;
};

static void complete_next(struct tenrec_future *f, void *arg)
{
    struct link *l = arg;

    (void)f;
    if (l->next)
        complete(l->next->f);
}

TEST(chain_of_callbacks_that_set_values_completes_on_a_small_stack)
{
    static struct link link[SHORT];

    for (int i = 0; i < SHORT; i++) {
        link[i] = (struct link){ make(), i + 1 < SHORT ? &link[i + 1] : NULL };
        assert_int_equal(tenrec_future_add_callback(link[i].f, complete_next, &link[i], NULL),
                         TENREC_OK);
    }
    run_on_small_stack(complete, link[0].f);
    for (int i = 0; i < SHORT; i++) {
        assert_true(tenrec_future_done(link[i].f));
        tenrec_future_drop(link[i].f);
    }
}

static int calls_left;

static void add_again(struct tenrec_future *f, void *arg)
{
    if (calls_left-- > 0)
        tenrec_future_add_callback(f, add_again, arg, NULL);
}

static void *add_first(void *arg)
{
    tenrec_future_add_callback(arg, add_again, NULL, NULL);
    return NULL;
}

TEST(callback_that_adds_itself_to_a_done_future_runs_on_a_small_stack)
{
    struct tenrec_future *f = make();

    complete(f);
    calls_left = SHORT;
    run_on_small_stack(add_first, f);
    assert_int_equal(calls_left, -1);
    tenrec_future_drop(f);
}

/* ---- order -------------------------------------------------------------------------------- */

static struct {
    char text[64];
    struct tenrec_future *inner, *second;
} order;

static void note(struct tenrec_future *f, void *arg)
{
    (void)f;
    strcat(order.text, arg);
}

static void note_and_complete(struct tenrec_future *f, void *arg)
{
    note(f, arg);
    complete(order.inner);
    complete(order.second);
}

/* Callbacks of futures that a callback completes run after that callback and before the next. */
TEST(callbacks_run_in_the_order_of_their_completions)
{
    struct tenrec_future *f = make();

    order.inner = make();
    order.second = make();
    assert_int_equal(tenrec_future_add_callback(f, note_and_complete, "a", NULL), TENREC_OK);
    assert_int_equal(tenrec_future_add_callback(f, note, "z", NULL), TENREC_OK);
    assert_int_equal(tenrec_future_add_callback(order.inner, note, "b", NULL), TENREC_OK);
    assert_int_equal(tenrec_future_add_callback(order.inner, note, "c", NULL), TENREC_OK);
    assert_int_equal(tenrec_future_add_callback(order.second, note, "d", NULL), TENREC_OK);
    complete(f);
    assert_string_equal(order.text, "abcdz");
    tenrec_future_drop(f);
    tenrec_future_drop(order.inner);
    tenrec_future_drop(order.second);
}
