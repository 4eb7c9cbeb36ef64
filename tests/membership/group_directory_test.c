/* SPDX-License-Identifier: Apache-2.0 */
/* The list of groups in a store, and looking at a group without being of it. */
#include "../support/test_store.h"

#include "core/base/clock.h"
#include "group/meeting/meeting.h"
#include "group/membership/group_directory.h"

#include <tenrec/store.h>
#include <tenrec/types.h>

#define KEY "tenrec.groups"

static struct tenrec_store *store;
static tenrec_error err;

static void open_store(void)
{
    static int count;
    char url[64];

    snprintf(url, sizeof url, "memory://groups%d", count++);
    assert_status(tenrec_store_open(url, TEST_MS, &store, &err), &err);
}

static void drop_store(void)
{
    tenrec_store_close(store);
}

static uint64_t soon(void)
{
    return clock_deadline_ms(TEST_MS);
}

static void announce(const char *name, const char *run, int32_t world, int64_t incarnation)
{
    assert_status(group_directory_announce(store, name, run, world, incarnation, soon(), &err),
                  &err);
}

TEST_WITH(groups_find_the_latest_start_of_each, open_store, drop_store)
{
    struct group_directory_entry e;

    announce("a", "", 2, 1);
    announce("b", "run-7", 3, 1);
    announce("a", "r2", 4, 5);
    assert_status(group_directory_find(store, "a", soon(), &e, &err), &err);
    assert_string_equal(e.run, "r2");
    assert_int_equal(e.world, 4);
    assert_int_equal(e.incarnation, 5);
    assert_status(group_directory_find(store, "b", soon(), &e, &err), &err);
    assert_string_equal(e.name, "b");
    assert_string_equal(e.run, "run-7");
    assert_int_equal(e.world, 3);
}

TEST_WITH(groups_name_the_known_groups_when_a_group_is_unknown, open_store, drop_store)
{
    struct group_directory_entry e;

    assert_int_equal(group_directory_find(store, "a", soon(), &e, &err), TENREC_EGROUP);
    assert_text_has(err.text, "has no group of workers");
    announce("trainers", "", 2, 1);
    announce("readers", "", 2, 1);
    assert_int_equal(group_directory_find(store, "reader", soon(), &e, &err), TENREC_EGROUP);
    assert_text_has(err.text, "did you mean 'readers'");
    assert_text_has(err.text, "\"readers\", \"trainers\"");
}

TEST_WITH(groups_forget_the_oldest_when_there_are_many, open_store, drop_store)
{
    struct group_directory_entry e;
    char name[16];

    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "g%d", i);
        announce(name, "", 1, 1);
    }
    assert_int_equal(group_directory_find(store, "g7", soon(), &e, &err), TENREC_EGROUP);
    assert_text_has(err.text, "...");
    assert_status(group_directory_find(store, "g8", soon(), &e, &err), &err);
    assert_status(group_directory_find(store, "g39", soon(), &e, &err), &err);
}

TEST_WITH(groups_refuse_a_list_of_no_sense, open_store, drop_store)
{
    static const char *const bad[] = { "a \n",      "a 2\n",           "a -1 1 \n",  "a 2 -1 \n",
                                       "a x y z\n", "a 99999999 1 \n", "a 2 1word\n" };
    struct group_directory_entry e;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_status(tenrec_store_set(store, KEY, bad[i], strlen(bad[i]), TEST_MS, &err), &err);
        assert_int_equal(group_directory_find(store, "a", soon(), &e, &err), TENREC_EPROTOCOL);
    }
    /* Nor does it keep anybody from writing a better one. */
    announce("b", "", 2, 1);
    assert_status(group_directory_find(store, "b", soon(), &e, &err), &err);
}

static void *announce_many(void *arg)
{
    for (int i = 0; i < 8; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s%d", (const char *)arg, i);
        announce(name, "", 1, 1);
    }
    return NULL;
}

TEST_WITH(groups_keep_all_entries_when_several_announce_at_once, open_store, drop_store)
{
    static char *const who[] = { "x", "y", "z" };
    struct group_directory_entry e;
    pthread_t thread[3];
    char name[32];

    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, announce_many, who[i]), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 8; k++) {
            snprintf(name, sizeof name, "%s%d", who[i], k);
            assert_status(group_directory_find(store, name, soon(), &e, &err), &err);
        }
}

/* ---- a visit ------------------------------------------------------------------- */

static void join(struct generation *m, int32_t rank, int32_t world, struct members **ret)
{
    assert_status(generation_open(store, "g", "", rank, world, soon(), m, &err), &err);
    assert_status(members_join(m, rank ? "b" : "a", "uv://x", NULL, soon(), ret, &err), &err);
}

static void visit_group(const char *name, struct generation *ret)
{
    struct group_directory_entry e;

    assert_status(group_directory_find(store, name, soon(), &e, &err), &err);
    assert_status(generation_visit(store, &e, ret, &err), &err);
}

TEST_WITH(meeting_shows_the_members_to_a_visitor_and_leaves_no_trace, open_store, drop_store)
{
    struct members *own = NULL, *seen = NULL;
    struct generation m, visit;
    int64_t before, after;

    join(&m, 0, 1, &own);
    assert_status(tenrec_store_num_keys(store, TEST_MS, &before, &err), &err);
    visit_group("g", &visit);
    assert_int_equal(visit.rank, TENREC_ANONYMOUS);
    assert_int_equal(visit.world, 1);
    assert_status(members_await(&visit, soon(), &seen, &err), &err);
    assert_string_equal(seen->list[0].name, "a");
    assert_string_equal(seen->list[0].address, "uv://x");
    assert_false(generation_rank_left(visit.base, 0, visit.incarnation, soon()));
    generation_leave(&m, soon());
    assert_true(generation_rank_left(visit.base, 0, visit.incarnation, soon()));
    generation_close(&visit, soon());
    assert_status(tenrec_store_num_keys(store, TEST_MS, &after, &err), &err);
    assert_int_equal(after, before + 1); /* that it has left */
    generation_close(&m, soon());
    members_drop(own);
    members_drop(seen);
}

TEST_WITH(members_name_missing_members_to_a_visitor, open_store, drop_store)
{
    struct members *seen = NULL;
    struct generation visit;

    announce("g", "", 2, 1);
    visit_group("g", &visit);
    assert_int_equal(members_await(&visit, clock_deadline_ms(30), &seen, &err), TENREC_ETIMEDOUT);
    assert_text_has(err.text, "ranks 0, 1 of 2 did not join group \"g\"");
    generation_close(&visit, soon());
}
