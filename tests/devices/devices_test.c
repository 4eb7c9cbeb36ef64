/* SPDX-License-Identifier: Apache-2.0 */
/* devices_test.c - behaviour of devices beyond torch's tests: buffers for results, when
 * maps may be set, refused calls, and that memory is returned. */
#include "../support/basic_functions.h"
#include "../support/functions.h"
#include "../testing.h"

#include <stdlib.h>
#include <tenrec/tenrec.h>

#include "../support/cluster.h"

#define GPU(i) ((struct tenrec_device){ TENREC_CUDA, (i) })

static struct cluster two;
static tenrec_error err;

static void setup(struct tenrec_worker *w, size_t rank)
{
    (void)rank;
    functions_offer(w, "echo", basic_echo, TENREC_POOL);
}

static void open_two(void)
{
    static const char *const extra[] = { "backends.inproc.options.devices=2",
                                         "worker.device_maps={worker0: {cuda:0: cuda:1}, "
                                         "worker1: {cuda:0: cuda:1}}",
                                         NULL };

    cluster_open(&two, 2, extra, setup);
}

static void close_two(void)
{
    cluster_close(&two, TENREC_GRACEFUL);
}

/* Four numbers, counted from `first`, on cuda:0. */
static struct tenrec_tensor *numbers(float first)
{
    const int64_t n = 4;
    struct tenrec_tensor *host, *t;

    assert_status(tenrec_tensor_new(TENREC_FLOAT32, 1, &n, &host, &err), &err);
    for (int i = 0; i < n; i++)
        ((float *)tenrec_tensor_data(host))[i] = first + (float)i;
    assert_status(tenrec_tensor_to(host, GPU(0), &t, &err), &err);
    tenrec_tensor_drop(host);
    return t;
}

static void assert_numbers(struct tenrec_tensor *t, float first)
{
    struct tenrec_tensor *host;

    assert_status(tenrec_tensor_to(t, (struct tenrec_device){ TENREC_CPU, 0 }, &host, &err), &err);
    for (int i = 0; i < 4; i++)
        assert_true(((float *)tenrec_tensor_data(host))[i] == first + (float)i);
    tenrec_tensor_drop(host);
}

TEST(devices_take_results_into_a_buffer_of_the_caller)
{
    struct tenrec_tensor *x = numbers(1), *into = numbers(9);
    const struct tenrec_value arg = tenrec_value_tensor(x);
    const struct tenrec_call_options o = { .size = sizeof o, .into = into };
    struct tenrec_value *got = NULL;

    assert_status(tenrec_rpc_sync(two.worker[0], "worker1", "echo", &arg, 1, &o, &got, &err), &err);
    assert_ptr_equal(tenrec_tensor_data(got->u.tensor), tenrec_tensor_data(into));
    assert_numbers(got->u.tensor, 1);
    assert_numbers(into, 1);
    tenrec_value_drop(got);
    tenrec_tensor_drop(x);
    tenrec_tensor_drop(into);
}

TEST(devices_refuse_a_buffer_that_is_elsewhere)
{
    const int64_t n = 4;
    struct tenrec_tensor *x = numbers(1), *into;
    const struct tenrec_value arg = tenrec_value_tensor(x);
    struct tenrec_call_options o = { .size = sizeof o };

    assert_status(tenrec_tensor_new(TENREC_FLOAT32, 1, &n, &into, &err), &err);
    o.into = into;
    assert_int_equal(tenrec_rpc_sync(two.worker[0], "worker1", "echo", &arg, 1, &o, NULL, &err),
                     TENREC_EINVAL);
    assert_text_has(err.text, "goes to cuda:0");
    tenrec_tensor_drop(x);
    tenrec_tensor_drop(into);
}

TEST(devices_refuse_values_whose_memory_is_null)
{
    const struct tenrec_value bad[] = { tenrec_value_tensor(NULL), tenrec_value_array(NULL, 1),
                                        tenrec_value_map(NULL, 1) };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(
            tenrec_worker_all_gather(two.worker[1], &bad[i], NULL, 0, 1000, NULL, &err),
            TENREC_EINVAL);
}

TEST(devices_are_said_before_init)
{
    const struct tenrec_device_pair pair = { GPU(0), GPU(0) };
    struct tenrec_device used[4];
    size_t n;

    assert_int_equal(tenrec_worker_set_device_map(two.worker[0], "worker1", &pair, 1, &err),
                     TENREC_EBUSY);
    assert_int_equal(tenrec_worker_set_devices(two.worker[0], &pair.from, 1, &err), TENREC_EBUSY);
    assert_status(tenrec_worker_get_devices(two.worker[0], used, 4, &n, &err), &err);
    assert_int_equal(n, 2);
    assert_int_equal(used[0].index, 0);
    assert_int_equal(used[1].index, 1);
}

TEST(devices_are_not_gathered)
{
    struct tenrec_tensor *x = numbers(1);
    const struct tenrec_value v = tenrec_value_tensor(x);

    assert_int_equal(tenrec_worker_all_gather(two.worker[0], &v, NULL, 0, 1000, NULL, &err),
                     TENREC_EUNSUPPORTED);
    assert_text_has(err.text, "tenrec_tensor_to");
    tenrec_tensor_drop(x);
}

static unsigned asked;

static void *alloc_on_device(void *arg, const struct tenrec_tensor_desc *d)
{
    (void)arg;
    asked += d->device.kind == TENREC_CUDA;
    return d->device.kind == TENREC_CUDA ? NULL : malloc(d->bytes);
}

static void free_here(void *arg, void *data)
{
    (void)arg;
    free(data);
}

TEST(devices_are_asked_of_an_allocator_that_knows_devices)
{
    struct tenrec_allocator a = { .size = sizeof a,
                                  .alloc = alloc_on_device,
                                  .free_fn = free_here };
    struct tenrec_tensor *x = numbers(3);
    const struct tenrec_value arg = tenrec_value_tensor(x);
    struct tenrec_value *got = NULL;

    for (unsigned knows = 0; knows < 2; knows++) {
        a.flags = knows ? TENREC_ALLOCATOR_DEVICES : 0;
        assert_status(tenrec_worker_set_allocator(two.worker[0], &a, &err), &err);
        assert_status(tenrec_rpc_sync(two.worker[0], "worker1", "echo", &arg, 1, NULL, &got, &err),
                      &err);
        assert_int_equal(asked, knows);
        assert_numbers(got->u.tensor, 3);
        tenrec_value_drop(got);
    }
    tenrec_worker_set_allocator(two.worker[0], NULL, NULL);
    tenrec_tensor_drop(x);
}

TEST_BETWEEN(open_two, close_two)
