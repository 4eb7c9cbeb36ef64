/* SPDX-License-Identifier: Apache-2.0 */
/* memory_test.c - memory of devices that is used again, in the order of streams. */
#include "../../testing.h"
#include "cuda/device.h"
#include "fake.h"

#define BYTES ((size_t)100000)

static void *make(const struct tenrec_stream *s, size_t bytes)
{
    tenrec_error err;
    void *data;

    assert_status(cuda_device_ops.memory_new(s, bytes, &data, &err), &err);
    return data;
}

static struct tenrec_stream stream(int device)
{
    struct tenrec_stream s = { { TENREC_CUDA, device }, 0 };
    tenrec_error err;

    assert_status(cuda_device_ops.stream_get(device, &s.stream, &err), &err);
    return s;
}

static void setup(void)
{
    devices_hold();
    device_memory_keep(1 << 20);
}

static void teardown(void)
{
    devices_let_go();
    fake_close();
    assert_int_equal(fake_live(FAKE_DEVICE_MEMORY), 0);
    assert_int_equal(fake_live(FAKE_EVENTS), 0);
    assert_int_equal(fake_reports(), 0);
}

TEST_WITH(memory_is_used_again_in_the_order_of_streams, setup, teardown)
{
    const struct tenrec_stream first = stream(0), then = stream(0);
    void *data = make(&first, BYTES), *again;

    fake_delay(0, first.stream);
    fake_fill(0, first.stream, data, BYTES, 1);
    cuda_device_ops.memory_drop(&first, data);
    again = make(&then, BYTES - 100);
    assert_ptr_equal(again, data);
    fake_fill(0, then.stream, again, BYTES - 100, 2);
    fake_wait(0, then.stream);
    fake_wait(0, first.stream);
    fake_check(0, then.stream, again, BYTES - 100, 2);
    cuda_device_ops.memory_drop(&then, again);
}

TEST_WITH(memory_beyond_the_limit_goes_back, setup, teardown)
{
    const struct tenrec_stream s = stream(0);
    void *large = make(&s, 2 << 20), *small[12];

    if (!fake_is_stand_in())
        skip();
    cuda_device_ops.memory_drop(&s, large);
    assert_int_equal(fake_live(FAKE_DEVICE_MEMORY), 0);
    for (int i = 0; i < 12; i++)
        small[i] = make(&s, BYTES);
    for (int i = 0; i < 12; i++)
        cuda_device_ops.memory_drop(&s, small[i]);
    assert_true(fake_live(FAKE_DEVICE_MEMORY) > 0);
    assert_true(fake_live(FAKE_DEVICE_MEMORY) <= 10);
}

TEST_WITH(memory_that_is_kept_is_freed_when_the_driver_has_no_memory, setup, teardown)
{
    const struct tenrec_stream s = stream(0);
    void *data = make(&s, BYTES), *other;

    if (!fake_is_stand_in())
        skip();
    cuda_device_ops.memory_drop(&s, data);
    /* Another size, for which the driver has no memory: what is kept is given back. */
    fake_fail("cuMemAlloc_v2", 1);
    other = make(&s, 3 * BYTES);
    assert_int_equal(fake_live(FAKE_DEVICE_MEMORY), 1);
    cuda_device_ops.memory_drop(&s, other);
}

TEST_WITH(memory_may_be_dropped_when_no_agent_is_left, setup, teardown)
{
    const struct tenrec_stream s = stream(0);
    void *data = make(&s, BYTES);

    fake_delay(0, s.stream);
    fake_fill(0, s.stream, data, BYTES, 1);
    devices_let_go();
    cuda_device_ops.memory_drop(&s, data);
    assert_int_equal(fake_live(FAKE_DEVICE_MEMORY), 0);
    devices_hold();
}

TEST_WITH(memory_error_names_the_device, setup, teardown)
{
    const struct tenrec_stream s = stream(0), nowhere = { { TENREC_CUDA, 77 }, 0 };
    tenrec_error err;
    void *data;

    assert_int_equal(cuda_device_ops.memory_new(&nowhere, 1, &data, &err), TENREC_EINVAL);
    assert_text_has(err.text, "cuda:77");
    assert_int_equal(cuda_device_ops.memory_new(&s, UINT64_C(1) << 50, &data, &err), TENREC_ENOMEM);
    assert_text_has(err.text, "cuMemAlloc_v2 for cuda:0: CUDA_ERROR_OUT_OF_MEMORY");
}

int main(void)
{
    const char *why;

    if (!fake_open(&why)) {
        printf("1..0 # SKIP no GPU: %s\n", why);
        return 77;
    }
    return testing_run(NULL, NULL);
}
