/* SPDX-License-Identifier: Apache-2.0 */
/* Extents: where room is found, and what is free. */
#include "../testing.h"

#include "core/tensor/range_alloc.h"

static size_t take(struct range_alloc *e, size_t len, void *owner)
{
    size_t at = 0;

    assert_true(range_alloc_take(e, len, owner, &at));
    return at;
}

TEST(extents_finds_the_lowest_room)
{
    struct range_alloc e = { .length = 100 };
    size_t at;
    int a, b, c, d;

    assert_int_equal(take(&e, 40, &a), 0);
    assert_int_equal(take(&e, 40, &b), 40);
    assert_int_equal(take(&e, 20, &c), 80);
    assert_false(range_alloc_take(&e, 1, &d, &at));
    range_alloc_give(&e, 40);
    assert_false(range_alloc_take(&e, 41, &d, &at));
    assert_int_equal(take(&e, 10, &d), 40);
    assert_int_equal(take(&e, 30, &d), 50);
    range_alloc_finish(&e);
}

TEST(extents_find_the_owner_of_a_part)
{
    struct range_alloc e = { .length = 100 };
    int a, b;

    take(&e, 30, &a);
    take(&e, 30, &b);
    assert_ptr_equal(range_alloc_owner(&e, 0, 30), &a);
    assert_ptr_equal(range_alloc_owner(&e, 29, 1), &a);
    assert_ptr_equal(range_alloc_owner(&e, 30, 30), &b);
    assert_null(range_alloc_owner(&e, 29, 2));
    assert_null(range_alloc_owner(&e, 60, 1));
    assert_null(range_alloc_owner(&e, 31, (size_t)-1));
    range_alloc_give(&e, 0);
    assert_null(range_alloc_owner(&e, 0, 30));
    range_alloc_finish(&e);
}

TEST(extents_shows_every_gap)
{
    struct range_alloc e = { .length = 100 };
    size_t at = 0;
    int a;

    assert_int_equal(range_alloc_gap(&e, &at), 100);
    for (int i = 0; i < 10; i++)
        take(&e, 10, &a);
    assert_int_equal(range_alloc_gap(&e, &at), 0);
    range_alloc_give(&e, 20);
    range_alloc_give(&e, 30);
    range_alloc_give(&e, 90);
    at = 0;
    assert_int_equal(range_alloc_gap(&e, &at), 20);
    assert_int_equal(at, 20);
    at += 20;
    assert_int_equal(range_alloc_gap(&e, &at), 10);
    assert_int_equal(at, 90);
    at += 10;
    assert_int_equal(range_alloc_gap(&e, &at), 0);
    range_alloc_finish(&e);
}

/* Against a plain array: what is given out never overlaps, and all comes back. */
TEST(extents_agrees_with_a_plain_array)
{
    enum { LENGTH = 500, MOVES = 20000 };
    static int owner[LENGTH];
    static int *have[LENGTH]; /* whose each place is */
    struct range_alloc e = { .length = LENGTH };
    unsigned seed = 1;

    for (int i = 0; i < MOVES; i++) {
        size_t at, len;
        seed = seed * 1103515245 + 12345;
        at = (seed >> 8) % LENGTH;
        len = (seed >> 20) % 40 + 1;
        if (have[at]) {
            size_t first = (size_t)(have[at] - owner);
            range_alloc_give(&e, first);
            for (size_t k = first; k < LENGTH && have[k] == &owner[first]; k++)
                have[k] = NULL;
        } else if (range_alloc_take(&e, len, NULL, &at)) {
            for (size_t k = at; k < at + len; k++) {
                assert_null(have[k]);
                have[k] = &owner[at];
            }
        }
    }
    range_alloc_finish(&e);
}
