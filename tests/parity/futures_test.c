/* futures_test.c - timeouts, callbacks of futures, and waiting for many: groups
 * G10, G11 and G13 of docs/parity.md. */
#include "parity.h"

#include "functions.h"

#include <pthread.h>
#include <stdatomic.h>

enum { SOON_MS = 50 /* a limit that is meant to pass */ };

static struct tenrec_future *ask_sum(const struct tenrec_test *t, int64_t x, int64_t y)
{
    const struct tenrec_value args[] = { tenrec_int(x), tenrec_int(y) };

    return ask_async(t, next_worker(t, 1), "add", args, 2);
}

/* ---- G10: timeouts ------------------------------------------------------------------- */

/* test_set_and_get_default_rpc_timeout */
static tenrec_status default_timeout_is_that_of_the_options(const struct tenrec_test *t,
                                                            tenrec_error *err)
{
    (void)err;
    assert_int_equal(tenrec_get_rpc_timeout(t->worker), 500);
    return TENREC_OK;
}

/* test_default_timeout_used */
static tenrec_status default_timeout_is_that_of_the_moment_of_the_call(const struct tenrec_test *t,
                                                                       tenrec_error *err)
{
    const char *to = next_worker(t, 1);
    struct tenrec_future *f[10], *slow;

    assert_status(tenrec_set_rpc_timeout(t->worker, SOON_MS, err), err);
    for (int i = 0; i < 10; i++)
        f[i] = ask_async(t, to, "gate", NULL, 0);
    for (int i = 0; i < 10; i++) {
        wait_fails(f[i], TENREC_ETIMEDOUT, err);
        tenrec_future_drop(f[i]);
    }
    /* A call keeps the limit that it began with. */
    assert_status(tenrec_set_rpc_timeout(t->worker, 200000, err), err);
    slow = ask_async(t, to, "gate", NULL, 0);
    assert_status(tenrec_set_rpc_timeout(t->worker, SOON_MS, err), err);
    f[0] = ask_async(t, to, "gate", NULL, 0);
    wait_fails(f[0], TENREC_ETIMEDOUT, err);
    assert_false(tenrec_future_done(slow));
    gate_open(t->rank);
    wait_ok(slow);
    tenrec_future_drop(f[0]);
    tenrec_future_drop(slow);
    /* None at all. */
    assert_status(tenrec_set_rpc_timeout(t->worker, TENREC_TIMEOUT_NONE, err), err);
    tenrec_value_drop(ask(t, to, "gate", NULL, 0));
    return TENREC_OK;
}

/* test_rpc_timeouts */
static tenrec_status timeout_of_a_call_overrides_the_default(const struct tenrec_test *t,
                                                             tenrec_error *err)
{
    static const int64_t enough[] = { 60000, TENREC_TIMEOUT_NONE };
    const char *to = next_worker(t, 1);
    struct tenrec_call_options o = { .size = sizeof o };
    struct tenrec_future *f = ask_async_within(t, to, "gate", SOON_MS);

    wait_fails(f, TENREC_ETIMEDOUT, err);
    tenrec_future_drop(f);
    ask_fails(t, to, "gate", SOON_MS, TENREC_ETIMEDOUT, err);
    assert_status(tenrec_set_rpc_timeout(t->worker, SOON_MS, err), err);
    f = ask_async(t, to, "gate", NULL, 0);
    wait_fails(f, TENREC_ETIMEDOUT, err);
    tenrec_future_drop(f);
    ask_fails(t, to, "gate", TENREC_TIMEOUT_DEFAULT, TENREC_ETIMEDOUT, err);
    gate_open(t->rank);
    for (int i = 0; i < 2; i++) {
        f = ask_async_within(t, to, "gate", enough[i]);
        wait_ok(f);
        tenrec_future_drop(f);
        o.timeout_ms = enough[i];
        assert_status(tenrec_rpc_sync(t->worker, to, "gate", NULL, 0, &o, NULL, err), err);
    }
    return TENREC_OK;
}

/* ---- G11: callbacks -------------------------------------------------------------------- */

/* What a callback saw, for the thread that waits for it. */
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
    *ret = tenrec_int(tenrec_future_value(f)->u.integer + *(const int64_t *)arg);
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
    return tenrec_values_get(tenrec_future_value(f), 1, err, "s", &text);
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
    const struct tenrec_value args[] = { tenrec_text(next_worker(t, 2)), tenrec_int(t->rank),
                                         tenrec_int(1), tenrec_int(2) };

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
    struct tenrec_value one = tenrec_int(1);

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

/* ---- G13: all of them --------------------------------------------------------------------- */

static void ask_many(const struct tenrec_test *t, const char *function, struct tenrec_future **f,
                     size_t n)
{
    const struct tenrec_value args[] = { tenrec_int(1), tenrec_int(1) };

    for (size_t i = 0; i < n; i++)
        f[i] =
            ask_async(t, next_worker(t, 1), function, args, strcmp(function, "add") == 0 ? 2 : 0);
}

static void all_fail(struct tenrec_future **f, size_t n)
{
    tenrec_error err;

    assert_int_equal(tenrec_future_wait_all(f, n, tenrec_test_ms(LONG_MS), &err), TENREC_EREMOTE);
    assert_text_has(err.text, "Expected error");
}

static void drop_all(struct tenrec_future **f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tenrec_future_drop(f[i]);
}

/* test_future_wait_twice */
static tenrec_status futures_can_be_waited_for_twice(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_future *f[20];

    ask_many(t, "raise", f, 20);
    all_fail(f, 20);
    for (int i = 0; i < 20; i++)
        wait_fails(f[i], TENREC_EREMOTE, err);
    drop_all(f, 20);
    return TENREC_OK;
}

/* test_wait_all_with_exception */
static tenrec_status waiting_for_all_fails_when_all_fail(const struct tenrec_test *t,
                                                         tenrec_error *err)
{
    struct tenrec_future *f[10];

    (void)err;
    ask_many(t, "raise", f, 10);
    all_fail(f, 10);
    drop_all(f, 10);
    return TENREC_OK;
}

/* test_wait_all_with_partial_exception */
static tenrec_status waiting_for_all_fails_when_one_fails(const struct tenrec_test *t,
                                                          tenrec_error *err)
{
    struct tenrec_future *f[11];

    (void)err;
    ask_many(t, "add", f, 10);
    ask_many(t, "raise", f + 10, 1);
    all_fail(f, 11);
    drop_all(f, 11);
    return TENREC_OK;
}

/* test_wait_all_exit_early_python, test_wait_all_exit_early_builtin: there the
 * wait ends with the first error. Here wait_any sees it first, while another
 * call is still out; wait_all returns the same error when all are done. */
static tenrec_status first_error_is_seen_while_others_are_out(const struct tenrec_test *t,
                                                              tenrec_error *err)
{
    struct tenrec_future *f[3];
    size_t first = 0;

    ask_many(t, "gate", f, 1);
    ask_many(t, "raise", f + 1, 2);
    assert_status(tenrec_future_wait_any(f, 3, tenrec_test_ms(LONG_MS), &first, err), err);
    assert_int_not_equal(first, 0);
    wait_fails(f[first], TENREC_EREMOTE, err);
    assert_false(tenrec_future_done(f[0]));
    gate_open(t->rank);
    all_fail(f, 3);
    drop_all(f, 3);
    return TENREC_OK;
}

/* test_wait_all */
static tenrec_status scope_waits_for_its_call(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_future *f;

    assert_status(tenrec_scope_begin(err), err);
    f = ask_sum(t, t->rank, 1);
    assert_status(tenrec_scope_end(tenrec_test_ms(LONG_MS), err), err);
    assert_true(tenrec_future_done(f));
    assert_int_equal(future_int(f), t->rank + 1);
    assert_int_equal(tenrec_scope_end(1, err), TENREC_EINVAL); /* it is gone */
    tenrec_future_drop(f);
    return TENREC_OK;
}

/* test_wait_all_multiple_call: synchronous calls are not collected */
static tenrec_status scope_waits_for_all_its_calls(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_future *f[20];

    assert_status(tenrec_scope_begin(err), err);
    for (int i = 0; i < 20; i++) {
        const struct tenrec_value args[] = { tenrec_int(i), tenrec_int(1) };
        f[i] = ask_sum(t, i, 1);
        assert_int_equal(take_int(ask(t, next_worker(t, 1), "add", args, 2)), i + 1);
    }
    assert_status(tenrec_scope_end(tenrec_test_ms(LONG_MS), err), err);
    for (int i = 0; i < 20; i++) {
        assert_true(tenrec_future_done(f[i]));
        assert_int_equal(future_int(f[i]), i + 1);
        tenrec_future_drop(f[i]);
    }
    return TENREC_OK;
}

/* test_wait_all_timeout */
static tenrec_status scope_ends_with_the_timeout_of_its_call(const struct tenrec_test *t,
                                                             tenrec_error *err)
{
    assert_status(tenrec_scope_begin(err), err);
    tenrec_future_drop(ask_async_within(t, next_worker(t, 1), "gate", SOON_MS));
    assert_int_equal(tenrec_scope_end(tenrec_test_ms(LONG_MS), err), TENREC_ETIMEDOUT);
    assert_int_equal(tenrec_scope_end(1, err), TENREC_EINVAL);
    gate_open(t->rank);
    return TENREC_OK;
}

/* test_wait_all_raise_in_user_func */
static tenrec_status scope_ends_with_the_error_of_its_call(const struct tenrec_test *t,
                                                           tenrec_error *err)
{
    assert_status(tenrec_scope_begin(err), err);
    tenrec_future_drop(ask_async(t, next_worker(t, 1), "raise", NULL, 0));
    assert_int_equal(tenrec_scope_end(tenrec_test_ms(LONG_MS), err), TENREC_EREMOTE);
    assert_text_has(err->text, "Expected error");
    assert_int_equal(tenrec_scope_end(1, err), TENREC_EINVAL);
    return TENREC_OK;
}

/* A function that opens a scope and fails in it: its error is kept, and the
 * scope is closed. */
static tenrec_status fail_in_a_scope(tenrec_error *err)
{
    tenrec_status st = tenrec_scope_begin(err);

    if (st != TENREC_OK)
        return st;
    st = tenrec_fail(err, TENREC_ENOTFOUND, "raised in the body");
    tenrec_scope_end(0, NULL);
    return st;
}

/* test_wait_all_raise_in_body */
static tenrec_status scope_is_gone_when_its_body_fails(const struct tenrec_test *t,
                                                       tenrec_error *err)
{
    (void)t;
    assert_int_equal(fail_in_a_scope(err), TENREC_ENOTFOUND);
    assert_int_equal(tenrec_scope_end(1, err), TENREC_EINVAL);
    return TENREC_OK;
}

int main(int argc, char **argv)
{
    static const char *const half_a_second[] = { "worker.rpc_timeout=500ms", NULL };
    const struct parity_case cases[] = {
        { .name = "parity_default_timeout_is_that_of_the_options",
          default_timeout_is_that_of_the_options,
          { .settings = half_a_second } },
#define CASE(body)                                                                                 \
    {                                                                                              \
        .name = "parity_" #body, body,                                                             \
        {                                                                                          \
            .size = 0                                                                              \
        }                                                                                          \
    }
        CASE(default_timeout_is_that_of_the_moment_of_the_call),
        CASE(timeout_of_a_call_overrides_the_default),
        CASE(callback_sees_the_value),
        CASE(callback_that_fails_fails_its_future),
        CASE(callbacks_of_one_future_all_run),
        CASE(callbacks_chain),
        CASE(function_waits_for_a_future_that_a_callback_sets),
        CASE(callback_calls_again),
        CASE(callback_continues_with_another_call),
        CASE(callback_sees_the_error_and_returns_another),
        CASE(callback_that_is_none_is_refused),
        CASE(done_callback_runs_before_the_next),
        CASE(future_is_completed_once),
        CASE(future_is_done_after_its_wait),
        CASE(future_is_done_when_it_failed),
        CASE(futures_can_be_waited_for_twice),
        CASE(waiting_for_all_fails_when_all_fail),
        CASE(waiting_for_all_fails_when_one_fails),
        CASE(first_error_is_seen_while_others_are_out),
        CASE(scope_waits_for_its_call),
        CASE(scope_waits_for_all_its_calls),
        CASE(scope_ends_with_the_timeout_of_its_call),
        CASE(scope_ends_with_the_error_of_its_call),
        CASE(scope_is_gone_when_its_body_fails),
    };

    return parity_run(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
