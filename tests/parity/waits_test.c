/* SPDX-License-Identifier: Apache-2.0 */
/* waits_test.c - limits of calls, and waiting for many: groups G10 and G13 of
 * docs/internals/parity.md. */
#include "parity.h"

#include "parity_functions.h"

enum { SOON_MS = 50 /* a limit that is meant to pass */ };

static struct tenrec_future *ask_sum(const struct tenrec_test *t, int64_t x, int64_t y)
{
    const struct tenrec_value args[] = { tenrec_value_int(x), tenrec_value_int(y) };

    return ask_async(t, next_worker(t, 1), "add", args, 2);
}

/* ---- G10: timeouts ------------------------------------------------------------------- */

/* test_set_and_get_default_rpc_timeout */
static tenrec_status default_timeout_is_that_of_the_options(const struct tenrec_test *t,
                                                            tenrec_error *err)
{
    (void)err;
    assert_int_equal(tenrec_worker_get_rpc_timeout(t->worker), 500);
    return TENREC_OK;
}

/* test_default_timeout_used */
static tenrec_status default_timeout_is_that_of_the_moment_of_the_call(const struct tenrec_test *t,
                                                                       tenrec_error *err)
{
    const char *to = next_worker(t, 1);
    struct tenrec_future *f[10], *slow;

    assert_status(tenrec_worker_set_rpc_timeout(t->worker, SOON_MS, err), err);
    for (int i = 0; i < 10; i++)
        f[i] = ask_async(t, to, "gate", NULL, 0);
    for (int i = 0; i < 10; i++) {
        wait_fails(f[i], TENREC_ETIMEDOUT, err);
        tenrec_future_drop(f[i]);
    }
    /* A call keeps the limit that it began with. */
    assert_status(tenrec_worker_set_rpc_timeout(t->worker, 200000, err), err);
    slow = ask_async(t, to, "gate", NULL, 0);
    assert_status(tenrec_worker_set_rpc_timeout(t->worker, SOON_MS, err), err);
    f[0] = ask_async(t, to, "gate", NULL, 0);
    wait_fails(f[0], TENREC_ETIMEDOUT, err);
    assert_false(tenrec_future_done(slow));
    gate_open(t->rank);
    wait_ok(slow);
    tenrec_future_drop(f[0]);
    tenrec_future_drop(slow);
    /* None at all. */
    assert_status(tenrec_worker_set_rpc_timeout(t->worker, TENREC_TIMEOUT_NONE, err), err);
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
    assert_status(tenrec_worker_set_rpc_timeout(t->worker, SOON_MS, err), err);
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

/* ---- G13: all of them --------------------------------------------------------------------- */

static void ask_many(const struct tenrec_test *t, const char *function, struct tenrec_future **f,
                     size_t n)
{
    const struct tenrec_value args[] = { tenrec_value_int(1), tenrec_value_int(1) };

    for (size_t i = 0; i < n; i++)
        f[i] =
            ask_async(t, next_worker(t, 1), function, args, strcmp(function, "add") == 0 ? 2 : 0);
}

static void all_fail(struct tenrec_future **f, size_t n)
{
    tenrec_error err;

    assert_int_equal(tenrec_future_wait_all(f, n, tenrec_test_stretch_ms(LONG_MS), &err),
                     TENREC_EREMOTE);
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
    assert_status(tenrec_future_wait_any(f, 3, tenrec_test_stretch_ms(LONG_MS), &first, err), err);
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
    assert_status(tenrec_scope_end(tenrec_test_stretch_ms(LONG_MS), err), err);
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
        const struct tenrec_value args[] = { tenrec_value_int(i), tenrec_value_int(1) };
        f[i] = ask_sum(t, i, 1);
        assert_int_equal(take_int(ask(t, next_worker(t, 1), "add", args, 2)), i + 1);
    }
    assert_status(tenrec_scope_end(tenrec_test_stretch_ms(LONG_MS), err), err);
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
    assert_int_equal(tenrec_scope_end(tenrec_test_stretch_ms(LONG_MS), err), TENREC_ETIMEDOUT);
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
    assert_int_equal(tenrec_scope_end(tenrec_test_stretch_ms(LONG_MS), err), TENREC_EREMOTE);
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
        PARITY(default_timeout_is_that_of_the_moment_of_the_call),
        PARITY(timeout_of_a_call_overrides_the_default),
        PARITY(futures_can_be_waited_for_twice),
        PARITY(waiting_for_all_fails_when_all_fail),
        PARITY(waiting_for_all_fails_when_one_fails),
        PARITY(first_error_is_seen_while_others_are_out),
        PARITY(scope_waits_for_its_call),
        PARITY(scope_waits_for_all_its_calls),
        PARITY(scope_ends_with_the_timeout_of_its_call),
        PARITY(scope_ends_with_the_error_of_its_call),
        PARITY(scope_is_gone_when_its_body_fails),
    };

    return parity_run(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
