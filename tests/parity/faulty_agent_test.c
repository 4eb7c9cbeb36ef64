/* SPDX-License-Identifier: Apache-2.0 */
/* faulty_agent_test.c - torch's faulty_agent_rpc_test.py: calls and references
 * under rules that fail or delay messages; group FA of docs/internals/parity.md.
 *
 * argv[1] is config/faulty_torch.yaml, torch's fixture: each case begins with
 * its rules and replaces what it names. Times are shorter than torch's. */

#include "../support/debug_info.h"
#include "parity.h"

#include "references.h"

enum {
    DELAY_MS = 300, /* of messages, as the lists below say */
    SOON_MS = 10,   /* a limit that passes meanwhile */
    ENOUGH_MS = 60000
};

static const char *const delay_calls[] = { "CALL=300ms", NULL };
static const char *const delay_remote_calls[] = { "REMOTE_CALL=300ms", NULL };
/* So long that a to_here is always made before: a busy machine takes its time. */
static const char *const delay_remote_calls_long[] = { "REMOTE_CALL=2s", NULL };
static const char *const delay_remote_calls_and_fetches[] = { "REMOTE_CALL=300ms",
                                                              "RREF_FETCH_CALL=300ms", NULL };
static const char *const delay_fetches[] = { "RREF_FETCH_CALL=300ms", NULL };
static const char *const delay_script_calls[] = { "SCRIPT_CALL=1.5s", NULL };
static const char *const fail_remote_calls[] = { "REMOTE_CALL", NULL };
static const char *const fail_two[] = { "RREF_FORK_REQUEST", "RREF_CHILD_ACCEPT", NULL };
static const char *const none[] = { NULL };

/* The parameters of the tests of one kind. */
struct plan {
    const char *function;
    int n_args; /* integers, all 1 */
    bool to_self;
};

static const struct plan add = { "add", 2, false }, add_to_self = { "add", 2, true },
                         udf = { "sum3", 3, false }, udf_to_self = { "sum3", 3, true };

static const struct tenrec_value ones[3] = {
    { .type = TENREC_VALUE_INT, .u.integer = 1 },
    { .type = TENREC_VALUE_INT, .u.integer = 1 },
    { .type = TENREC_VALUE_INT, .u.integer = 1 },
};

static struct tenrec_rref *remote_within(const struct tenrec_test *t, int64_t ms)
{
    const struct plan *p = t->arg;
    const struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = ms };
    struct tenrec_rref *r = NULL;
    tenrec_error err;

    assert_status(tenrec_remote(t->worker, next_worker(t, p->to_self ? 0 : 1), p->function, ones,
                                (size_t)p->n_args, &o, &r, &err),
                  &err);
    return r;
}

static void flush(const struct tenrec_test *t)
{
    tenrec_error err;

    assert_status(
        tenrec_test_wait_until_pending_futures_and_users_flushed(t->worker, LONG_MS, &err), &err);
}

static void creation_failed(struct tenrec_rref *r, tenrec_status code)
{
    struct tenrec_future *f = NULL;
    tenrec_error err;

    assert_status(tenrec_rref_future(r, &f, &err), &err);
    wait_fails(f, code, &err);
    tenrec_future_drop(f);
}

/* ---- control messages ----------------------------------------------------------------- */

/* test_check_failed_messages: each control message fails three times, and is
 * sent again */
static tenrec_status references_survive_lost_control_messages(const struct tenrec_test *t,
                                                              tenrec_error *err)
{
    struct tenrec_tensor *x = filled(2, 1);
    struct tenrec_value args[] = { tenrec_value_tensor(x), tenrec_value_tensor(x) };
    struct tenrec_rref *r = NULL, *sum = NULL;
    struct tenrec_value *got = NULL;

    if (t->rank == 0) {
        assert_status(tenrec_remote(t->worker, "worker1", "add", args, 2, NULL, &r, err), err);
        args[0] = tenrec_value_rref(r);
        assert_status(
            tenrec_remote(t->worker, "worker2", "add_to_reference", args, 2, NULL, &sum, err), err);
        assert_status(tenrec_rref_to_here(r, NULL, &got, err), err);
        assert_filled(got, 2, 2);
        assert_status(tenrec_rref_to_here(sum, NULL, &got, err), err);
        assert_filled(got, 2, 3);
        tenrec_rref_drop(sum);
        tenrec_rref_drop(r);
    }
    /* As in torch: all release while the group is complete. */
    assert_status(tenrec_worker_barrier(t->worker, NULL, 0, tenrec_test_stretch_ms(LONG_MS), err),
                  err);
    assert_status(tenrec_rref_release_all(t->worker, tenrec_test_stretch_ms(LONG_MS), err), err);
    tenrec_tensor_drop(x);
    return TENREC_OK;
}

/* ---- options ----------------------------------------------------------------------------- */

struct rules {
    int fail, delay;
    bool both; /* the two of fail_two are among them */
    bool script_call;
};

static void see_rule(void *arg, const char *key, const char *value)
{
    static const char fail[] = "faulty.injected_failures.", delay[] = "faulty.injected_delays.";
    struct rules *r = arg;

    (void)value;
    if (strncmp(key, fail, sizeof fail - 1) == 0)
        r->fail++;
    if (strncmp(key, delay, sizeof delay - 1) == 0) {
        r->delay++;
        r->script_call = strcmp(key + sizeof delay - 1, "SCRIPT_CALL") == 0;
    }
    if (strstr(key, "failures.RREF_FORK_REQUEST"))
        r->both = true;
}

static struct rules rules_of(const struct tenrec_test *t)
{
    struct rules r = { 0 };

    debug_info_each(t->worker, see_rule, &r);
    return r;
}

/* test_verify_backend_options; the number of failures is in
 * config_faulty_torch_is_torchs_fixture */
static tenrec_status fixture_has_torchs_options(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_value *info = NULL;

    assert_status(
        tenrec_worker_inspect(t->worker, NULL, TENREC_INSPECT_DEBUG_INFO, NULL, &info, err), err);
    assert_string_equal(tenrec_value_find(info, "worker.backend")->u.text, "faulty");
    assert_int_equal(tenrec_value_find(info, "agent.thread_pool_size")->u.integer, 8);
    tenrec_value_drop(info);
    assert_int_equal(rules_of(t).fail, 4);
    assert_int_equal(rules_of(t).delay, 2);
    assert_int_equal(tenrec_worker_get_rpc_timeout(t->worker), 60000);
    return TENREC_OK;
}

/* test_custom_faulty_messages */
static tenrec_status messages_to_fail_are_replaced(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    assert_int_equal(rules_of(t).fail, 2);
    assert_true(rules_of(t).both);
    return TENREC_OK;
}

/* test_no_faulty_messages */
static tenrec_status messages_to_fail_may_be_none(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    assert_int_equal(rules_of(t).fail, 0);
    return TENREC_OK;
}

/* test_custom_messages_to_delay */
static tenrec_status messages_to_delay_are_replaced(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    assert_int_equal(rules_of(t).delay, 1);
    assert_true(rules_of(t).script_call);
    return TENREC_OK;
}

/* ---- creations that get lost ----------------------------------------------------------------- */

/* test_remote_message_dropped_pickle, test_remote_message_dropped_pickle_to_self */
static tenrec_status lost_creation_cannot_be_passed_on(const struct tenrec_test *t,
                                                       tenrec_error *err)
{
    struct tenrec_value args[2] = { tenrec_value_nil(), tenrec_value_int(1) };
    struct tenrec_future *f = NULL;
    struct tenrec_rref *r, *sum = NULL;

    if (t->rank != 0)
        return TENREC_OK;
    r = remote_within(t, TENREC_TIMEOUT_DEFAULT);
    flush(t);
    args[0] = tenrec_value_rref(r);
    assert_int_equal(
        tenrec_rpc_async(t->worker, "worker1", "add_to_reference", args, 2, NULL, &f, err),
        TENREC_EINJECTED);
    assert_null(f);
    assert_int_equal(
        tenrec_remote(t->worker, "worker1", "add_to_reference", args, 2, NULL, &sum, err),
        TENREC_EINJECTED);
    assert_null(sum);
    tenrec_rref_drop(r);
    return TENREC_OK;
}

/* test_builtin_remote_message_dropped_timeout, ..._to_self,
 * test_udf_remote_message_dropped_timeout, ..._to_self */
static tenrec_status lost_creation_is_told_by_to_here(const struct tenrec_test *t,
                                                      tenrec_error *err)
{
    struct tenrec_rref *r[2];

    if (t->rank != 0)
        return TENREC_OK;
    /* Two: torch's agent marks the first one of a process only. */
    for (int i = 0; i < 2; i++) {
        r[i] = remote_within(t, TENREC_TIMEOUT_DEFAULT);
        flush(t);
        assert_int_equal(tenrec_rref_to_here(r[i], NULL, NULL, err), TENREC_EINJECTED);
        creation_failed(r[i], TENREC_EINJECTED);
    }
    tenrec_rref_drop(r[0]);
    tenrec_rref_drop(r[1]);
    return TENREC_OK;
}

/* ---- creations that are late --------------------------------------------------------------------
 */

/* test_udf_remote_message_delay_timeout, test_remote_message_builtin_delay_timeout,
 * test_remote_message_script_delay_timeout, and each ..._to_self */
static tenrec_status late_creation_is_told_by_to_here(const struct tenrec_test *t,
                                                      tenrec_error *err)
{
    const struct tenrec_call_options soon = { .size = sizeof soon, .timeout_ms = SOON_MS };
    const struct plan *p = t->arg;
    struct tenrec_rref *r, *slow = NULL;

    if (t->rank != 0)
        return TENREC_OK;
    r = remote_within(t, SOON_MS);
    creation_failed(r, TENREC_ETIMEDOUT);
    flush(t);
    assert_int_equal(tenrec_rref_to_here(r, NULL, NULL, err), TENREC_ETIMEDOUT);
    if (!p->to_self) {
        /* The creation goes well, but it is not waited for so long. */
        slow = remote_within(t, ENOUGH_MS);
        assert_int_equal(tenrec_rref_to_here(slow, &soon, NULL, err), TENREC_ETIMEDOUT);
        assert_status(tenrec_rref_to_here(slow, NULL, NULL, err), err);
    }
    tenrec_rref_drop(r);
    tenrec_rref_drop(slow);
    /* There the owner keeps both until it is asked otherwise; here it remembers that
     * the first was given up before it came. */
    assert_status(tenrec_test_wait_until_owners_and_forks_on_rank(t->worker, 0, 0,
                                                                  p->to_self ? 0 : 1, LONG_MS, err),
                  err);
    return TENREC_OK;
}

/* test_rref_to_here_timeout */
static tenrec_status late_fetch_times_out_and_the_next_does_not(const struct tenrec_test *t,
                                                                tenrec_error *err)
{
    const struct tenrec_call_options soon = { .size = sizeof soon, .timeout_ms = SOON_MS };
    struct tenrec_value *got = NULL;
    struct tenrec_rref *r;

    if (t->rank != 0)
        return TENREC_OK;
    r = remote_within(t, TENREC_TIMEOUT_DEFAULT);
    assert_int_equal(tenrec_rref_to_here(r, &soon, NULL, err), TENREC_ETIMEDOUT);
    assert_status(tenrec_rref_to_here(r, NULL, &got, err), err);
    assert_int_equal(take_int(got), 2);
    tenrec_rref_drop(r);
    return TENREC_OK;
}

/* ---- calls that are late
 * --------------------------------------------------------------------------- */

/* test_rpc_builtin_timeout, test_rpc_script_timeout */
static tenrec_status late_calls_time_out_by_their_own_limit(const struct tenrec_test *t,
                                                            tenrec_error *err)
{
    const char *function = ((const struct plan *)t->arg)->function;
    const char *to = next_worker(t, 1);
    struct tenrec_future *f;

    (void)function;
    ask_fails(t, to, "light", SOON_MS, TENREC_ETIMEDOUT, err);
    f = ask_async_within(t, to, "light", SOON_MS);
    wait_fails(f, TENREC_ETIMEDOUT, err);
    tenrec_future_drop(f);
    f = ask_async(t, to, "light", NULL, 0);
    wait_ok(f);
    tenrec_future_drop(f);
    assert_status(tenrec_worker_set_rpc_timeout(t->worker, SOON_MS, err), err);
    f = ask_async(t, to, "light", NULL, 0);
    wait_fails(f, TENREC_ETIMEDOUT, err);
    tenrec_future_drop(f);
    f = ask_async_within(t, to, "light", TENREC_TIMEOUT_NONE);
    wait_ok(f);
    tenrec_future_drop(f);
    assert_status(tenrec_worker_set_rpc_timeout(t->worker, 60000, err), err);
    return TENREC_OK;
}

int main(int argc, char **argv)
{
    static const char *const quick[] = { "worker.rref_retry_gap=20ms", NULL };
    const char *fixture = argc > 1 ? argv[1] : "config/faulty_torch.yaml";
    char *const backend[] = { argv[0], "faulty", NULL };
    const struct parity_case cases[] = {
#define CASE(name_, body, plan, ...)                                                               \
    {                                                                                              \
        .name = "parity_faulty_" name_, body,                                                      \
        {                                                                                          \
            .config = fixture, .settings = quick, .setup = references_setup,                       \
            .arg = (void *)(uintptr_t) & (plan), __VA_ARGS__                                       \
        }                                                                                          \
    }
        CASE("references_survive_lost_control_messages", references_survive_lost_control_messages,
             add, .messages_to_delay = none),
        CASE("fixture_has_torchs_options", fixture_has_torchs_options, add, .flags = 0),
        CASE("messages_to_fail_are_replaced", messages_to_fail_are_replaced, add,
             .messages_to_fail = fail_two),
        CASE("messages_to_fail_may_be_none", messages_to_fail_may_be_none, add,
             .messages_to_fail = none),
        CASE("messages_to_delay_are_replaced", messages_to_delay_are_replaced, add,
             .messages_to_delay = delay_script_calls),
        /* test_remote_message_dropped_pickle */
        CASE("lost_creation_cannot_be_passed_on", lost_creation_cannot_be_passed_on, udf,
             .messages_to_fail = fail_remote_calls, .messages_to_delay = none),
        /* test_remote_message_dropped_pickle_to_self */
        CASE("lost_creation_of_ones_own_cannot_be_passed_on", lost_creation_cannot_be_passed_on,
             udf_to_self, .messages_to_fail = fail_remote_calls, .messages_to_delay = none),
        /* test_builtin_remote_message_dropped_timeout */
        CASE("lost_creation_of_a_sum_is_told_by_to_here", lost_creation_is_told_by_to_here, add,
             .messages_to_fail = fail_remote_calls, .messages_to_delay = none),
        /* test_builtin_remote_message_dropped_timeout_to_self */
        CASE("lost_creation_of_ones_own_sum_is_told_by_to_here", lost_creation_is_told_by_to_here,
             add_to_self, .messages_to_fail = fail_remote_calls, .messages_to_delay = none),
        /* test_udf_remote_message_dropped_timeout */
        CASE("lost_creation_is_told_by_to_here", lost_creation_is_told_by_to_here, udf,
             .messages_to_fail = fail_remote_calls, .messages_to_delay = none),
        /* test_udf_remote_message_dropped_timeout_to_self */
        CASE("lost_creation_of_ones_own_is_told_by_to_here", lost_creation_is_told_by_to_here,
             udf_to_self, .messages_to_fail = fail_remote_calls, .messages_to_delay = none),
        /* test_udf_remote_message_delay_timeout */
        CASE("late_creation_is_told_by_to_here", late_creation_is_told_by_to_here, udf,
             .messages_to_fail = none, .messages_to_delay = delay_remote_calls_long),
        /* test_udf_remote_message_delay_timeout_to_self */
        CASE("late_creation_of_ones_own_is_told_by_to_here", late_creation_is_told_by_to_here,
             udf_to_self, .messages_to_fail = none, .messages_to_delay = delay_remote_calls),
        /* test_remote_message_builtin_delay_timeout, test_remote_message_script_delay_timeout */
        CASE("late_creation_and_fetch_are_told_by_to_here", late_creation_is_told_by_to_here, add,
             .messages_to_fail = none, .messages_to_delay = delay_remote_calls_and_fetches),
        /* test_remote_message_builtin_delay_timeout_to_self,
         * test_remote_message_script_delay_timeout_to_self */
        CASE("late_creation_of_ones_own_sum_is_told_by_to_here", late_creation_is_told_by_to_here,
             add_to_self, .messages_to_fail = none,
             .messages_to_delay = delay_remote_calls_and_fetches),
        CASE("late_fetch_times_out_and_the_next_does_not",
             late_fetch_times_out_and_the_next_does_not, add, .messages_to_fail = none,
             .messages_to_delay = delay_fetches),
        CASE("late_calls_time_out_by_their_own_limit", late_calls_time_out_by_their_own_limit, add,
             .messages_to_fail = none, .messages_to_delay = delay_calls),
    };

    return parity_run(2, (char **)backend, cases, sizeof cases / sizeof cases[0]);
}
