/* SPDX-License-Identifier: Apache-2.0 */
/* backoff_test.c - how long is slept between two looks. */
#include "core/base/clock.h"

#include "../testing.h"

TEST(pause_gaps_double_up_to_the_longest)
{
    const uint64_t expected[] = { 10, 20, 40, 50, 50 };
    struct backoff p = { 10, 50 };

    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_int_equal(backoff_next_us(&p, 0, CLOCK_NEVER), expected[i]);
}

TEST(pause_ends_at_the_deadline)
{
    struct backoff p = { 10, 1000 };

    assert_int_equal(backoff_next_us(&p, 1000, 4001), 4); /* rounded up: not in vain */
    assert_int_equal(backoff_next_us(&p, 4001, 4001), 0);
    assert_int_equal(backoff_next_us(&p, 5000, 4001), 0);
    assert_false(backoff_take(&p, clock_now_ns()));
    assert_true(backoff_take(&p, CLOCK_NEVER));
}
