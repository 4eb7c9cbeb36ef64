/* SPDX-License-Identifier: Apache-2.0 */
/* device_futures_test.c - futures of tensors on devices: group CU-H of
 * docs/internals/parity.md. */
#include "device_functions.h"
#include "devices.h"

enum { N = 100 };

static struct tenrec_future *future_on(const struct tenrec_device *device, size_t n)
{
    struct tenrec_future *f = NULL;
    tenrec_error err;

    assert_status(tenrec_future_new_on(device, n, &f, &err), &err);
    return f;
}

/* On a stream of its own: fills `t` late, and completes `f` with `v`. */
static tenrec_status complete_late(struct tenrec_future *f, struct tenrec_tensor *t,
                                   const struct tenrec_value *v, tenrec_error *err)
{
    const struct tenrec_device device = tenrec_tensor_desc(t)->device;
    const struct tenrec_stream former = device_switch(device);
    const struct tenrec_stream now = { device, tenrec_stream_get_current(device) };
    tenrec_status st;

    assert_status(tenrec_stream_order(&former, &now, err), err); /* after it was made */
    tenrec_tensor_record_stream(t, &now);
    device_delay(device);
    vector_fill(t, 1);
    st = tenrec_future_set_value(f, v, err);
    device_switch_back(&former);
    return st;
}

/* Waits on another stream; the value, or its first item, is all 1 there. */
static void expect_ones(struct tenrec_future *f, struct tenrec_device device)
{
    const struct tenrec_stream former = device_switch(device);
    const struct tenrec_value *v;
    tenrec_error err;

    assert_status(tenrec_future_wait(f, tenrec_test_stretch_ms(LONG_MS), &err), &err);
    v = tenrec_future_value(f);
    while (v->type == TENREC_VALUE_ARRAY || v->type == TENREC_VALUE_MAP)
        v = v->type == TENREC_VALUE_ARRAY ? &v->u.array[0] : &v->u.map[0].value;
    assert_vector_value(v, device, 1);
    device_switch_back(&former);
}

/* test_cuda_future_device_as_device */
static tenrec_status future_takes_devices(const struct tenrec_test *t, tenrec_error *err)
{
    (void)t, (void)err;
    tenrec_future_drop(future_on(&GPU(0), 1));
    tenrec_future_drop(future_on((const struct tenrec_device[]){ GPU(0), GPU(1) }, 2));
    return TENREC_OK;
}

/* test_cuda_future_device_not_cuda */
static tenrec_status future_refuses_the_host(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_future *f = NULL;

    (void)t;
    assert_int_equal(tenrec_future_new_on(&CPU, 1, &f, err), TENREC_EINVAL);
    assert_text_has(err->text, "got cpu");
    return TENREC_OK;
}

static tenrec_status extract(const struct tenrec_test *t, const struct tenrec_value *v,
                             struct tenrec_tensor *x)
{
    struct tenrec_future *f = future_on(&GPU(0), 1);
    tenrec_error err;

    (void)t;
    assert_status(complete_late(f, x, v, &err), &err);
    expect_ones(f, GPU(0));
    tenrec_future_drop(f);
    return TENREC_OK;
}

/* test_cuda_future_can_extract_cuda_tensor */
static tenrec_status future_of_a_tensor_is_in_order(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_tensor *x;
    struct tenrec_value v;

    (void)err;
    devices_use(t->worker);
    x = vector_on(GPU(0), N, 0);
    v = tenrec_value_tensor(x);
    extract(t, &v, x);
    tenrec_tensor_drop(x);
    return TENREC_OK;
}

/* test_cuda_future_can_extract_list_with_cuda_tensor */
static tenrec_status future_of_a_list_is_in_order(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_tensor *x;
    struct tenrec_value item, v;

    (void)err;
    devices_use(t->worker);
    x = vector_on(GPU(0), N, 0);
    item = tenrec_value_tensor(x);
    v = tenrec_value_array(&item, 1);
    extract(t, &v, x);
    tenrec_tensor_drop(x);
    return TENREC_OK;
}

/* test_cuda_future_can_extract_custom_class_with_cuda_tensor: a map */
static tenrec_status future_of_a_map_is_in_order(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_tensor *x;
    struct tenrec_entry entry;
    struct tenrec_value v;

    (void)err;
    devices_use(t->worker);
    x = vector_on(GPU(0), N, 0);
    entry = (struct tenrec_entry){ "tensor", tenrec_value_tensor(x) };
    v = tenrec_value_map(&entry, 1);
    extract(t, &v, x);
    tenrec_tensor_drop(x);
    return TENREC_OK;
}

/* The value on cuda:1, where it was put on the callback's own streams. */
static tenrec_status put_there(struct tenrec_future *f, void *arg, struct tenrec_value *ret,
                               tenrec_error *err)
{
    struct tenrec_tensor *there = arg, *copy = NULL;
    tenrec_status st = tenrec_tensor_to(tenrec_future_value(f)->u.tensor, GPU(1), &copy, err);

    if (st != TENREC_OK)
        return st;
    vector_put(there, copy);
    tenrec_tensor_drop(copy);
    *ret = tenrec_value_tensor(there);
    return TENREC_OK;
}

/* test_cuda_future_callback_changes_devices */
static tenrec_status callback_changes_devices(const struct tenrec_test *t, tenrec_error *err)
{
    const struct tenrec_device both[] = { GPU(0), GPU(1) };
    struct tenrec_future *parent, *child = NULL;
    struct tenrec_tensor *x, *y;
    struct tenrec_value v;

    devices_use(t->worker);
    x = vector_on(GPU(0), N, 0);
    y = vector_on(GPU(1), N, 0);
    assert_status(tenrec_stream_wait(&(struct tenrec_stream){ GPU(1), 0 }, err), err);
    parent = future_on(both, 2);
    assert_status(tenrec_future_then(parent, put_there, y, &child, err), err);
    v = tenrec_value_tensor(x);
    assert_status(complete_late(parent, x, &v, err), err);
    expect_ones(child, GPU(1));
    tenrec_future_drop(child);
    tenrec_future_drop(parent);
    tenrec_tensor_drop(x);
    tenrec_tensor_drop(y);
    return TENREC_OK;
}

static tenrec_status fill_there(struct tenrec_future *f, void *arg, struct tenrec_value *ret,
                                tenrec_error *err)
{
    (void)f, (void)err;
    device_delay(GPU(1));
    vector_fill(arg, 1);
    *ret = tenrec_value_tensor(arg);
    return TENREC_OK;
}

/* test_cuda_future_value_on_bad_device */
static tenrec_status value_on_another_device_fails_the_future(const struct tenrec_test *t,
                                                              tenrec_error *err)
{
    struct tenrec_future *parent, *child = NULL;
    struct tenrec_tensor *x, *y;
    struct tenrec_value v;

    devices_use(t->worker);
    x = vector_on(GPU(0), N, 0);
    y = vector_on(GPU(1), N, 0);
    parent = future_on(&GPU(1), 1);
    assert_status(tenrec_future_then(parent, fill_there, y, &child, err), err);
    v = tenrec_value_tensor(x);
    assert_int_equal(complete_late(parent, x, &v, err), TENREC_EDEVICE);
    assert_int_equal(tenrec_future_wait(parent, tenrec_test_stretch_ms(LONG_MS), err),
                     TENREC_EDEVICE);
    assert_text_has(err->text, "a tensor on cuda:0");
    assert_text_has(err->text, "(cuda:1)");
    expect_ones(child, GPU(1));
    tenrec_future_drop(child);
    tenrec_future_drop(parent);
    tenrec_tensor_drop(x);
    tenrec_tensor_drop(y);
    return TENREC_OK;
}

/* test_async_execution_with_cuda_future */
static tenrec_status later_answer_is_in_order(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_tensor *x;
    struct tenrec_value v;
    struct tenrec_future *f;

    (void)err;
    devices_use(t->worker);
    x = vector_on(GPU(0), N, 0);
    v = tenrec_value_tensor(x);
    f = ask_async(t, next_worker(t, 1), "sleep_and_set_to_one", &v, 1);
    expect_ones(f, GPU(0));
    tenrec_future_drop(f);
    tenrec_tensor_drop(x);
    return TENREC_OK;
}

/* test_async_execution_nested_with_cuda_future */
static tenrec_status nested_later_answer_is_in_order(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_stream former;
    struct tenrec_tensor *x;
    struct tenrec_future *f;

    devices_use(t->worker);
    x = vector_on(GPU(0), N, 1);
    {
        const struct tenrec_value args[] = { tenrec_value_text(next_worker(t, 2)),
                                             tenrec_value_tensor(x), tenrec_value_tensor(x),
                                             tenrec_value_tensor(x) };
        f = ask_async(t, next_worker(t, 1), "async_nested_add", args, 4);
    }
    former = device_switch(GPU(0));
    assert_status(tenrec_future_wait(f, tenrec_test_stretch_ms(LONG_MS), err), err);
    assert_vector_value(tenrec_future_value(f), GPU(0), 3);
    device_switch_back(&former);
    tenrec_future_drop(f);
    tenrec_tensor_drop(x);
    return TENREC_OK;
}

/* test_cuda_future_modify_tensor_inplace: undefined, but no crash */
static tenrec_status value_may_be_written_after_completion(const struct tenrec_test *t,
                                                           tenrec_error *err)
{
    struct tenrec_future *f = future_on(&GPU(0), 1);
    struct tenrec_tensor *x;
    struct tenrec_value v;

    devices_use(t->worker);
    x = vector_on(GPU(0), N, 0);
    v = tenrec_value_tensor(x);
    assert_status(tenrec_future_set_value(f, &v, err), err);
    vector_fill(x, 1);
    assert_status(tenrec_future_wait(f, TENREC_TIMEOUT_NONE, err), err);
    tenrec_future_drop(f);
    tenrec_tensor_drop(x);
    return TENREC_OK;
}

/* test_cuda_future_replace_tensor: the program releases the tensor that completed the future */
static tenrec_status value_may_be_dropped_after_completion(const struct tenrec_test *t,
                                                           tenrec_error *err)
{
    struct tenrec_future *f = future_on(&GPU(0), 1);
    struct tenrec_value item, v;

    devices_use(t->worker);
    item = tenrec_value_tensor(vector_on(GPU(0), N, 0));
    v = tenrec_value_array(&item, 1);
    assert_status(tenrec_future_set_value(f, &v, err), err);
    tenrec_tensor_drop(item.u.tensor);
    item = tenrec_value_tensor(vector_on(GPU(0), N, 1));
    assert_status(tenrec_future_wait(f, TENREC_TIMEOUT_NONE, err), err);
    assert_vector_value(&tenrec_future_value(f)->u.array[0], GPU(0), 0);
    tenrec_future_drop(f);
    tenrec_tensor_drop(item.u.tensor);
    return TENREC_OK;
}

static const char *const ring[] = {
    "worker.device_maps={worker0: {cuda:0: cuda:0}, worker1: {cuda:0: cuda:0}, "
    "worker2: {cuda:0: cuda:0}, worker3: {cuda:0: cuda:0}}",
    NULL
};

#define CASE(test)                                                                                 \
    {                                                                                              \
#test, test,                                                                               \
        {                                                                                          \
            .settings = ring, .setup = device_functions_setup                                      \
        }                                                                                          \
    }
#define ONE(test)                                                                                  \
    {                                                                                              \
#test, test,                                                                               \
        {                                                                                          \
            .settings = alone, .setup = device_functions_setup, .world_size = 1                    \
        }                                                                                          \
    }

static const char *const alone[] = { "worker.devices=[cuda:0, cuda:1]", NULL };

int main(int argc, char **argv)
{
    static const struct parity_case cases[] = {
        ONE(future_takes_devices),
        ONE(future_refuses_the_host),
        ONE(future_of_a_tensor_is_in_order),
        ONE(future_of_a_list_is_in_order),
        ONE(future_of_a_map_is_in_order),
        ONE(callback_changes_devices),
        ONE(value_on_another_device_fails_the_future),
        CASE(later_answer_is_in_order),
        CASE(nested_later_answer_is_in_order),
        ONE(value_may_be_written_after_completion),
        ONE(value_may_be_dropped_after_completion),
    };

    return parity_run(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
