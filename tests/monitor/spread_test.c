/* SPDX-License-Identifier: Apache-2.0 */
/* spread_test.c - the tree along which news of a dynamic group travel, and their bytes. */
#include "../testing.h"

#include "rpc/monitor/spread.h"
#include "rpc/monitor/view_news.h"

#include <stdio.h>
#include <stdlib.h>

static struct membership_view view;
static tenrec_error err;
static bool skipped[RANKS_MAX];
static unsigned asked[RANKS_MAX];

static bool is_skipped(void *arg, const struct membership_view_entry *e)
{
    (void)arg;
    return skipped[e->id];
}

static const struct spread_skips skips = { is_skipped, NULL };

static void add(tenrec_peer id)
{
    char name[16];
    const struct membership_view_entry e = { id, 100 + id, name };

    snprintf(name, sizeof name, "w%d", id);
    assert_status(membership_view_add(&view, &e, &err), &err);
}

static void begin(void)
{
    static const tenrec_peer ids[] = { 3, 4, 31, 32, 40, 63, 1000, 1023, 1024, 1056, 1060, 32767 };

    memset(skipped, 0, sizeof skipped);
    memset(asked, 0, sizeof asked);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        add(ids[i]);
}

static void end(void)
{
    membership_view_finish(&view);
}

static void cover(tenrec_peer me, unsigned level)
{
    struct spread_child child[SPREAD_CHILDREN];
    const size_t n = spread_children(&view, me, level, &skips, child);

    asked[me]++;
    for (size_t i = 0; i < n; i++)
        cover(child[i].id, child[i].level);
}

static void assert_all_asked_once(void)
{
    for (size_t i = 0; i < view.n; i++)
        assert_int_equal(asked[view.entry[i].id], !skipped[view.entry[i].id]);
}

TEST_WITH(spread_covers_each_member_once, begin, end)
{
    cover(3, SPREAD_ALL);
    assert_all_asked_once();
}

TEST_WITH(spread_covers_all_from_any_member, begin, end)
{
    cover(1056, SPREAD_ALL);
    assert_all_asked_once();
}

TEST_WITH(spread_asks_the_next_member_of_a_block_whose_leader_is_skipped, begin, end)
{
    skipped[32] = skipped[1024] = skipped[32767] = true;
    cover(3, SPREAD_ALL);
    assert_all_asked_once();
}

TEST_WITH(spread_parent_is_lower_and_leads_to_the_lowest, begin, end)
{
    for (size_t i = 0; i < view.n; i++) {
        struct spread_child parent = { .id = view.entry[i].id };
        unsigned hops = 0;

        for (tenrec_peer me = parent.id; spread_parent(&view, me, &skips, &parent);
             me = parent.id) {
            assert_true(parent.id < me);
            hops++;
        }
        assert_int_equal(parent.id, 3);
        assert_true(hops <= SPREAD_ALL);
    }
}

TEST_WITH(spread_parent_is_found_for_a_worker_that_is_no_member, begin, end)
{
    struct spread_child parent;

    assert_true(spread_parent(&view, 50, &skips, &parent));
    assert_int_equal(parent.id, 32);
    assert_false(spread_parent(&view, 0, &skips, &parent));
}

TEST_WITH(spread_of_a_thousand_asks_few_of_each, NULL, end)
{
    struct spread_child child[SPREAD_CHILDREN];

    memset(skipped, 0, sizeof skipped);
    memset(asked, 0, sizeof asked);
    for (tenrec_peer i = 0; i < 2048; i++)
        add(i);
    assert_int_equal(spread_children(&view, 0, SPREAD_ALL, &skips, child), 31 + 31 + 1);
    cover(0, SPREAD_ALL);
    assert_all_asked_once();
}

/* ---- changes ----------------------------------------------------------------------- */

static void note(struct view_log *l, enum view_change_kind kind, int64_t incarnation,
                 uint64_t batch)
{
    const struct view_change c = { .kind = kind, .id = 1, .incarnation = incarnation };

    view_log_add(l, &c, batch);
}

TEST(view_log_counts_later_changes_and_reports_forgotten_ones)
{
    struct view_log l = { .last = 1 };

    assert_int_equal(view_log_since(&l, 1), 0);
    assert_true(view_log_since(&l, 0) == SIZE_MAX);
    for (int64_t i = 0; i < 5000; i++)
        note(&l, CHANGE_JOINED, 10 + i, l.last + 1);
    assert_int_equal(view_log_since(&l, l.last - 3), 3);
    assert_true(view_log_since(&l, 1) == SIZE_MAX);
    assert_true(view_log_before_join(&l, 10 + 4999) == l.last - 1);
    assert_true(view_log_before_join(&l, 10) == 0);
    view_log_finish(&l);
}

/* A member that joined together with others may know none of them. */
TEST(view_log_finds_the_batch_in_which_a_member_joined)
{
    struct view_log l = { .last = 1 };
    const uint64_t batch = l.last + 1;

    note(&l, CHANGE_JOINED, 10, batch);
    note(&l, CHANGE_JOINED, 11, batch);
    note(&l, CHANGE_JOINED, 12, l.last + 1);
    assert_true(view_log_before_join(&l, 11) == 1);
    assert_true(view_log_before_join(&l, 12) == 3);
    view_log_finish(&l);
}

static void pack_record(tenrec_peer id, int64_t incarnation, struct store_value *ret)
{
    struct member m = {
        .name = "w", .rank = id, .incarnation = incarnation, .address = (char[]){ "a" }
    };

    member_pack(&m, ret);
    assert_non_null(ret->data);
}

static void pack_three(struct bytes *b, tenrec_peer id_of_record)
{
    const struct view_change c[] = {
        { .kind = CHANGE_JOINED, .id = 5, .incarnation = 50 },
        { .kind = CHANGE_LEFT, .id = 6, .incarnation = 60, .died = true, .by = -1 },
        { .kind = CHANGE_LEAVING, .id = 7, .incarnation = 70 },
    };
    struct store_value record;

    pack_record(id_of_record, 50, &record);
    view_news_begin(b, 9, 77, 3);
    for (size_t i = 0; i < 3; i++)
        view_news_add(b, &c[i], &record);
    free(record.data);
}

TEST(view_news_are_read_as_they_were_written)
{
    struct bytes b = { 0 };
    struct view_news n;

    pack_three(&b, 5);
    assert_status(view_news_read(b.data, b.len, &n, &err), &err);
    assert_int_equal(n.members, 9);
    assert_int_equal(n.sum, 77);
    assert_int_equal(n.n, 3);
    assert_string_equal(n.change[0].record->address, "a");
    assert_true(n.change[1].died && n.change[1].by == -1);
    assert_int_equal(n.change[2].kind, CHANGE_LEAVING);
    view_news_finish(&n);
    bytes_free(&b);
}

TEST(view_news_that_are_cut_or_too_long_are_refused)
{
    struct bytes b = { 0 };
    struct view_news n;

    pack_three(&b, 5);
    for (size_t len = 0; len < b.len; len++)
        assert_int_equal(view_news_read(b.data, len, &n, &err), TENREC_EPROTOCOL);
    bytes_add_u8(&b, 0);
    assert_int_equal(view_news_read(b.data, b.len, &n, &err), TENREC_EPROTOCOL);
    bytes_free(&b);
}

TEST(view_news_with_the_record_of_another_member_are_refused)
{
    struct bytes b = { 0 };
    struct view_news n;

    pack_three(&b, 6);
    assert_int_equal(view_news_read(b.data, b.len, &n, &err), TENREC_EPROTOCOL);
    bytes_free(&b);
}
