/* SPDX-License-Identifier: Apache-2.0 */
/* worker_value_test.c - values and tensors between workers, on the backend named
 * in argv. */
#include "../support/tensors.h"
#include "pair.h"

#include <stdlib.h>

TEST(worker_gives_every_value_back_when_identity_is_called)
{
    const struct tenrec_entry entry[] = { { "k", tenrec_value_int(1) },
                                          { "l", tenrec_value_text("v") } };
    const struct tenrec_value item[] = { tenrec_value_int(-5), tenrec_value_bool(true) };
    const struct tenrec_value args[] = { tenrec_value_nil(),
                                         tenrec_value_double(0.5),
                                         tenrec_value_text("h\xc3\xa9"),
                                         tenrec_value_bytes("\0\1", 2),
                                         tenrec_value_array(item, 2),
                                         tenrec_value_map(entry, 2) };
    struct tenrec_value *got = call("worker1", "identity", args, 6);
    const struct tenrec_value *v = got->u.array;

    assert_int_equal(got->n, 6);
    assert_int_equal(v[0].type, TENREC_VALUE_NIL);
    assert_true(v[1].u.number == 0.5);
    assert_string_equal(v[2].u.text, "h\xc3\xa9");
    assert_memory_equal(v[3].u.bytes, "\0\1", 2);
    assert_int_equal(v[4].u.array[0].u.integer, -5);
    assert_string_equal(tenrec_value_find(&v[5], "l")->u.text, "v");
    tenrec_value_drop(got);
}

static struct tenrec_tensor *make_range(int64_t n)
{
    struct tenrec_tensor *t = NULL;

    assert_int_equal(tenrec_tensor_new(TENREC_FLOAT32, 1, &n, &t, NULL), TENREC_OK);
    for (int64_t i = 0; i < n; i++)
        ((float *)tenrec_tensor_data(t))[i] = (float)i;
    return t;
}

TEST(worker_carries_tensors_of_many_sizes)
{
    static const int64_t size[] = { 0, 1, 7, 1000, 100000, 3000000 };

    for (size_t i = 0; i < sizeof size / sizeof size[0]; i++) {
        struct tenrec_tensor *t = make_range(size[i]);
        struct tenrec_value arg = tenrec_value_tensor(t),
                            *got = call("worker1", "identity", &arg, 1);
        const struct tenrec_tensor *back = got->u.array[0].u.tensor;
        assert_int_equal(tenrec_tensor_count(back), size[i]);
        assert_memory_equal(tenrec_tensor_data(back), tenrec_tensor_data(t),
                            (size_t)size[i] * sizeof(float));
        tenrec_value_drop(got);
        tenrec_tensor_drop(t);
    }
}

TEST(worker_makes_a_strided_tensor_contiguous_when_sent)
{
    static float data[6] = { 0, 1, 2, 3, 4, 5 };
    const int64_t shape[] = { 3, 2 }, strides[] = { 1, 3 }; /* transposed */
    struct tenrec_tensor *t = NULL;
    struct tenrec_value arg, *got;

    assert_int_equal(tensors_view(data, sizeof data, TENREC_FLOAT32, 2, shape, strides, &t, NULL),
                     TENREC_OK);
    arg = tenrec_value_tensor(t);
    got = call("worker1", "identity", &arg, 1);
    assert_memory_equal(tenrec_tensor_desc(got->u.array[0].u.tensor)->shape, shape, sizeof shape);
    assert_true(((float *)tenrec_tensor_data(got->u.array[0].u.tensor))[1] == 3);
    tenrec_value_drop(got);
    tenrec_tensor_drop(t);
}

TEST(worker_receives_into_a_given_buffer)
{
    struct tenrec_call_options o = { .size = sizeof o };
    struct tenrec_value arg = tenrec_value_int(1000), *got = NULL;
    struct tenrec_tensor *into = make_range(1000), *wrong = make_range(7);
    tenrec_error err;

    memset(tenrec_tensor_data(into), 0, 4000);
    o.into = into;
    assert_int_equal(tenrec_rpc_sync(two.worker[0], "worker1", "range", &arg, 1, &o, &got, &err),
                     TENREC_OK);
    assert_ptr_equal(tenrec_tensor_data(got->u.tensor), tenrec_tensor_data(into));
    assert_true(((float *)tenrec_tensor_data(into))[999] == 999);
    tenrec_value_drop(got);
    o.into = wrong;
    assert_int_equal(tenrec_rpc_sync(two.worker[0], "worker1", "range", &arg, 1, &o, NULL, &err),
                     TENREC_EINVAL);
    assert_non_null(strstr(err.text, "buffer given for it"));
    tenrec_tensor_drop(into);
    tenrec_tensor_drop(wrong);
}

/* Answers a tensor that says it lies on a device. */
static tenrec_status on_device(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    const int64_t shape[] = { 8 };
    struct tenrec_tensor *t = NULL;
    struct tenrec_value v;
    tenrec_status st = tenrec_tensor_new(TENREC_UINT8, 1, shape, &t, err);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    memset(tenrec_tensor_data(t), 1, 8);
    ((struct tenrec_tensor_desc *)tenrec_tensor_desc(t))->device.kind = TENREC_CUDA;
    v = tenrec_value_tensor(t);
    st = tenrec_call_return(c, &v, err);
    tenrec_tensor_drop(t);
    return st;
}

TEST(worker_gets_an_error_when_no_device_map_places_the_answer)
{
    tenrec_error err;

    assert_int_equal(tenrec_worker_register_function(two.worker[1], "on_device", on_device, NULL,
                                                     TENREC_POOL, &err),
                     TENREC_OK);
    assert_int_equal(
        tenrec_rpc_sync(two.worker[0], "worker1", "on_device", NULL, 0, NULL, NULL, &err),
        TENREC_EDEVICE);
    assert_non_null(strstr(err.text, "worker.device_maps: {worker1: {cuda:N: cuda:0}}"));
    assert_string_equal(err.worker_name, "worker1");
}

static void *alloc_here(void *arg, const struct tenrec_tensor_desc *desc)
{
    ++*(int *)arg;
    return malloc(desc->bytes ? desc->bytes : 1);
}

static void *alloc_nothing(void *arg, const struct tenrec_tensor_desc *desc)
{
    (void)arg, (void)desc;
    return NULL;
}

static void free_here(void *arg, void *data)
{
    --*(int *)arg;
    free(data);
}

TEST(worker_takes_memory_from_the_users_allocator)
{
    static int n; /* freed when the messages go, after the case */
    struct tenrec_allocator a = {
        .size = sizeof a, .alloc = alloc_here, .free_fn = free_here, .arg = &n
    };
    struct tenrec_value arg = tenrec_value_int(100), *got;

    assert_int_equal(tenrec_worker_set_allocator(two.worker[0], &a, NULL), TENREC_OK);
    got = call("worker1", "range", &arg, 1);
    assert_int_equal(n, 1);
    assert_true(((float *)tenrec_tensor_data(got->u.tensor))[99] == 99);
    tenrec_value_drop(got);
    assert_int_equal(n, 0);
    assert_int_equal(tenrec_worker_set_allocator(two.worker[0], NULL, NULL), TENREC_OK);
}

/* The function never ran: the error is of the call, not of the callee's function. */
TEST(worker_says_that_a_callee_has_no_memory_for_a_tensor)
{
    const struct tenrec_allocator none = { .size = sizeof none,
                                           .alloc = alloc_nothing,
                                           .free_fn = free_here };
    struct tenrec_tensor *t = NULL;
    struct tenrec_value arg;
    tenrec_error err;

    assert_status(tenrec_tensor_new(TENREC_FLOAT32, 1, (const int64_t[]){ 100 }, &t, &err), &err);
    arg = tenrec_value_tensor(t);
    assert_int_equal(tenrec_worker_set_allocator(two.worker[1], &none, NULL), TENREC_OK);
    assert_int_equal(tenrec_rpc_sync(two.worker[0], "worker1", "sum", &arg, 1, NULL, NULL, &err),
                     TENREC_ENOMEM);
    assert_int_equal(err.flags & TENREC_ERROR_CALLEE, 0);
    assert_text_has(err.text, "no memory");
    assert_int_equal(tenrec_worker_set_allocator(two.worker[1], NULL, NULL), TENREC_OK);
    tenrec_tensor_drop(t);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cluster_use(argv[1]);
    return testing_run(open_two, close_two);
}
