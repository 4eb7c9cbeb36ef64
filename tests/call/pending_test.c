/* SPDX-License-Identifier: Apache-2.0 */
/* pending_test.c - exactly one thread removes an entry. */
#include "call/pending.h"

#include "base/clock.h"

#include "../testing.h"

/* The table never looks into a future. */
static struct tenrec_future *fake(uintptr_t n)
{
    return (struct tenrec_future *)n; // NOLINT(performance-no-int-to-ptr)
}

static int64_t add(struct pending *p, uintptr_t n, tenrec_peer to, uint64_t deadline_ns)
{
    struct pending_entry e = { .future = fake(n), .to = to, .deadline_ns = deadline_ns };
    int64_t id = -1;

    assert_int_equal(pending_add(p, &e, &id), TENREC_OK);
    assert_true(id >= 0);
    return id;
}

TEST(pending_gives_an_entry_once_when_taken_twice)
{
    struct pending_entry e;
    struct pending p;
    int64_t id;

    pending_init(&p);
    id = add(&p, 7, 1, CLOCK_NEVER);
    assert_true(pending_take(&p, id, &e));
    assert_ptr_equal(e.future, fake(7));
    assert_false(pending_take(&p, id, &e));
    pending_finish(&p);
}

TEST(pending_finds_nothing_when_the_slot_is_used_again)
{
    struct pending_entry e;
    int64_t first, second;
    struct pending p;

    pending_init(&p);
    first = add(&p, 1, 0, CLOCK_NEVER);
    assert_true(pending_take(&p, first, &e));
    second = add(&p, 2, 0, CLOCK_NEVER);
    assert_int_not_equal(first, second);
    assert_false(pending_take(&p, first, &e));
    assert_true(pending_take(&p, second, &e));
    pending_finish(&p);
}

TEST(pending_finds_nothing_when_the_id_is_any_number)
{
    static const int64_t ids[] = { 0, -1, 1, INT64_MAX, INT64_MIN, 255, 256, 1 << 20 };
    struct pending_entry e;
    struct pending p;

    pending_init(&p);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        assert_false(pending_take(&p, ids[i], &e));
    add(&p, 1, 0, CLOCK_NEVER);
    for (size_t i = 1; i < sizeof ids / sizeof ids[0]; i++)
        assert_false(pending_take(&p, ids[i], &e));
    assert_true(pending_take(&p, 0, &e));
    pending_finish(&p);
}

TEST(pending_takes_late_entries_only_when_told_the_time)
{
    uint64_t next = CLOCK_NEVER;
    struct pending_entry e;
    uint32_t at = 0;
    struct pending p;
    int64_t late, soon, never;

    pending_init(&p);
    soon = add(&p, 1, 0, 200);
    late = add(&p, 2, 0, 100);
    never = add(&p, 3, 0, CLOCK_NEVER);
    assert_true(pending_take_late(&p, 150, &at, &e, &next));
    assert_ptr_equal(e.future, fake(2));
    assert_false(pending_take_late(&p, 150, &at, &e, &next));
    assert_int_equal(next, 200);
    assert_false(pending_take(&p, late, &e));
    assert_true(pending_take(&p, soon, &e));
    assert_true(pending_take(&p, never, &e));
    pending_finish(&p);
}

TEST(pending_takes_all_entries_of_a_lost_peer)
{
    struct pending_entry e;
    struct pending p;
    uint32_t at = 0;
    size_t n = 0;

    pending_init(&p);
    for (uintptr_t i = 0; i < 1000; i++)
        add(&p, i + 1, i % 2, CLOCK_NEVER);
    while (pending_take_peer(&p, 1, &at, &e)) {
        assert_int_equal(e.to, 1);
        n++;
    }
    assert_int_equal(n, 500);
    assert_int_equal(p.n, 500);
    at = 0;
    while (pending_take_peer(&p, -1, &at, &e))
        n++;
    assert_int_equal(n, 1000);
    assert_int_equal(p.n, 0);
    pending_finish(&p);
}
