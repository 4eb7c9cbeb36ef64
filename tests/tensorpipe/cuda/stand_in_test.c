/* SPDX-License-Identifier: Apache-2.0 */
/* stand_in_test.c - the stand-in of libcuda shows the mistakes that it was made for. */
#include "../../testing.h"
#include "fake.h"

#define BYTES 4096

TEST(stand_in_has_several_devices)
{
    assert_int_equal(fake_open(NULL), 2);
    assert_true(fake_is_stand_in());
}

TEST(stand_in_runs_streams_late)
{
    uint64_t s = fake_stream(0), other = fake_stream(0);
    void *data = fake_new(0, BYTES);

    for (int i = 0; i < 100; i++) /* 2 s: this thread may have to wait for its turn */
        fake_delay(0, s);
    fake_fill(0, s, data, BYTES, 7);
    /* Nothing orders the two: the bytes cannot be there yet. */
    assert_false(fake_same(0, other, data, BYTES, 7));
    fake_check(0, s, data, BYTES, 7);
    fake_drop(0, data);
    fake_close();
    assert_int_equal(fake_live(FAKE_DEVICE_MEMORY), 0);
    assert_int_equal(fake_live(FAKE_HOST_MEMORY), 0);
    assert_int_equal(fake_reports(), 0);
}

TEST(stand_in_counts_calls)
{
    unsigned before = fake_calls("cuStreamCreate");

    fake_stream(1);
    assert_int_equal(fake_calls("cuStreamCreate"), before + 1);
}
