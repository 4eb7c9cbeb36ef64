/* SPDX-License-Identifier: Apache-2.0 */
/* values_test.c - what travels with calls: group G4 of docs/internals/parity.md. */
#include "../support/tensors.h"
#include "parity.h"

/* test_py_tensors */
static tenrec_status tensors_travel(const struct tenrec_test *t, tenrec_error *err)
{
    int64_t n = t->rank + 1;
    struct tenrec_tensor *ones = filled(n, 1);
    const struct tenrec_value args[] = { tenrec_value_tensor(ones), tenrec_value_tensor(ones) };

    (void)err;
    assert_filled(ask(t, next_worker(t, 1), "add", args, 2), n, 2);
    tenrec_tensor_drop(ones);
    return TENREC_OK;
}

/* test_py_tensors_multi_async_call: sizes 0 x 0 to 99 x 99, all under way */
static tenrec_status tensors_of_all_sizes_travel_at_once(const struct tenrec_test *t,
                                                         tenrec_error *err)
{
    struct tenrec_future *f[100];

    for (int i = 0; i < 100; i++) {
        struct tenrec_tensor *ones = filled(i, 1);
        const struct tenrec_value args[] = { tenrec_value_tensor(ones), tenrec_value_tensor(ones) };
        f[i] = ask_async(t, next_worker(t, 1), "add", args, 2);
        tenrec_tensor_drop(ones);
    }
    assert_status(tenrec_future_wait_all(f, 100, tenrec_test_stretch_ms(LONG_MS), err), err);
    for (int i = 0; i < 100; i++) {
        assert_true(is_filled(tenrec_future_value(f[i]), i, 2));
        tenrec_future_drop(f[i]);
    }
    return TENREC_OK;
}

/* test_py_tensors_in_container */
static tenrec_status tensors_travel_in_lists_and_maps(const struct tenrec_test *t,
                                                      tenrec_error *err)
{
    int64_t n = t->rank + 1;
    struct tenrec_tensor *ones = filled(n, 1);
    const struct tenrec_value list[] = { tenrec_value_tensor(ones), tenrec_value_tensor(ones) };
    const struct tenrec_entry map[] = { { "foo", tenrec_value_tensor(ones) },
                                        { "bar", tenrec_value_tensor(ones) } };
    const struct tenrec_value args[] = { tenrec_value_array(list, 2), tenrec_value_map(map, 2) };

    (void)err;
    assert_filled(ask(t, next_worker(t, 1), "sum_all", args, 2), n, 4);
    tenrec_tensor_drop(ones);
    return TENREC_OK;
}

/* test_py_nested_pickle, test_use_rpc_pickler: there a class that brings its own
 * serialisation; here a value within values within bytes. */
static tenrec_status values_travel_within_values(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_tensor *ones = filled(2, 1);
    const struct tenrec_value inner[] = { tenrec_value_tensor(ones),
                                          tenrec_value_bytes("\0\1\2", 3) };
    const struct tenrec_entry entry[] = { { "state", tenrec_value_array(inner, 2) } };
    const struct tenrec_value item = tenrec_value_map(entry, 1), arg = tenrec_value_array(&item, 1);
    struct tenrec_value *got = ask(t, next_worker(t, 1), "identity", &arg, 1);
    const struct tenrec_value *state = tenrec_value_find(&got->u.array[0], "state");

    (void)err;
    assert_true(is_filled(&state->u.array[0], 2, 1));
    assert_memory_equal(state->u.array[1].u.bytes, "\0\1\2", 3);
    tenrec_value_drop(got);
    tenrec_tensor_drop(ones);
    return TENREC_OK;
}

/* test_non_cont_tensors: a view of two columns in the middle keeps its values */
static tenrec_status views_travel(const struct tenrec_test *t, tenrec_error *err)
{
    static const int64_t shape[] = { 5, 2 }, strides[] = { 5, 1 };
    struct tenrec_tensor *view = NULL;
    const struct tenrec_tensor_desc *d;
    struct tenrec_value arg, *got;
    float data[25];

    for (int i = 0; i < 25; i++)
        data[i] = (float)i;
    assert_status(tensors_view(data + 2, sizeof data - 2 * sizeof data[0], TENREC_FLOAT32, 2, shape,
                               strides, &view, err),
                  err);
    arg = tenrec_value_tensor(view);
    got = ask(t, next_worker(t, 1), "identity", &arg, 1);
    d = tenrec_tensor_desc(got->u.tensor);
    assert_memory_equal(d->shape, shape, sizeof shape);
    for (int64_t i = 0; i < 5; i++)
        for (int64_t k = 0; k < 2; k++)
            assert_true(((float *)tenrec_tensor_data(
                            got->u.tensor))[i * d->strides[0] + k * d->strides[1]] ==
                        data[2 + 5 * i + k]);
    tenrec_value_drop(got);
    tenrec_tensor_drop(view);
    return TENREC_OK;
}

int main(int argc, char **argv)
{
    static const struct parity_case cases[] = {
        PARITY(tensors_travel),
        PARITY(tensors_of_all_sizes_travel_at_once),
        PARITY(tensors_travel_in_lists_and_maps),
        PARITY(values_travel_within_values),
        PARITY(views_travel),
    };

    return parity_run(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
