/* SPDX-License-Identifier: Apache-2.0 */
/* path_selector_test.c - the selector uses the recently faster path, and tries the other now and
 * then. */
#include "channel/path_selector.h"
#include "node.h"

#define LEN ((uint64_t)4 << 20)
#define LARGEST ((uint64_t)1 << 40)

/* Chooses and notes `n` times; returns how often both copied. */
static unsigned choose(struct path_selector *w, uint64_t len, unsigned n, uint64_t receiver_ns,
                       uint64_t both_ns)
{
    unsigned both = 0;

    for (unsigned i = 0; i < n; i++) {
        const enum copier way = path_choose(w, len, true);

        both += way == BY_BOTH;
        path_note(w, way, len, way == BY_BOTH ? both_ns : receiver_ns);
    }
    return both;
}

TEST(path_selector_tries_both_paths_at_first)
{
    struct path_selector w = { 0 };

    assert_int_equal(path_choose(&w, LEN, true), BY_RECEIVER);
    path_note(&w, BY_RECEIVER, LEN, 1000);
    assert_int_equal(path_choose(&w, LEN, true), BY_BOTH);
    /* The receiver reads until more is known. */
    assert_int_equal(path_choose(&w, LEN, false), BY_RECEIVER);
    /* The first time counts for little. */
    path_note(&w, BY_BOTH, LEN, 5000);
    assert_int_equal(path_choose(&w, LEN, true), BY_RECEIVER);
    path_note(&w, BY_RECEIVER, LEN, 1000);
    assert_int_equal(path_choose(&w, LEN, true), BY_BOTH);
    path_note(&w, BY_BOTH, LEN, 500);
    assert_int_equal(path_choose(&w, LEN, true), BY_BOTH);
}

TEST(path_selector_keeps_to_the_faster_path)
{
    struct path_selector w = { 0 };
    unsigned both = choose(&w, LEN, 1000, 2000, 1000);

    assert_in_range(both, 950, 990);
    memset(&w, 0, sizeof w);
    both = choose(&w, LEN, 1000, 1000, 2000);
    assert_in_range(both, 10, 50);
}

TEST(path_selector_seldom_tries_a_much_slower_path)
{
    struct path_selector w = { 0 };

    assert_in_range(choose(&w, LEN, 10000, 1000, 200000), 2, 4);
}

TEST(path_selector_changes_over_when_the_other_path_becomes_faster)
{
    struct path_selector w = { 0 };

    choose(&w, LEN, 100, 2000, 1000);
    choose(&w, LEN, 100, 2000, 9000);
    assert_int_equal(path_choose(&w, LEN, false), BY_RECEIVER);
    choose(&w, LEN, 300, 2000, 1000);
    assert_int_equal(path_choose(&w, LEN, false), BY_BOTH);
}

/* A machine that was disturbed during both tries of the faster path. */
TEST(path_selector_soon_forgets_disturbed_tries)
{
    struct path_selector w = { 0 };

    choose(&w, LEN, 4, 2000, 3500);
    assert_int_equal(path_choose(&w, LEN, false), BY_RECEIVER);
    assert_in_range(choose(&w, LEN, 32, 2000, 1000), 25, 29);
}

TEST(path_selector_learns_each_size_by_itself)
{
    struct path_selector w = { 0 };

    choose(&w, LEN, 10, 1000, 2000);
    choose(&w, 4 * LEN, 10, 2000, 1000);
    choose(&w, 1, 10, 2000, 1000);
    choose(&w, LARGEST, 10, 2000000000, 1000000000);
    assert_int_equal(path_choose(&w, LEN, false), BY_RECEIVER);
    assert_int_equal(path_choose(&w, 2 * LEN - 1, false), BY_RECEIVER);
    assert_int_equal(path_choose(&w, 4 * LEN, false), BY_BOTH);
    assert_int_equal(path_choose(&w, 1, false), BY_BOTH);
    assert_int_equal(path_choose(&w, LARGEST, false), BY_BOTH);
    assert_int_equal(path_choose(&w, 2 * LEN, false), BY_RECEIVER); /* not known */
}
