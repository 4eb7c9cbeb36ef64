/* SPDX-License-Identifier: Apache-2.0 */
/* references_test.c - calls on references and what else needs them: groups G8,
 * G19 and TP-B of docs/internals/parity.md, and single tests of others. */
#include "parity.h"

#include "references.h"

enum { SOON_MS = 50 /* a limit that is meant to pass */ };

/* ---- ways to call ------------------------------------------------------------------------ */

enum way { BY_SYNC, BY_ASYNC, BY_REMOTE, WAYS };

/* Calls `function` on the reference in the way; `ms` limits the call. */
static tenrec_status on(enum way way, struct tenrec_rref *r, const char *function,
                        const struct tenrec_value *args, size_t n, int64_t ms,
                        struct tenrec_value **ret, tenrec_error *err)
{
    const struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = ms };
    struct tenrec_future *f = NULL;
    struct tenrec_rref *result = NULL;
    tenrec_status st;

    if (way == BY_SYNC)
        return tenrec_rref_rpc_sync(r, function, args, n, &o, ret, err);
    if (way == BY_ASYNC) {
        st = tenrec_rref_rpc_async(r, function, args, n, &o, &f, err);
        if (st == TENREC_OK)
            st = tenrec_future_wait(f, tenrec_test_stretch_ms(LONG_MS), err);
        if (st == TENREC_OK && ret)
            st = tenrec_value_copy(tenrec_future_value(f), ret, err);
        tenrec_future_drop(f);
        return st;
    }
    st = tenrec_rref_remote(r, function, args, n, &o, &result, err);
    if (st == TENREC_OK)
        st = tenrec_rref_to_here(result, NULL, ret, err);
    tenrec_rref_drop(result);
    return st;
}

static int64_t int_on(enum way way, struct tenrec_rref *r, const char *function,
                      const struct tenrec_value *args, size_t n)
{
    struct tenrec_value *got = NULL;
    tenrec_error err;

    assert_status(on(way, r, function, args, n, TENREC_TIMEOUT_DEFAULT, &got, &err), &err);
    return take_int(got);
}

/* ---- G8 ------------------------------------------------------------------------------------- */

/* test_rref_proxy_non_exist */
static tenrec_status function_that_the_owner_lacks_fails_each_way(const struct tenrec_test *t,
                                                                  tenrec_error *err)
{
    struct tenrec_rref *r = remote_int(t, next_worker(t, 1), "identity", 7);

    for (int way = 0; way < WAYS; way++) {
        assert_int_equal(
            on((enum way)way, r, "non_exist", NULL, 0, TENREC_TIMEOUT_DEFAULT, NULL, err),
            TENREC_ENOFUNCTION);
        assert_text_has(err->text, "non_exist");
    }
    tenrec_rref_drop(r);
    return TENREC_OK;
}

static void rows_of_a_tensor_at(const struct tenrec_test *t, const char *to)
{
    int64_t n = t->rank + 1;
    struct tenrec_tensor *ones = filled(n, 1);
    const struct tenrec_value args[] = { tenrec_value_tensor(ones), tenrec_value_int(1) };
    struct tenrec_rref *r = remote(t, to, "add", args, 2);

    for (int way = 0; way < WAYS; way++)
        assert_int_equal(int_on((enum way)way, r, "rows", NULL, 0), n);
    tenrec_rref_drop(r);
    tenrec_tensor_drop(ones);
}

/* test_rref_proxy_tensor */
static tenrec_status functions_of_a_reference_take_its_tensor(const struct tenrec_test *t,
                                                              tenrec_error *err)
{
    (void)err;
    rows_of_a_tensor_at(t, next_worker(t, 1));
    return TENREC_OK;
}

/* test_rref_proxy_tensor_self */
static tenrec_status functions_of_ones_own_reference_take_its_tensor(const struct tenrec_test *t,
                                                                     tenrec_error *err)
{
    (void)err;
    rows_of_a_tensor_at(t, t->name);
    return TENREC_OK;
}

static void count_at(const struct tenrec_test *t, const char *to, const char *function)
{
    const struct tenrec_value three = tenrec_value_int(3);
    struct tenrec_rref *r = remote_int(t, to, "counter_new", 7);

    for (int way = 0; way < WAYS; way++)
        assert_int_equal(int_on((enum way)way, r, function, &three, 1), 10 + 3 * way);
    tenrec_rref_drop(r);
}

/* test_rref_proxy_class, test_call_method_on_rref, test_py_class_instance_method */
static tenrec_status functions_of_a_reference_are_called_by_each_way(const struct tenrec_test *t,
                                                                     tenrec_error *err)
{
    (void)err;
    count_at(t, next_worker(t, 1), "counter_add");
    return TENREC_OK;
}

/* test_rref_proxy_class_self */
static tenrec_status
functions_of_ones_own_object_are_called_by_each_way(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    count_at(t, t->name, "counter_add");
    return TENREC_OK;
}

/* test_async_class_rref_proxy, test_async_class_rref_proxy_async,
 * test_async_class_rref_proxy_remote */
static tenrec_status
async_functions_of_a_reference_are_called_by_each_way(const struct tenrec_test *t,
                                                      tenrec_error *err)
{
    (void)err;
    count_at(t, next_worker(t, 1), "counter_add_later");
    return TENREC_OK;
}

/* test_rref_proxy_reuse */
static tenrec_status reference_is_used_again_and_again(const struct tenrec_test *t,
                                                       tenrec_error *err)
{
    const struct tenrec_value one = tenrec_value_int(1);
    struct tenrec_rref *r = remote_int(t, next_worker(t, 1), "counter_new", 0);

    (void)err;
    for (int i = 0; i < 12; i++)
        assert_int_equal(int_on((enum way)(i % WAYS), r, "counter_add", &one, 1), i + 1);
    tenrec_rref_drop(r);
    return TENREC_OK;
}

static void other_type_is_refused(struct tenrec_rref *r, enum way way)
{
    const struct tenrec_value one = tenrec_value_int(1);
    tenrec_error err;

    assert_int_equal(on(way, r, "counter_add", &one, 1, TENREC_TIMEOUT_DEFAULT, NULL, &err),
                     TENREC_EINVAL);
    assert_text_has(err.text, "counter");
}

/* test_rref_type_blocking, test_rref_type_non_blocking */
static tenrec_status function_says_that_a_reference_is_of_another_type(const struct tenrec_test *t,
                                                                       tenrec_error *err)
{
    struct tenrec_rref *r = remote_int(t, next_worker(t, 1), "identity", 7);

    (void)err;
    for (int way = 0; way < WAYS; way++)
        other_type_is_refused(r, (enum way)way);
    tenrec_rref_drop(r);
    return TENREC_OK;
}

/* test_rref_type_owner_blocking, test_rref_type_owner_non_blocking */
static tenrec_status function_says_that_ones_own_is_of_another_type(const struct tenrec_test *t,
                                                                    tenrec_error *err)
{
    const struct tenrec_value seven = tenrec_value_int(7);
    struct tenrec_rref *r = NULL;

    assert_status(tenrec_rref_new(t->worker, &seven, &r, err), err);
    for (int way = 0; way < WAYS; way++)
        other_type_is_refused(r, (enum way)way);
    tenrec_rref_drop(r);
    return TENREC_OK;
}

/* test_rref_type_with_error_blocking, test_rref_type_with_error_non_blocking */
static tenrec_status
calls_on_a_reference_fail_with_the_error_of_its_creation(const struct tenrec_test *t,
                                                         tenrec_error *err)
{
    struct tenrec_rref *r = remote(t, next_worker(t, 1), "raise", NULL, 0);

    for (int way = 0; way < WAYS; way++) {
        assert_int_equal(on((enum way)way, r, "rows", NULL, 0, TENREC_TIMEOUT_DEFAULT, NULL, err),
                         TENREC_EREMOTE);
        assert_text_has(err->text, "Expected error");
    }
    tenrec_rref_drop(r);
    return TENREC_OK;
}

/* test_rref_type_slow_init: the call arrives before the object */
static tenrec_status calls_on_a_reference_wait_for_its_value(const struct tenrec_test *t,
                                                             tenrec_error *err)
{
    const struct tenrec_value one = tenrec_value_int(1);
    struct tenrec_rref *r = remote_int(t, next_worker(t, 1), "slow_counter_new", 7);
    struct tenrec_future *f = NULL;

    assert_status(tenrec_rref_rpc_async(r, "counter_add", &one, 1, NULL, &f, err), err);
    assert_false(tenrec_future_done(f));
    gate_open(t->rank);
    assert_int_equal(future_int(f), 8);
    tenrec_future_drop(f);
    tenrec_rref_drop(r);
    return TENREC_OK;
}

/* ---- TP-B ------------------------------------------------------------------------------------ */

/* test_rref_get_type_timeout_blocking, test_rref_get_type_timeout_non_blocking,
 * test_rref_proxy_timeout: by a function that takes its time, and by an object
 * that is not there yet. The reference reports the timeout of a remote call. */
static tenrec_status calls_on_a_reference_have_limits(const struct tenrec_test *t,
                                                      tenrec_error *err)
{
    const struct tenrec_value one = tenrec_value_int(1);
    struct tenrec_rref *r = remote_int(t, next_worker(t, 1), "counter_new", 0),
                       *slow = remote_int(t, next_worker(t, 1), "slow_counter_new", 0);

    for (int way = 0; way < WAYS; way++) {
        assert_int_equal(on((enum way)way, r, "slow_counter_add", &one, 1, SOON_MS, NULL, err),
                         TENREC_ETIMEDOUT);
        assert_int_equal(on((enum way)way, slow, "counter_add", &one, 1, SOON_MS, NULL, err),
                         TENREC_ETIMEDOUT);
    }
    gate_open(t->rank);
    assert_true(int_on(BY_SYNC, slow, "counter_add", &one, 1) >= 1);
    tenrec_rref_drop(r);
    tenrec_rref_drop(slow);
    return TENREC_OK;
}

/* ---- single tests of other groups
 * ---------------------------------------------------------------- */

/* test_rref_timeout: the creation takes longer than its limit */
static tenrec_status creation_times_out_and_the_owner_keeps_nothing(const struct tenrec_test *t,
                                                                    tenrec_error *err)
{
    const struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = SOON_MS };
    struct tenrec_future *f = NULL;
    struct tenrec_rref *r = NULL;

    if (t->rank != 0)
        return TENREC_OK;
    assert_status(tenrec_remote(t->worker, "worker1", "gate", NULL, 0, &o, &r, err), err);
    assert_status(tenrec_rref_future(r, &f, err), err);
    wait_fails(f, TENREC_ETIMEDOUT, err);
    assert_int_equal(tenrec_rref_to_here(r, NULL, NULL, err), TENREC_ETIMEDOUT);
    tenrec_future_drop(f);
    tenrec_rref_drop(r);
    gate_open(0);
    /* There it leaves an owner for ever; here its deletion is remembered. */
    assert_status(tenrec_test_wait_until_pending_futures_and_users_flushed(t->worker, LONG_MS, err),
                  err);
    assert_status(tenrec_test_wait_until_owners_and_forks_on_rank(t->worker, 0, 0, 1, LONG_MS, err),
                  err);
    return TENREC_OK;
}

/* test_pg_init_no_rpc_init */
static tenrec_status references_need_a_worker_that_runs(const struct tenrec_test *t,
                                                        tenrec_error *err)
{
    const struct tenrec_value one = tenrec_value_int(1);
    struct tenrec_process_group *pg = NULL;
    struct tenrec_config *config = NULL;
    struct tenrec_worker *w = NULL;
    struct tenrec_rref *r = NULL;

    assert_status(tenrec_test_initialize_pg(t->init_method, t->rank, t->world_size, &pg, err), err);
    assert_status(tenrec_test_make_config(t, &config, err), err);
    assert_status(tenrec_worker_new(config, &w, err), err);
    tenrec_config_drop(config);
    assert_int_equal(tenrec_rref_new(w, &one, &r, err), TENREC_ESHUTDOWN);
    assert_null(r);
    tenrec_worker_drop(w);
    assert_status(tenrec_process_group_barrier(pg, tenrec_test_stretch_ms(LONG_MS), err), err);
    tenrec_process_group_drop(pg);
    return TENREC_OK;
}

/* test_world_size_one: the part with a reference */
static tenrec_status reference_to_oneself_in_a_world_of_one(const struct tenrec_test *t,
                                                            tenrec_error *err)
{
    struct tenrec_tensor *ones = filled(2, 1);
    const struct tenrec_value args[] = { tenrec_value_tensor(ones), tenrec_value_tensor(ones) };
    struct tenrec_rref *r = remote(t, "me", "add", args, 2);
    struct tenrec_value *got = NULL;

    assert_status(tenrec_rref_to_here(r, NULL, &got, err), err);
    assert_filled(got, 2, 2);
    tenrec_rref_drop(r);
    tenrec_tensor_drop(ones);
    return TENREC_OK;
}

/* ---- G19
 * --------------------------------------------------------------------------------------------- */

/* train(server, steps): adds to the parameters of the server, from a trainer. */
static tenrec_status train(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    const struct tenrec_value one = tenrec_value_int(1);
    struct tenrec_rref *r = NULL; /* borrowed from the arguments */
    int64_t steps;
    tenrec_status st = tenrec_call_get_args(call, err, "ri", &r, &steps);

    (void)arg;
    while (st == TENREC_OK && steps-- > 0)
        st = tenrec_rref_rpc_sync(r, "counter_add", &one, 1, NULL, NULL, err);
    return st;
}

static tenrec_status setup_trainers(struct tenrec_worker *w, int32_t rank, void *arg,
                                    tenrec_error *err)
{
    tenrec_status st = references_setup(w, rank, arg, err);

    return st == TENREC_OK
               ? tenrec_worker_register_function(w, "train", train, NULL, TENREC_POOL, err)
               : st;
}

/* test_my_parameter_server: each worker is a server, and all others train on it */
static tenrec_status trainers_share_a_parameter_server(const struct tenrec_test *t,
                                                       tenrec_error *err)
{
    const struct tenrec_value zero = tenrec_value_int(0);
    struct tenrec_rref *server = remote_int(t, t->name, "counter_new", 0);
    struct tenrec_value args[2];
    struct tenrec_future *f[3];

    args[0] = tenrec_value_rref(server);
    args[1] = tenrec_value_int(5);
    for (int i = 0; i < 3; i++)
        f[i] = ask_async(t, next_worker(t, i + 1), "train", args, 2);
    assert_status(tenrec_future_wait_all(f, 3, tenrec_test_stretch_ms(LONG_MS), err), err);
    for (int i = 0; i < 3; i++)
        tenrec_future_drop(f[i]);
    assert_int_equal(int_on(BY_SYNC, server, "counter_add", &zero, 1), 15);
    tenrec_rref_drop(server);
    return TENREC_OK;
}

int main(int argc, char **argv)
{
    static const char *const called_me[] = { "worker.name=me", NULL };
    const struct parity_case cases[] = {
#define CASE(...) PARITY(__VA_ARGS__, .setup = references_setup)
        CASE(function_that_the_owner_lacks_fails_each_way),
        CASE(functions_of_a_reference_take_its_tensor),
        CASE(functions_of_ones_own_reference_take_its_tensor),
        CASE(functions_of_a_reference_are_called_by_each_way),
        CASE(functions_of_ones_own_object_are_called_by_each_way),
        CASE(async_functions_of_a_reference_are_called_by_each_way),
        CASE(reference_is_used_again_and_again),
        CASE(function_says_that_a_reference_is_of_another_type),
        CASE(function_says_that_ones_own_is_of_another_type),
        CASE(calls_on_a_reference_fail_with_the_error_of_its_creation),
        CASE(calls_on_a_reference_wait_for_its_value),
        CASE(calls_on_a_reference_have_limits),
        CASE(creation_times_out_and_the_owner_keeps_nothing),
        CASE(references_need_a_worker_that_runs, .flags = TENREC_TEST_NO_RPC),
        CASE(reference_to_oneself_in_a_world_of_one, .world_size = 1, .settings = called_me),
        { .name = "parity_trainers_share_a_parameter_server",
          trainers_share_a_parameter_server,
          { .setup = setup_trainers } },
    };

    return parity_run(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
