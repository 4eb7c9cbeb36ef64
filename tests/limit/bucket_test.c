/* SPDX-License-Identifier: Apache-2.0 */
/* bucket_test.c - the budget of the plugin limit, at times that the test chooses. */
#include "bucket.h"

#include "../testing.h"

#define S UINT64_C(1000000000)

/* What passes at `now`, one after the other. */
static int passes(struct bucket *b, uint64_t cost, uint64_t burst, uint64_t now)
{
    int n = 0;

    for (; n < 1000 && bucket_due_ns(b, cost, burst, now) == now; n++)
        bucket_spend(b, cost, now);
    return n;
}

TEST(bucket_passes_a_burst_and_then_one_per_interval)
{
    struct bucket b = { 0 };

    assert_int_equal(bucket_cost_ns(10, 1), S / 10);
    assert_int_equal(passes(&b, S / 10, S, 5 * S), 10);
    assert_int_equal(bucket_due_ns(&b, S / 10, S, 5 * S), 5 * S + S / 10);
    assert_int_equal(passes(&b, S / 10, S, 5 * S + S / 10 - 1), 0);
    assert_int_equal(passes(&b, S / 10, S, 5 * S + S / 10), 1);
    assert_int_equal(passes(&b, S / 10, S, 5 * S + 3 * (S / 10)), 2);
}

TEST(bucket_refills_up_to_its_burst)
{
    struct bucket b = { 0 };

    assert_int_equal(passes(&b, S / 10, S, 5 * S), 10);
    assert_int_equal(passes(&b, S / 10, S, 5 * S + S / 2), 5);
    assert_int_equal(passes(&b, S / 10, S, 500 * S), 10);
}

/* In the long run the rate holds, whatever the size. */
TEST(bucket_passes_what_costs_more_than_a_burst_when_it_is_whole)
{
    struct bucket b = { 0 };

    assert_int_equal(passes(&b, 3 * S, S, 5 * S), 1);
    assert_int_equal(bucket_due_ns(&b, 3 * S, S, 5 * S), 8 * S);
    assert_int_equal(bucket_due_ns(&b, S / 2, S, 5 * S), 7 * S + S / 2);
    assert_int_equal(passes(&b, 3 * S, S, 8 * S - 1), 0);
    assert_int_equal(passes(&b, 3 * S, S, 8 * S), 1);
}

TEST(bucket_without_a_limit_costs_nothing)
{
    struct bucket b = { 0 };

    assert_int_equal(bucket_cost_ns(0, 1e18), 0);
    assert_int_equal(passes(&b, 0, S, 5 * S), 1000);
    assert_int_equal(passes(&b, 0, 0, 5 * S), 1000);
}

TEST(bucket_queues_in_order)
{
    struct bucket b = { 0 };
    uint64_t draw = 1, before = 0;

    for (int i = 0; i < 10000; i++) {
        draw = draw * 6364136223846793005u + 1442695040888963407u;
        const uint64_t cost = (draw >> 33) % (2 * S);
        const uint64_t due = bucket_due_ns(&b, cost, S, 5 * S);
        assert_true(due >= before);
        bucket_spend(&b, cost, 5 * S);
        before = due;
    }
}

TEST(bucket_survives_costs_beyond_all_time)
{
    const uint64_t burst = UINT32_MAX * UINT64_C(1000000), now = 5 * S;
    struct bucket b = { 0 };

    assert_int_equal(bucket_cost_ns(1e-300, 1e300), BUCKET_MAX_NS);
    for (int i = 0; i < 100; i++) {
        const uint64_t due = bucket_due_ns(&b, BUCKET_MAX_NS, burst, now);
        assert_true(due >= now && due <= 2 * BUCKET_MAX_NS);
        bucket_spend(&b, BUCKET_MAX_NS, now);
    }
    assert_int_equal(b.spent_until_ns, BUCKET_MAX_NS);
}
