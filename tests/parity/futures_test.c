/* SPDX-License-Identifier: Apache-2.0 */
/* futures_test.c - callbacks of futures: group G11 of docs/internals/parity.md. */
#include "parity.h"

#include <stdatomic.h>

static struct tenrec_future *ask_sum(const struct tenrec_test *t, int64_t x, int64_t y)
{
    const struct tenrec_value args[] = { tenrec_value_int(x), tenrec_value_int(y) };

    return ask_async(t, next_worker(t, 1), "add", args, 2);
}

/* The observation of a callback, for the thread that waits for it. */
struct seen {
    atomic_int n;
    _Atomic int64_t value;
    atomic_int code;
};

static void see(struct tenrec_future *f, void *arg)
{
    struct seen *s = arg;

    if (tenrec_future_error(f))
        atomic_store(&s->code, tenrec_future_error(f)->code);
    else
        atomic_store(&s->value, tenrec_future_value(f)->u.integer);
    atomic_fetch_add(&s->n, 1);
}

/* Plus *arg. */
static tenrec_status plus(struct tenrec_future *f, void *arg, struct tenrec_value *ret,
                          tenrec_error *err)
{
    if (tenrec_future_error(f)) {
        *err = *tenrec_future_error(f);
        return err->code;
    }
    *ret = tenrec_value_int(tenrec_future_value(f)->u.integer + *(const int64_t *)arg);
    return TENREC_OK;
}

static struct tenrec_future *then(struct tenrec_future *f, tenrec_then_fn *fn, const void *arg)
{
    struct tenrec_future *g = NULL;
    tenrec_error err;

    assert_status(tenrec_future_then(f, fn, (void *)(uintptr_t)arg, &g, &err), &err);
    return g;
}

/* test_callback_simple */
static tenrec_status callback_sees_the_value(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_future *f = ask_sum(t, t->rank, 1);
    struct seen s = { 0 };

    assert_status(tenrec_future_add_callback(f, see, &s, err), err);
    assert_int_equal(future_int(f), t->rank + 1);
    assert_becomes(atomic_load(&s.n) == 1);
    assert_int_equal(atomic_load(&s.value), t->rank + 1);
    assert_int_equal(future_int(f), t->rank + 1);
    tenrec_future_drop(f);
    return TENREC_OK;
}

static tenrec_status expects_a_text(struct tenrec_future *f, void *arg, struct tenrec_value *ret,
                                    tenrec_error *err)
{
    const char *text;

    (void)arg, (void)ret;
    return tenrec_value_unpack(tenrec_future_value(f), 1, err, "s", &text);
}

/* test_callback_wrong_arg_num, test_callback_wrong_arg_type: what a callback
 * makes wrong fails its own future only */
static tenrec_status callback_that_fails_fails_its_future(const struct tenrec_test *t,
                                                          tenrec_error *err)
{
    struct tenrec_future *f = ask_sum(t, t->rank, 1), *g = then(f, expects_a_text, NULL);

    wait_fails(g, TENREC_EINVAL, err);
    assert_text_has(err->text, "expected text");
    assert_int_equal(future_int(f), t->rank + 1);
    tenrec_future_drop(g);
    tenrec_future_drop(f);
    return TENREC_OK;
}

/* test_callback_multi */
static tenrec_status callbacks_of_one_future_all_run(const struct tenrec_test *t, tenrec_error *err)
{
    static const int64_t more[10] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 };
    struct tenrec_future *f = ask_sum(t, t->rank, 1), *g[10];

    (void)err;
    for (int i = 0; i < 10; i++)
        g[i] = then(f, plus, &more[i]);
    assert_int_equal(future_int(f), t->rank + 1);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(future_int(g[i]), t->rank + 1 + i);
        tenrec_future_drop(g[i]);
    }
    assert_int_equal(future_int(f), t->rank + 1);
    tenrec_future_drop(f);
    return TENREC_OK;
}

/* test_callback_chain */
static tenrec_status callbacks_chain(const struct tenrec_test *t, tenrec_error *err)
{
    static const int64_t one = 1;
    struct tenrec_future *f = ask_sum(t, t->rank, 1), *g;

    (void)err;
    for (int i = 0; i < 20; i++) {
        g = then(f, plus, &one);
        tenrec_future_drop(f);
        f = g;
    }
    assert_int_equal(future_int(f), t->rank + 1 + 20);
    tenrec_future_drop(f);
    return TENREC_OK;
}

static void sum_by(const struct tenrec_test *t, const char *function)
{
    const struct tenrec_value args[] = { tenrec_value_text(next_worker(t, 2)),
                                         tenrec_value_int(t->rank), tenrec_value_int(1),
                                         tenrec_value_int(2) };

    assert_int_equal(take_int(ask(t, next_worker(t, 1), function, args, 4)), t->rank + 3);
}

/* test_callback_in_rpc, test_future_in_rpc */
static tenrec_status function_waits_for_a_future_that_a_callback_sets(const struct tenrec_test *t,
                                                                      tenrec_error *err)
{
    (void)err;
    sum_by(t, "future_add");
    return TENREC_OK;
}

/* test_future_nested_callback */
static tenrec_status callback_calls_again(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    sum_by(t, "nested_callback_add");
    return TENREC_OK;
}

struct again {
    const struct tenrec_test *t;
    struct tenrec_future *result;
};

/* A callback may not block: the value of the second call is passed on. */
static void pass_on(struct tenrec_future *f, void *arg)
{
    const struct again *a = arg;

    tenrec_future_set_value(a->result, tenrec_future_value(f), NULL);
}

static void ask_again(struct tenrec_future *f, void *arg)
{
    const struct again *a = arg;
    struct tenrec_future *g = ask_sum(a->t, tenrec_future_value(f)->u.integer, 2);

    tenrec_future_add_callback(g, pass_on, arg, NULL);
    tenrec_future_drop(g);
}

/* test_callback_with_ret: a callback that calls; its result is the second call's */
static tenrec_status callback_continues_with_another_call(const struct tenrec_test *t,
                                                          tenrec_error *err)
{
    struct again a = { t, NULL };
    struct tenrec_future *f;

    assert_status(tenrec_future_new(&a.result, err), err);
    f = ask_sum(t, t->rank, 1);
    assert_status(tenrec_future_add_callback(f, ask_again, &a, err), err);
    assert_int_equal(future_int(a.result), t->rank + 3);
    tenrec_future_drop(f);
    tenrec_future_drop(a.result);
    return TENREC_OK;
}

static tenrec_status another_error(struct tenrec_future *f, void *arg, struct tenrec_value *ret,
                                   tenrec_error *err)
{
    atomic_int *code = arg;

    (void)ret;
    atomic_store(code, tenrec_future_error(f)->code);
    return tenrec_fail(err, TENREC_EINVAL, "Another expected error");
}

/* test_callback_with_error */
static tenrec_status callback_sees_the_error_and_returns_another(const struct tenrec_test *t,
                                                                 tenrec_error *err)
{
    atomic_int code = 0;
    struct tenrec_future *f = ask_async(t, next_worker(t, 1), "raise", NULL, 0),
                         *g = then(f, another_error, &code);

    wait_fails(g, TENREC_EINVAL, err);
    assert_string_equal(err->text, "Another expected error");
    assert_int_equal(atomic_load(&code), TENREC_EREMOTE);
    tenrec_future_drop(g);
    tenrec_future_drop(f);
    return TENREC_OK;
}

/* test_callback_none */
static tenrec_status callback_that_is_none_is_refused(const struct tenrec_test *t,
                                                      tenrec_error *err)
{
    struct tenrec_future *f = ask_async(t, next_worker(t, 1), "raise", NULL, 0), *g = NULL;

    assert_int_equal(tenrec_future_then(f, NULL, NULL, &g, err), TENREC_EINVAL);
    assert_null(g);
    wait_fails(f, TENREC_EREMOTE, err);
    tenrec_future_drop(f);
    return TENREC_OK;
}

/* test_add_done_callback */
static tenrec_status done_callback_runs_before_the_next(const struct tenrec_test *t,
                                                        tenrec_error *err)
{
    static const int64_t zero = 0;
    struct tenrec_future *f = ask_sum(t, t->rank, 1), *g;
    struct seen s = { 0 };

    assert_status(tenrec_future_add_callback(f, see, &s, err), err);
    g = then(f, plus, &zero);
    assert_int_equal(future_int(f), t->rank + 1);
    wait_ok(g);
    assert_becomes(atomic_load(&s.n) == 1);
    assert_int_equal(future_int(f), t->rank + 1);
    tenrec_future_drop(g);
    tenrec_future_drop(f);
    return TENREC_OK;
}

/* test_mark_future_twice */
static tenrec_status future_is_completed_once(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_future *f = ask_sum(t, t->rank, 1);
    struct tenrec_value one = tenrec_value_int(1);

    assert_int_equal(future_int(f), t->rank + 1);
    assert_int_equal(tenrec_future_set_value(f, &one, err), TENREC_EINVAL); /* a call's */
    assert_int_equal(future_int(f), t->rank + 1);
    tenrec_future_drop(f);
    assert_status(tenrec_future_new(&f, err), err);
    assert_status(tenrec_future_set_value(f, &one, err), err);
    assert_int_equal(tenrec_future_set_value(f, &one, err), TENREC_EEXIST);
    assert_int_equal(future_int(f), 1);
    tenrec_future_drop(f);
    return TENREC_OK;
}

/* test_future_done */
static tenrec_status future_is_done_after_its_wait(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_future *f = ask_sum(t, t->rank, 1);

    (void)err;
    wait_ok(f);
    assert_true(tenrec_future_done(f));
    tenrec_future_drop(f);
    return TENREC_OK;
}

/* test_future_done_exception */
static tenrec_status future_is_done_when_it_failed(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_future *f = ask_async(t, next_worker(t, 1), "raise", NULL, 0);

    wait_fails(f, TENREC_EREMOTE, err);
    assert_text_has(err->text, "Expected error");
    assert_true(tenrec_future_done(f));
    tenrec_future_drop(f);
    return TENREC_OK;
}

int main(int argc, char **argv)
{
    static const struct parity_case cases[] = {
        PARITY(callback_sees_the_value),
        PARITY(callback_that_fails_fails_its_future),
        PARITY(callbacks_of_one_future_all_run),
        PARITY(callbacks_chain),
        PARITY(function_waits_for_a_future_that_a_callback_sets),
        PARITY(callback_calls_again),
        PARITY(callback_continues_with_another_call),
        PARITY(callback_sees_the_error_and_returns_another),
        PARITY(callback_that_is_none_is_refused),
        PARITY(done_callback_runs_before_the_next),
        PARITY(future_is_completed_once),
        PARITY(future_is_done_after_its_wait),
        PARITY(future_is_done_when_it_failed),
    };

    return parity_run(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
