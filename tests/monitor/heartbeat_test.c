/* SPDX-License-Identifier: Apache-2.0 */
/* heartbeat_test.c - the members that a member watches, and when a member is dead. */
#include "../testing.h"

#include "core/base/clock.h"
#include "rpc/monitor/heartbeat.h"

#include <stdio.h>

#define SECOND UINT64_C(1000000000)
#define MISSES 3

static struct membership_view view;
static struct heartbeats beats;
static uint64_t now;
static tenrec_error err;

/* Members 0 to n - 1, in lives 100 and up; we are member 1. */
static void follow(int n)
{
    membership_view_finish(&view);
    view.version = 1;
    for (int i = 0; i < n; i++) {
        char name[16];
        const struct membership_view_entry e = { i, 100 + i, name };

        snprintf(name, sizeof name, "w%d", i);
        assert_status(membership_view_add(&view, &e, &err), &err);
    }
    assert_status(heartbeats_follow(&beats, &view, 1, now, &err), &err);
}

static void begin(void)
{
    beats = (struct heartbeats){ .rules = { SECOND, MISSES } };
    now = 5 * SECOND;
}

static void end(void)
{
    heartbeats_finish(&beats);
    membership_view_finish(&view);
}

/* The id of the due member; -1 for none. */
static tenrec_peer due(enum heartbeat_due expected)
{
    struct heartbeat one = { .id = -1 };
    uint64_t next;

    assert_int_equal(heartbeats_next(&beats, now, &one, &next), expected);
    return one.id;
}

static bool is_dead(tenrec_peer id, int64_t incarnation)
{
    struct heartbeat dead[8];
    const size_t n = heartbeats_dead(&beats, dead);

    for (size_t i = 0; i < n; i++)
        if (dead[i].id == id && dead[i].incarnation == incarnation)
            return true;
    return false;
}

/* The verdict is due, and no other member can be asked. */
static tenrec_peer dead(void)
{
    const tenrec_peer id = due(HEARTBEAT_CONSULT);

    heartbeats_consulted(&beats, id, 100 + id, 0, now);
    assert_int_equal(due(HEARTBEAT_DEAD), id);
    return id;
}

TEST_WITH(heartbeat_lasts_while_bytes_arrive, begin, end)
{
    follow(2);
    for (int i = 0; i < 3 * MISSES; i++) {
        now += SECOND;
        assert_int_equal(due(HEARTBEAT_ASK), 0);
        heartbeats_progress(&beats, 0, 100);
    }
    for (int i = 1; i < MISSES; i++) {
        now += SECOND;
        assert_int_equal(due(HEARTBEAT_ASK), 0);
    }
    now += SECOND;
    assert_int_equal(dead(), 0);
    assert_string_equal(heartbeat_why(&beats, &beats.list[0]), "it does not answer");
}

TEST_WITH(heartbeat_bytes_do_not_revive_a_process_that_has_ended, begin, end)
{
    follow(2);
    heartbeats_bury(&beats, 0, 100, now);
    heartbeats_progress(&beats, 0, 100);
    assert_int_equal(due(HEARTBEAT_DEAD), 0);
    assert_true(is_dead(0, 100));
    assert_string_equal(heartbeat_why(&beats, &beats.list[0]), "its process has ended");
}

TEST_WITH(heartbeat_asks_the_two_that_follow, begin, end)
{
    follow(5);
    assert_int_equal(due(HEARTBEAT_REST), -1);
    now += SECOND;
    assert_int_equal(due(HEARTBEAT_ASK), 2);
    assert_int_equal(due(HEARTBEAT_ASK), 3);
    due(HEARTBEAT_REST);
}

TEST_WITH(heartbeat_asks_the_neighbour_of_one_that_is_gone_at_once, begin, end)
{
    follow(6);
    assert_true(membership_view_remove(&view, 2, 102, true, 0));
    assert_status(heartbeats_follow(&beats, &view, 1, now, &err), &err);
    assert_int_equal(due(HEARTBEAT_ASK), 4);
    due(HEARTBEAT_REST); /* 3 in its turn */
}

TEST_WITH(heartbeat_asks_the_other_of_two_members_and_rests_alone, begin, end)
{
    struct heartbeat one;
    uint64_t next;

    follow(2);
    now += SECOND;
    assert_int_equal(due(HEARTBEAT_ASK), 0);
    due(HEARTBEAT_REST);
    membership_view_finish(&view);
    assert_status(membership_view_add(&view, &(struct membership_view_entry){ 1, 101, "w1" }, &err),
                  &err);
    assert_status(heartbeats_follow(&beats, &view, 1, now, &err), &err);
    assert_int_equal(heartbeats_next(&beats, now, &one, &next), HEARTBEAT_REST);
    assert_true(next == CLOCK_NEVER); /* at rest it sleeps for ever */
}

TEST_WITH(heartbeat_finds_a_member_dead_that_never_answers, begin, end)
{
    follow(2);
    for (int i = 0; i < MISSES; i++) {
        now += SECOND;
        due(HEARTBEAT_ASK);
    }
    now += SECOND;
    assert_int_equal(dead(), 0);
    now += SECOND; /* when it could not be buried */
    assert_int_equal(due(HEARTBEAT_DEAD), 0);
}

static void miss_all(void)
{
    for (int i = 0; i < MISSES; i++) {
        now += SECOND;
        due(HEARTBEAT_ASK);
    }
    now += SECOND;
    assert_int_equal(due(HEARTBEAT_CONSULT), 0);
    heartbeats_consulted(&beats, 0, 100, 2, now);
    assert_false(heartbeats_suspects(&beats, 0, 100));
}

TEST_WITH(heartbeat_of_a_member_that_answers_another_is_no_verdict, begin, end)
{
    follow(2);
    for (int i = 0; i < 3; i++) {
        miss_all();
        heartbeats_vouched(&beats, 0, 100, false, now);
        heartbeats_vouched(&beats, 0, 100, true, now);
        assert_false(is_dead(0, 100));
        due(HEARTBEAT_REST);
    }
}

TEST_WITH(heartbeat_verdict_is_due_when_all_that_are_asked_have_answered, begin, end)
{
    follow(2);
    miss_all();
    heartbeats_vouched(&beats, 0, 100, false, now);
    due(HEARTBEAT_REST);
    heartbeats_vouched(&beats, 0, 100, false, now);
    assert_int_equal(due(HEARTBEAT_DEAD), 0);
}

TEST_WITH(heartbeat_verdict_waits_an_interval_for_members_that_are_silent, begin, end)
{
    follow(2);
    miss_all();
    now += SECOND - 1;
    due(HEARTBEAT_REST);
    now++;
    assert_int_equal(due(HEARTBEAT_DEAD), 0);
}

/* Another member asks for it. */
TEST_WITH(heartbeat_polls_at_once_when_another_member_asks_and_misses_nothing, begin, end)
{
    follow(5);
    for (int i = 0; i < 3 * MISSES; i++)
        assert_status(heartbeats_check(&beats, 4, 104, now, &err), &err);
    assert_true(heartbeats_suspects(&beats, 4, 104));
    assert_int_equal(due(HEARTBEAT_ASK), 4);
    due(HEARTBEAT_REST);
    heartbeats_answered(&beats, 4, 104);
    assert_false(heartbeats_suspects(&beats, 4, 104));
}

TEST_WITH(heartbeat_forgets_misses_when_answered, begin, end)
{
    follow(2);
    for (int i = 0; i < 5 * MISSES; i++) {
        now += SECOND;
        due(HEARTBEAT_ASK);
        if (i % 2)
            heartbeats_answered(&beats, 0, 100);
    }
}

/* Stopped for an hour: that the others were silent meanwhile says nothing. */
TEST_WITH(heartbeat_buries_no_member_after_being_stopped, begin, end)
{
    follow(2);
    now += SECOND;
    due(HEARTBEAT_ASK);
    now += 3600 * SECOND;
    due(HEARTBEAT_ASK);
    heartbeats_answered(&beats, 0, 100);
    now += SECOND;
    due(HEARTBEAT_ASK);
}

TEST_WITH(heartbeat_polls_sooner_where_no_process_listens, begin, end)
{
    uint64_t since;

    follow(5);
    assert_status(heartbeats_suspect(&beats, 4, 104, now, &err), &err);
    since = now;
    for (int i = 0; i < MISSES; i++) {
        assert_int_equal(due(HEARTBEAT_ASK), 4);
        heartbeats_failed(&beats, 4, 104, true, now);
        now += SECOND / 4;
    }
    assert_int_equal(dead(), 4);
    assert_true(now - since < SECOND);
}

TEST_WITH(heartbeat_stops_to_suspect_a_member_that_answers, begin, end)
{
    struct heartbeat one;
    uint64_t next;

    follow(5);
    assert_status(heartbeats_suspect(&beats, 4, 104, now, &err), &err);
    assert_int_equal(due(HEARTBEAT_ASK), 4);
    heartbeats_answered(&beats, 4, 104);
    assert_int_equal(heartbeats_next(&beats, now, &one, &next), HEARTBEAT_REST);
    assert_true(next == now + SECOND); /* of the two that are ours */
}

/* Its connections are taken and broken at once, again and again. */
TEST_WITH(heartbeat_does_not_turn_in_circles_over_broken_connections, begin, end)
{
    follow(5);
    assert_status(heartbeats_suspect(&beats, 4, 104, now, &err), &err);
    assert_int_equal(due(HEARTBEAT_ASK), 4);
    assert_status(heartbeats_suspect(&beats, 4, 104, now, &err), &err);
    due(HEARTBEAT_REST);
}

/* A member that does not know a new one yet refuses each connection of its callers. */
TEST_WITH(heartbeat_counts_broken_connections_once_per_poll, begin, end)
{
    follow(5);
    assert_status(heartbeats_suspect(&beats, 4, 104, now, &err), &err);
    assert_int_equal(due(HEARTBEAT_ASK), 4);
    for (int i = 0; i < 3 * MISSES; i++) {
        now += SECOND / 100;
        assert_status(heartbeats_suspect(&beats, 4, 104, now, &err), &err);
    }
    assert_false(is_dead(4, 104));
    now += SECOND / 4;
    assert_int_equal(due(HEARTBEAT_ASK), 4);
}

TEST_WITH(heartbeat_forgets_another_life, begin, end)
{
    follow(2);
    now += SECOND;
    due(HEARTBEAT_ASK);
    heartbeats_answered(&beats, 0, 99);
    for (int i = 1; i < MISSES; i++) {
        now += SECOND;
        due(HEARTBEAT_ASK);
    }
    now += SECOND;
    dead();
}

/* A member that was cut off from all has missed the answers of all. */
TEST_WITH(heartbeat_starts_over_after_being_cut_off, begin, end)
{
    follow(3);
    for (int i = 0; i < MISSES; i++) {
        now += SECOND;
        due(HEARTBEAT_ASK);
        due(HEARTBEAT_ASK);
    }
    heartbeats_start_over(&beats, now);
    for (int i = 0; i < MISSES; i++) {
        due(HEARTBEAT_ASK); /* at once, and each as often as at first */
        due(HEARTBEAT_ASK);
        now += SECOND;
    }
    dead();
}
