/* SPDX-License-Identifier: Apache-2.0 */
/* sharing_test.c - references that are made, fetched and passed around: group G7
 * of docs/internals/parity.md. */
#include "references.h"

/* A reference to a + (a + 1) + (a + 2) on `to`. */
static struct tenrec_rref *remote_sum3(const struct tenrec_test *t, const char *to, int64_t a)
{
    const struct tenrec_value args[] = { tenrec_value_int(a), tenrec_value_int(a + 1),
                                         tenrec_value_int(a + 2) };

    return remote(t, to, "sum3", args, 3);
}

static int64_t fetch_int(struct tenrec_rref *r)
{
    return take_int(fetch(r));
}

/* ---- G7: made and fetched ---------------------------------------------------------------- */

/* test_builtin_remote_ret */
static tenrec_status reference_brings_its_value_here(const struct tenrec_test *t, tenrec_error *err)
{
    int64_t n = t->rank + 1;
    struct tenrec_rref *r = remote_ones(t, next_worker(t, 1), n, 1);

    (void)err;
    assert_filled(fetch(r), n, 2);
    tenrec_rref_drop(r);
    return TENREC_OK;
}

/* test_builtin_remote_self */
static tenrec_status reference_to_oneself_has_its_value_here(const struct tenrec_test *t,
                                                             tenrec_error *err)
{
    struct tenrec_rref *r = remote_ones(t, t->name, 2, 1);
    const struct tenrec_value *v = NULL;

    assert_status(tenrec_rref_local_value(r, tenrec_test_stretch_ms(LONG_MS), &v, err), err);
    assert_true(is_filled(v, 2, 2));
    tenrec_rref_drop(r);
    return TENREC_OK;
}

/* test_multi_builtin_remote_ret */
static tenrec_status many_references_bring_their_values(const struct tenrec_test *t,
                                                        tenrec_error *err)
{
    struct tenrec_rref *r[10];
    int64_t n = t->rank + 1;

    (void)err;
    for (int i = 0; i < 10; i++)
        r[i] = remote_ones(t, next_worker(t, 1), n + i, i);
    for (int i = 0; i < 10; i++) {
        assert_filled(fetch(r[i]), n + i, (float)(1 + i));
        tenrec_rref_drop(r[i]);
    }
    return TENREC_OK;
}

/* test_py_udf_remote */
static tenrec_status reference_has_the_result_of_a_function(const struct tenrec_test *t,
                                                            tenrec_error *err)
{
    struct tenrec_rref *r = remote_sum3(t, next_worker(t, 1), t->rank + 1);

    (void)err;
    assert_int_equal(fetch_int(r), 3 * (t->rank + 1) + 3);
    tenrec_rref_drop(r);
    return TENREC_OK;
}

/* test_multi_py_udf_remote */
static tenrec_status many_references_have_results_of_a_function(const struct tenrec_test *t,
                                                                tenrec_error *err)
{
    struct tenrec_rref *r[10];

    (void)err;
    for (int i = 0; i < 10; i++)
        r[i] = remote_sum3(t, next_worker(t, 1), t->rank + i);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(fetch_int(r[i]), 3 * (t->rank + i) + 3);
        tenrec_rref_drop(r[i]);
    }
    return TENREC_OK;
}

/* test_self_py_udf_remote */
static tenrec_status reference_to_oneself_has_the_result_of_a_function(const struct tenrec_test *t,
                                                                       tenrec_error *err)
{
    struct tenrec_rref *r = remote_sum3(t, t->name, 1);

    (void)err;
    assert_int_equal(fetch_int(r), 6);
    tenrec_rref_drop(r);
    return TENREC_OK;
}

/* ---- G7: as arguments ------------------------------------------------------------------------ */

/* A reference of one's own goes to `to` with two calls. */
static void pass_to_calls(const struct tenrec_test *t, const char *to)
{
    struct tenrec_rref *r = remote_sum3(t, t->name, 1);
    struct tenrec_value args[] = { tenrec_value_rref(r), tenrec_value_int(1) };
    struct tenrec_future *f = ask_async(t, to, "add_to_reference", args, 2);

    args[1] = tenrec_value_int(3);
    assert_int_equal(take_int(ask(t, to, "add_to_reference", args, 2)), 9);
    assert_int_equal(future_int(f), 7);
    tenrec_future_drop(f);
    tenrec_rref_drop(r);
}

/* test_self_remote_rref_as_rpc_arg */
static tenrec_status reference_of_ones_own_is_an_argument(const struct tenrec_test *t,
                                                          tenrec_error *err)
{
    (void)err;
    pass_to_calls(t, next_worker(t, 1));
    return TENREC_OK;
}

/* test_self_remote_rref_as_self_rpc_arg */
static tenrec_status reference_of_ones_own_is_an_argument_for_oneself(const struct tenrec_test *t,
                                                                      tenrec_error *err)
{
    (void)err;
    pass_to_calls(t, t->name);
    return TENREC_OK;
}

static void pass_to_remote(const struct tenrec_test *t, const char *to)
{
    struct tenrec_rref *r = remote_sum3(t, t->name, 1), *sum;
    const struct tenrec_value args[] = { tenrec_value_rref(r), tenrec_value_int(1) };

    sum = remote(t, to, "add_to_reference", args, 2);
    assert_int_equal(fetch_int(sum), 7);
    tenrec_rref_drop(sum);
    tenrec_rref_drop(r);
}

/* test_self_remote_rref_as_remote_arg */
static tenrec_status reference_of_ones_own_goes_into_another(const struct tenrec_test *t,
                                                             tenrec_error *err)
{
    (void)err;
    pass_to_remote(t, next_worker(t, 1));
    return TENREC_OK;
}

/* test_self_remote_rref_as_self_remote_arg */
static tenrec_status
reference_of_ones_own_goes_into_another_of_ones_own(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    pass_to_remote(t, t->name);
    return TENREC_OK;
}

/* Two references on `owner` are added on `user`, which returns another. */
static void sum_on(const struct tenrec_test *t, const char *owner, const char *user)
{
    struct tenrec_rref *a = remote_sum3(t, owner, t->rank), *b = remote_sum3(t, owner, 1), *c;
    const struct tenrec_value args[] = { tenrec_value_rref(a), tenrec_value_rref(b) };

    c = remote(t, user, "sum_of_references", args, 2);
    assert_int_equal(fetch_int(c), 3 * t->rank + 3 + 6);
    tenrec_rref_drop(a);
    tenrec_rref_drop(b);
    tenrec_rref_drop(c);
}

/* test_py_rref_args */
static tenrec_status references_go_back_to_their_owner(const struct tenrec_test *t,
                                                       tenrec_error *err)
{
    (void)err;
    sum_on(t, next_worker(t, 1), next_worker(t, 1));
    return TENREC_OK;
}

/* test_py_rref_args_user_share */
static tenrec_status references_are_shared_with_another_user(const struct tenrec_test *t,
                                                             tenrec_error *err)
{
    (void)err;
    sum_on(t, next_worker(t, 1), next_worker(t, 2));
    return TENREC_OK;
}

/* test_py_rpc_rref_args */
static tenrec_status references_are_arguments_of_a_call(const struct tenrec_test *t,
                                                        tenrec_error *err)
{
    const char *to = next_worker(t, 1);
    struct tenrec_rref *a = remote_sum3(t, to, t->rank), *b = remote_sum3(t, to, 1);
    const struct tenrec_value args[] = { tenrec_value_rref(a), tenrec_value_rref(b) };

    (void)err;
    assert_int_equal(take_int(ask(t, to, "sum_of_references", args, 2)), 3 * t->rank + 3 + 6);
    tenrec_rref_drop(a);
    tenrec_rref_drop(b);
    return TENREC_OK;
}

/* test_remote_same_worker */
static tenrec_status references_meet_on_one_worker(const struct tenrec_test *t, tenrec_error *err)
{
    int64_t n = t->rank + 1;
    const char *to = next_worker(t, 1);
    struct tenrec_rref *a = remote_ones(t, to, n, 2), *b = remote_ones(t, to, n, 1), *c;
    const struct tenrec_value args[] = { tenrec_value_rref(a), tenrec_value_rref(b) };

    (void)err;
    c = remote(t, to, "sum_of_references", args, 2);
    assert_filled(fetch(c), n, 5);
    tenrec_rref_drop(a);
    tenrec_rref_drop(b);
    tenrec_rref_drop(c);
    return TENREC_OK;
}

/* test_pass_local_rrefs */
static tenrec_status reference_to_a_local_value_is_passed_each_way(const struct tenrec_test *t,
                                                                   tenrec_error *err)
{
    const struct tenrec_value forty = tenrec_value_int(40);
    const char *to = next_worker(t, 1);
    struct tenrec_value args[2];
    struct tenrec_rref *r = NULL, *sum;
    struct tenrec_future *f;

    assert_status(tenrec_rref_new(t->worker, &forty, &r, err), err);
    args[0] = tenrec_value_rref(r);
    args[1] = tenrec_value_int(50);
    assert_int_equal(take_int(ask(t, to, "add_to_reference", args, 2)), 90);
    f = ask_async(t, to, "add_to_reference", args, 2);
    assert_int_equal(future_int(f), 90);
    sum = remote(t, to, "add_to_reference", args, 2);
    assert_int_equal(fetch_int(sum), 90);
    tenrec_future_drop(f);
    tenrec_rref_drop(sum);
    tenrec_rref_drop(r);
    return TENREC_OK;
}

/* ---- G7: in results ---------------------------------------------------------------------------
 */

/* test_nested_remote */
static tenrec_status function_fetches_what_it_made_elsewhere(const struct tenrec_test *t,
                                                             tenrec_error *err)
{
    struct tenrec_tensor *ones = filled(2, 1);
    const struct tenrec_value args[] = { tenrec_value_text(next_worker(t, 2)),
                                         tenrec_value_tensor(ones) };
    struct tenrec_rref *r = remote(t, next_worker(t, 1), "nested_add_of", args, 2);

    (void)err;
    assert_filled(fetch(r), 2, 2);
    tenrec_rref_drop(r);
    tenrec_tensor_drop(ones);
    return TENREC_OK;
}

static struct tenrec_rref *remote_pair(const struct tenrec_test *t)
{
    struct tenrec_tensor *ones = filled(2, 1);
    const struct tenrec_value args[] = { tenrec_value_text(next_worker(t, 2)),
                                         tenrec_value_tensor(ones) };
    struct tenrec_rref *r = remote(t, next_worker(t, 1), "nested_references", args, 2);

    tenrec_tensor_drop(ones);
    return r;
}

static void take_pair(struct tenrec_rref *pair)
{
    struct tenrec_value *got = fetch(pair);

    assert_int_equal(got->type, TENREC_VALUE_ARRAY);
    assert_int_equal(got->n, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(got->u.array[i].type, TENREC_VALUE_RREF);
        assert_filled(fetch(got->u.array[i].u.rref), 2, (float)(2 + i));
    }
    tenrec_value_drop(got);
    tenrec_rref_drop(pair);
}

/* test_nested_rref */
static tenrec_status reference_to_references_leads_to_values(const struct tenrec_test *t,
                                                             tenrec_error *err)
{
    (void)err;
    take_pair(remote_pair(t));
    return TENREC_OK;
}

/* test_nested_rref_stress */
static tenrec_status many_references_to_references_lead_to_values(const struct tenrec_test *t,
                                                                  tenrec_error *err)
{
    struct tenrec_rref *pair[20];

    (void)err;
    for (int i = 0; i < 20; i++)
        pair[i] = remote_pair(t);
    for (int i = 0; i < 20; i++)
        take_pair(pair[i]);
    return TENREC_OK;
}

/* test_rpc_return_rref */
static tenrec_status call_returns_a_reference(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_tensor *ones = filled(2, 1);
    const struct tenrec_value args[] = { tenrec_value_text(next_worker(t, 2)),
                                         tenrec_value_tensor(ones) };
    struct tenrec_value *got = ask(t, next_worker(t, 1), "return_reference", args, 2);

    (void)err;
    assert_int_equal(got->type, TENREC_VALUE_RREF);
    assert_filled(fetch(got->u.rref), 2, 2);
    tenrec_value_drop(got);
    tenrec_tensor_drop(ones);
    return TENREC_OK;
}

/* test_rref_forward_chain */
static tenrec_status reference_goes_through_a_chain_of_workers(const struct tenrec_test *t,
                                                               tenrec_error *err)
{
    enum { TTL = 8 };
    struct tenrec_rref *r = remote_ones(t, next_worker(t, 1), t->rank + 1, 1), *last;
    const struct tenrec_value args[] = { tenrec_value_rref(r), tenrec_value_int(TTL) };
    struct tenrec_rref *next = remote(t, next_worker(t, 1), "forward", args, 2);

    (void)err;
    for (int i = 0; i <= TTL; i++) {
        struct tenrec_value *got = fetch(next);
        assert_int_equal(got->n, 1);
        last = tenrec_rref_share(got->u.array[0].u.rref);
        tenrec_value_drop(got);
        tenrec_rref_drop(next);
        next = last;
    }
    assert_filled(fetch(next), t->rank + 1, 2);
    tenrec_rref_drop(next);
    tenrec_rref_drop(r);
    return TENREC_OK;
}

/* test_return_local_rrefs */
static tenrec_status call_returns_references_to_objects_of_its_own(const struct tenrec_test *t,
                                                                   tenrec_error *err)
{
    const struct tenrec_value starts[] = { tenrec_value_int(1), tenrec_value_int(2),
                                           tenrec_value_int(3) };
    const struct tenrec_value list = tenrec_value_array(starts, 3), ten = tenrec_value_int(10),
                              zero = tenrec_value_int(0);
    struct tenrec_value *got = ask(t, next_worker(t, 1), "new_counters", &list, 1), *value = NULL;

    assert_int_equal(got->n, 3);
    for (int i = 0; i < 3; i++) {
        struct tenrec_rref *r = got->u.array[i].u.rref;
        assert_string_equal(tenrec_rref_owner_name(r), next_worker(t, 1));
        assert_status(tenrec_rref_rpc_sync(r, "counter_add", &ten, 1, NULL, NULL, err), err);
        assert_status(tenrec_rref_rpc_sync(r, "counter_add", &zero, 1, NULL, &value, err), err);
        assert_int_equal(take_int(value), 11 + i);
    }
    tenrec_value_drop(got);
    return TENREC_OK;
}

int main(int argc, char **argv)
{
    static const struct parity_case cases[] = {
#define CASE(...) PARITY(__VA_ARGS__, .setup = references_setup)
        CASE(reference_brings_its_value_here),
        CASE(reference_to_oneself_has_its_value_here),
        CASE(many_references_bring_their_values),
        CASE(reference_has_the_result_of_a_function),
        CASE(many_references_have_results_of_a_function),
        CASE(reference_to_oneself_has_the_result_of_a_function),
        CASE(reference_of_ones_own_is_an_argument),
        CASE(reference_of_ones_own_is_an_argument_for_oneself),
        CASE(reference_of_ones_own_goes_into_another),
        CASE(reference_of_ones_own_goes_into_another_of_ones_own),
        CASE(references_go_back_to_their_owner),
        CASE(references_are_shared_with_another_user),
        CASE(references_are_arguments_of_a_call),
        CASE(references_meet_on_one_worker),
        CASE(reference_to_a_local_value_is_passed_each_way),
        CASE(function_fetches_what_it_made_elsewhere),
        CASE(reference_to_references_leads_to_values),
        CASE(many_references_to_references_lead_to_values),
        CASE(call_returns_a_reference),
        CASE(reference_goes_through_a_chain_of_workers),
        CASE(call_returns_references_to_objects_of_its_own),
    };

    return parity_run(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
