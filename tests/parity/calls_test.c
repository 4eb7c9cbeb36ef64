/* SPDX-License-Identifier: Apache-2.0 */
/* calls_test.c - addressing, calls, errors and nested calls: groups G1, G3, G5,
 * G6 and TP-C of docs/internals/parity.md. */
#include "parity.h"

#include "parity_functions.h"

/* ---- G1: identity of workers ------------------------------------------------------- */

/* test_worker_id */
static tenrec_status workers_know_their_names(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_worker_info me, peer;

    assert_status(tenrec_get_worker_info(t->worker, NULL, &me, err), err);
    assert_status(tenrec_get_worker_info(t->worker, next_worker(t, 1), &peer, err), err);
    assert_string_equal(me.name, next_worker(t, 0));
    assert_string_equal(peer.name, next_worker(t, 1));
    assert_int_equal(tenrec_get_worker_info(t->worker, "WorkerUnknown", &peer, err),
                     TENREC_EPEER_UNKNOWN);
    assert_text_has(err->text, "WorkerUnknown");
    return TENREC_OK;
}

/* test_get_worker_infos */
static tenrec_status workers_know_all(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_worker_info info[8];
    char name[TENREC_NAME_MAX + 1];
    size_t n = 0;

    assert_status(tenrec_worker_get_infos(t->worker, info, 8, &n, err), err);
    assert_int_equal(n, t->world_size);
    for (int32_t i = 0; i < t->world_size; i++) {
        assert_int_equal(info[i].id, i);
        assert_string_equal(info[i].name, tenrec_test_worker_name(i, name));
    }
    return TENREC_OK;
}

/* A tensor of n x n ones, plus 1, asked of `to`. */
static void add_one(const struct tenrec_test *t, const char *to, int64_t n)
{
    struct tenrec_tensor *ones = filled(n, 1);
    const struct tenrec_value args[] = { tenrec_value_tensor(ones), tenrec_value_int(1) };

    assert_filled(ask(t, to, "add", args, 2), n, 2);
    tenrec_tensor_drop(ones);
}

/* test_self_add: belongs to the basic calls of oneself */
static tenrec_status worker_adds_on_itself(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_tensor *ones = filled(2, 1);
    const struct tenrec_value args[] = { tenrec_value_tensor(ones), tenrec_value_int(1) };
    struct tenrec_future *f = ask_async(t, t->name, "add", args, 2);

    (void)err;
    add_one(t, t->name, 2);
    wait_ok(f);
    assert_true(is_filled(tenrec_future_value(f), 2, 2));
    tenrec_future_drop(f);
    tenrec_tensor_drop(ones);
    return TENREC_OK;
}

/* test_send_to_rank: sync, async and unknown ranks; a rank is looked up first */
static tenrec_status calls_go_to_ranks(const struct tenrec_test *t, tenrec_error *err)
{
    static const int32_t none[] = { -1, 4, 5, 32767 };
    struct tenrec_worker_info to;

    assert_status(tenrec_worker_get_info_by_id(t->worker, (t->rank + 1) % t->world_size, &to, err),
                  err);
    add_one(t, to.name, 2);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(tenrec_worker_get_info_by_id(t->worker, none[i], &to, err),
                         TENREC_EPEER_UNKNOWN);
    return TENREC_OK;
}

/* test_worker_info_pickle: a name and an id travel and come back equal */
static tenrec_status worker_info_travels(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_worker_info me;
    struct tenrec_value *got, pair[2], arg;

    assert_status(tenrec_get_worker_info(t->worker, NULL, &me, err), err);
    pair[0] = tenrec_value_text(me.name);
    pair[1] = tenrec_value_int(me.id);
    arg = tenrec_value_array(pair, 2);
    got = ask(t, next_worker(t, 1), "identity", &arg, 1);
    assert_int_equal(got->n, 2);
    assert_string_equal(got->u.array[0].u.text, me.name);
    assert_int_equal(got->u.array[1].u.integer, me.id);
    tenrec_value_drop(got);
    return TENREC_OK;
}

/* test_int_callee */
static tenrec_status callee_knows_its_id(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    assert_int_equal(take_int(ask(t, next_worker(t, 1), "my_id", NULL, 0)),
                     (t->rank + 1) % t->world_size);
    return TENREC_OK;
}

/* n x n ones twice, asked of the worker with id (rank + 1). */
static void add_ones(const struct tenrec_test *t, const char *to)
{
    int64_t n = t->rank + 1;
    struct tenrec_tensor *ones = filled(n, 1);
    const struct tenrec_value args[] = { tenrec_value_tensor(ones), tenrec_value_tensor(ones) };

    assert_filled(ask(t, to, "add", args, 2), n, 2);
    tenrec_tensor_drop(ones);
}

/* test_add_with_id */
static tenrec_status calls_take_what_the_lookup_gave(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_worker_info to;

    assert_status(tenrec_get_worker_info(t->worker, next_worker(t, 1), &to, err), err);
    add_ones(t, to.name);
    return TENREC_OK;
}

/* ---- G3: calls ------------------------------------------------------------------------ */

/* test_add */
static tenrec_status call_adds_tensors(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    add_ones(t, next_worker(t, 1));
    return TENREC_OK;
}

/* test_scalar_add */
static tenrec_status call_adds_a_number_to_a_tensor(const struct tenrec_test *t, tenrec_error *err)
{
    int64_t n = t->rank + 1;
    struct tenrec_tensor *ones = filled(n, 1);
    const struct tenrec_value args[] = { tenrec_value_tensor(ones), tenrec_value_int(n) };

    (void)err;
    assert_filled(ask(t, next_worker(t, 1), "add", args, 2), n, (float)(n + 1));
    tenrec_tensor_drop(ones);
    return TENREC_OK;
}

/* test_async_add */
static tenrec_status call_is_answered_through_a_future(const struct tenrec_test *t,
                                                       tenrec_error *err)
{
    int64_t n = t->rank + 1;
    struct tenrec_tensor *ones = filled(n, 1);
    const struct tenrec_value args[] = { tenrec_value_tensor(ones), tenrec_value_tensor(ones) };
    struct tenrec_future *f = ask_async(t, next_worker(t, 1), "add", args, 2);

    (void)err;
    wait_ok(f);
    assert_true(is_filled(tenrec_future_value(f), n, 2));
    tenrec_future_drop(f);
    tenrec_tensor_drop(ones);
    return TENREC_OK;
}

/* test_nonzero: the shape of the result is not that of the argument */
static tenrec_status call_returns_another_shape(const struct tenrec_test *t, tenrec_error *err)
{
    int64_t n = t->world_size;
    struct tenrec_tensor *x = filled(n, 1);
    const struct tenrec_value arg = tenrec_value_tensor(x);
    const struct tenrec_tensor_desc *d;
    struct tenrec_value *got;
    const int64_t *at;
    int64_t k = 0;

    (void)err;
    ((float *)tenrec_tensor_data(x))[t->rank * n + t->rank] = 0;
    got = ask(t, next_worker(t, 1), "nonzero", &arg, 1);
    d = tenrec_tensor_desc(got->u.tensor);
    assert_int_equal(d->shape[0], n * n - 1);
    assert_int_equal(d->shape[1], 2);
    at = tenrec_tensor_data(got->u.tensor);
    for (int64_t i = 0; i < n * n; i++) {
        if (i == t->rank * n + t->rank)
            continue;
        assert_int_equal(at[k++], i / n);
        assert_int_equal(at[k++], i % n);
    }
    tenrec_value_drop(got);
    tenrec_tensor_drop(x);
    return TENREC_OK;
}

/* test_multi_rpc */
static tenrec_status calls_follow_one_another(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    for (int i = 0; i < 20; i++) {
        int64_t n = i + t->rank + 1;
        struct tenrec_tensor *ones = filled(n, 1);
        const struct tenrec_value args[] = { tenrec_value_tensor(ones), tenrec_value_tensor(ones) };
        assert_filled(ask(t, next_worker(t, 1), "add", args, 2), n, 2);
        tenrec_tensor_drop(ones);
    }
    return TENREC_OK;
}

/* test_expected_src */
static tenrec_status call_comes_from_the_one_expected(const struct tenrec_test *t,
                                                      tenrec_error *err)
{
    struct tenrec_value mine = tenrec_value_int(t->rank);

    (void)err;
    tenrec_value_drop(ask(t, next_worker(t, 1), "set_value", &mine, 1));
    assert_becomes(value_of(t->rank) >= 0);
    assert_int_equal(value_of(t->rank), (t->rank + t->world_size - 1) % t->world_size);
    return TENREC_OK;
}

static void three(int64_t n, struct tenrec_value ret[3])
{
    for (int i = 0; i < 3; i++)
        ret[i] = tenrec_value_int(n + i);
}

/* test_py_built_in */
static tenrec_status call_takes_three_arguments(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_value args[3];

    (void)err;
    three(t->rank + 1, args);
    assert_int_equal(take_int(ask(t, next_worker(t, 1), "min", args, 3)), t->rank + 1);
    return TENREC_OK;
}

/* test_py_user_defined: keyword arguments are a map */
static tenrec_status call_takes_named_arguments(const struct tenrec_test *t, tenrec_error *err)
{
    int64_t n = t->rank + 1;
    const struct tenrec_entry entry[] = { { "a", tenrec_value_int(n) },
                                          { "b", tenrec_value_int(n + 1) },
                                          { "c", tenrec_value_int(n + 2) } };
    const struct tenrec_value arg = tenrec_value_map(entry, 3);

    (void)err;
    assert_int_equal(take_int(ask(t, next_worker(t, 1), "named_sum", &arg, 1)), 3 * n + 3);
    return TENREC_OK;
}

/* test_py_multi_async_call */
static tenrec_status calls_are_under_way_together(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_value args[3];
    struct tenrec_future *f[2];

    (void)err;
    three(t->rank + 1, args);
    f[0] = ask_async(t, next_worker(t, 1), "sum3", args, 3);
    f[1] = ask_async(t, next_worker(t, 1), "min", args, 3);
    assert_int_equal(future_int(f[0]), 3 * (t->rank + 1) + 3);
    assert_int_equal(future_int(f[1]), t->rank + 1);
    tenrec_future_drop(f[0]);
    tenrec_future_drop(f[1]);
    return TENREC_OK;
}

/* test_py_no_return_result */
static tenrec_status call_without_a_result_returns_nil(const struct tenrec_test *t,
                                                       tenrec_error *err)
{
    struct tenrec_value *got = ask(t, next_worker(t, 1), "no_result", NULL, 0);

    (void)err;
    assert_int_equal(got->type, TENREC_VALUE_NIL);
    tenrec_value_drop(got);
    return TENREC_OK;
}

/* ---- G5: errors ---------------------------------------------------------------------------- */

/* test_py_function_exception */
static tenrec_status wrong_arguments_fail_on_the_callee(const struct tenrec_test *t,
                                                        tenrec_error *err)
{
    const struct tenrec_value ten = tenrec_value_int(10);

    assert_int_equal(
        tenrec_rpc_sync(t->worker, next_worker(t, 1), "no_result", &ten, 1, NULL, NULL, err),
        TENREC_EINVAL);
    assert_text_has(err->text, "takes 0 arguments, got 1");
    assert_string_equal(err->worker_name, next_worker(t, 1));
    return TENREC_OK;
}

/* test_py_raise_in_user_func */
static tenrec_status error_of_a_function_reaches_the_caller(const struct tenrec_test *t,
                                                            tenrec_error *err)
{
    struct tenrec_future *f = ask_async(t, next_worker(t, 1), "raise", NULL, 0);

    wait_fails(f, TENREC_EREMOTE, err);
    assert_text_has(err->text, "Expected error");
    assert_string_equal(err->worker_name, next_worker(t, 1));
    tenrec_future_drop(f);
    return TENREC_OK;
}

/* test_py_raise_in_user_func_escaped_str */
static tenrec_status error_text_is_not_escaped(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_future *f = ask_async(t, next_worker(t, 1), "raise_lines", NULL, 0);

    wait_fails(f, TENREC_EREMOTE, err);
    assert_text_has(err->text, "Expected\nerror \\n\\t");
    tenrec_future_drop(f);
    return TENREC_OK;
}

static tenrec_status foo_add(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    (void)c, (void)arg, (void)err;
    return TENREC_OK;
}

/* test_function_not_on_callee */
static tenrec_status function_that_the_callee_lacks_is_named(const struct tenrec_test *t,
                                                             tenrec_error *err)
{
    if (t->rank != 0)
        return TENREC_OK; /* only the caller has it */
    assert_status(tenrec_worker_register_function(t->worker, "foo_add", foo_add, NULL, 0, err),
                  err);
    tenrec_value_drop(ask(t, t->name, "foo_add", NULL, 0));
    ask_fails(t, next_worker(t, 1), "foo_add", TENREC_TIMEOUT_DEFAULT, TENREC_ENOFUNCTION, err);
    assert_text_has(err->text, "foo_add");
    return TENREC_OK;
}

/* ---- G6: nested and many --------------------------------------------------------------------- */

/* test_nested_rpc: the callee asks its caller */
static tenrec_status callee_calls_its_caller(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_tensor *ones = filled(2, 1);
    const struct tenrec_value args[] = { tenrec_value_text(t->name), tenrec_value_tensor(ones) };

    (void)err;
    assert_filled(ask(t, next_worker(t, 1), "nested_add", args, 2), 2, 2);
    tenrec_tensor_drop(ones);
    return TENREC_OK;
}

static void stress(const struct tenrec_test *t, const char *function, const struct tenrec_value *v,
                   size_t n, size_t repeat)
{
    struct tenrec_future **f = calloc(repeat, sizeof *f);
    tenrec_error err;

    assert_non_null(f);
    for (size_t i = 0; i < repeat; i++)
        f[i] = ask_async(t, next_worker(t, 1), function, v, n);
    assert_status(tenrec_future_wait_all(f, repeat, tenrec_test_stretch_ms(LONG_MS), &err), &err);
    for (size_t i = 0; i < repeat; i++) {
        assert_int_equal(future_int(f[i]), 0);
        tenrec_future_drop(f[i]);
    }
    free(f);
}

/* test_stress_light_rpc */
static tenrec_status a_thousand_light_calls_are_answered(const struct tenrec_test *t,
                                                         tenrec_error *err)
{
    (void)err;
    stress(t, "light", NULL, 0, 1000);
    return TENREC_OK;
}

/* test_stress_heavy_rpc */
static tenrec_status heavy_calls_are_answered(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_tensor *ones = filled(100, 1);
    const struct tenrec_value arg = tenrec_value_tensor(ones);

    (void)err;
    stress(t, "heavy", &arg, 1, 20);
    tenrec_tensor_drop(ones);
    return TENREC_OK;
}

/* ---- TP-C ---------------------------------------------------------------------------------------
 */

/* test_op_with_invalid_args */
static tenrec_status missing_arguments_fail_on_the_callee(const struct tenrec_test *t,
                                                          tenrec_error *err)
{
    ask_fails(t, next_worker(t, 1), "add", TENREC_TIMEOUT_DEFAULT, TENREC_EINVAL, err);
    assert_text_has(err->text, "takes 2 arguments, got 0");
    return TENREC_OK;
}

int main(int argc, char **argv)
{
    static const struct parity_case cases[] = {
        PARITY(workers_know_their_names),
        PARITY(workers_know_all),
        PARITY(worker_adds_on_itself),
        PARITY(calls_go_to_ranks),
        PARITY(worker_info_travels),
        PARITY(callee_knows_its_id),
        PARITY(calls_take_what_the_lookup_gave),
        PARITY(call_adds_tensors),
        PARITY(call_adds_a_number_to_a_tensor),
        PARITY(call_is_answered_through_a_future),
        PARITY(call_returns_another_shape),
        PARITY(calls_follow_one_another),
        PARITY(call_comes_from_the_one_expected),
        PARITY(call_takes_three_arguments),
        PARITY(call_takes_named_arguments),
        PARITY(calls_are_under_way_together),
        PARITY(call_without_a_result_returns_nil),
        PARITY(wrong_arguments_fail_on_the_callee),
        PARITY(error_of_a_function_reaches_the_caller),
        PARITY(error_text_is_not_escaped),
        PARITY(function_that_the_callee_lacks_is_named),
        PARITY(callee_calls_its_caller),
        PARITY(a_thousand_light_calls_are_answered),
        PARITY(heavy_calls_are_answered),
        PARITY(missing_arguments_fail_on_the_callee),
    };

    return parity_run(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
