/* SPDX-License-Identifier: Apache-2.0 */
/* asks_test.c - messages that wait for a view, which may never come. */
#include "../testing.h"

#include "core/base/clock.h"
#include "rpc/call/service.h"

#include <stdlib.h>

struct message {
    struct ask ask; /* first */
    int64_t id;
};

static struct asks all;

/* Frees the list, and returns the id of its first message; -1 if it has another number of messages
 * than `n`. */
static int64_t take(struct ask *list, unsigned n)
{
    const int64_t id = list ? ((struct message *)list)->id : -1;
    struct ask *next;

    for (; list; list = next, n--) {
        next = list->next;
        free(list);
    }
    return n == 0 ? id : -1;
}

static void end(void)
{
    while (all.first)
        take(asks_take_ripe(&all, 0, 0, true), 0);
}

/* The sender's oldest, which has to go, by its message; -1 for none. */
static int64_t add(tenrec_peer from, int64_t msg_id, int64_t version)
{
    struct message *m = calloc(1, sizeof *m);
    struct ask *oldest;

    assert_non_null(m);
    m->ask = (struct ask){ .from = from, .version = version, .deadline_ns = CLOCK_NEVER };
    m->id = msg_id;
    oldest = asks_add(&all, &m->ask);
    return oldest ? take(oldest, 1) : -1;
}

static unsigned count(void)
{
    unsigned n = 0;

    for (struct ask *a = all.first; a; a = a->next)
        n++;
    return n;
}

TEST_WITH(asks_of_strangers_are_bounded_and_the_oldest_goes, NULL, end)
{
    assert_int_equal(add(3, 1, 100), -1);
    for (int i = 0; i < ASKS_OF_STRANGERS; i++)
        assert_int_equal(add(-1, 1000 + i, 100), -1);
    for (int i = 0; i < 10; i++)
        assert_int_equal(add(-1, 2000 + i, 100), 1000 + i);
    assert_int_equal(count(), ASKS_OF_STRANGERS + 1);
}

TEST_WITH(asks_of_a_member_are_bounded_for_that_member_alone, NULL, end)
{
    for (int i = 0; i < ASKS_OF_MEMBER; i++)
        assert_int_equal(add(1, i, 100), -1);
    assert_int_equal(add(2, 50, 100), -1);
    assert_int_equal(add(1, 60, 100), 0);
    assert_int_equal(add(1, 61, 100), 1);
    assert_int_equal(count(), ASKS_OF_MEMBER + 1);
}

TEST_WITH(asks_are_ripe_when_their_version_is_there, NULL, end)
{
    uint64_t next_ns = CLOCK_NEVER;

    add(1, 1, 5);
    add(2, 2, 6);
    assert_false(asks_have_ripe(&all, 4, 0, &next_ns));
    assert_null(asks_take_ripe(&all, 4, 0, false));
    assert_true(asks_have_ripe(&all, 5, 0, &next_ns));
    assert_int_equal(take(asks_take_ripe(&all, 5, 0, false), 1), 1);
    assert_int_equal(take(asks_take_ripe(&all, 0, 0, true), 1), 2);
    assert_null(all.first);
}

TEST_WITH(asks_are_ripe_when_their_wait_ends, NULL, end)
{
    uint64_t next_ns = CLOCK_NEVER;

    add(1, 1, 5);
    add(2, 2, 5);
    all.first->deadline_ns = 100;
    assert_false(asks_have_ripe(&all, 4, 99, &next_ns));
    assert_int_equal(next_ns, 100);
    assert_int_equal(take(asks_take_ripe(&all, 4, 100, false), 1), 1);
    assert_non_null(all.first);
}
