/* SPDX-License-Identifier: Apache-2.0 */
/* asks_test.c - VIEW messages whose versions never come do not pile up. */
#include "../testing.h"

#include "call/asks.h"

#include <stdlib.h>

static struct asks all;

static void end(void)
{
    asks_finish(&all);
}

/* The sender's oldest, which has to go, by its message; -1 for none. */
static int64_t add(tenrec_peer from, int64_t msg_id, int64_t version)
{
    struct ask *a = calloc(1, sizeof *a), *oldest;
    int64_t id;

    assert_non_null(a);
    *a = (struct ask){ .from = from, .msg_id = msg_id, .version = version };
    oldest = asks_add(&all, a);
    id = oldest ? oldest->msg_id : -1;
    free(oldest);
    return id;
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
    struct ask *ripe;

    add(1, 1, 5);
    add(2, 2, 6);
    assert_false(asks_have_ripe(&all, 4));
    assert_null(asks_take_ripe(&all, 4, false));
    assert_true(asks_have_ripe(&all, 5));
    ripe = asks_take_ripe(&all, 5, false);
    assert_int_equal(ripe->msg_id, 1);
    assert_null(ripe->next);
    free(ripe);
    ripe = asks_take_ripe(&all, 0, true);
    assert_int_equal(ripe->msg_id, 2);
    free(ripe);
    assert_null(all.first);
}
