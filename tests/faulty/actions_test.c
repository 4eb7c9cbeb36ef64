/* SPDX-License-Identifier: Apache-2.0 */
/* actions_test.c - the option `rules`: each thing that can go wrong. */
#include "../support/flaky.h"

#include "../support/message_hooks.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

static uint64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void expect_order(const char *expected)
{
    char order[256];

    flaky_order(order, sizeof order);
    assert_string_equal(order, expected);
}

/* --- what happens ------------------------------------------------------------- */

TEST_WITH(rules_fail_at_once, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ rules: [{ do: fail, name: nope, times: 2 }] }");
    assert_false(flaky_call("a"));
    assert_int_equal(flaky_last().code, TENREC_EINJECTED);
    assert_string_equal(flaky_last().text, "faulty: nope fails this CALL (1 of 2)");
    assert_false(flaky_call("b"));
    assert_true(flaky_call("c"));
    expect_order("c");
    assert_int_equal(atomic_load(&flaky_released), 3);
}

TEST_WITH(rules_fail_in_flight_sends_and_reports_failed, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ rules: [{ do: fail_in_flight }] }");
    assert_false(flaky_call("a"));
    assert_int_equal(atomic_load(&flaky_failed), 1);
    assert_int_equal(flaky_last().code, TENREC_EINJECTED);
    assert_string_equal(flaky_last().text, "faulty: rule1 falsely reports failure of this CALL");
    expect_order("a");
}

/* A send that fails by itself says so. */
TEST_WITH(rules_fail_in_flight_keeps_a_real_error, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ rules: [{ do: fail_in_flight }] }");
    chain_shutdown(flaky_chain);
    assert_false(flaky_call("a"));
    assert_int_equal(flaky_last().code, TENREC_ESHUTDOWN);
}

TEST_WITH(rules_drop_is_told_sent_and_never_arrives, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ rules: [{ do: drop, times: 1 }] }");
    assert_true(flaky_call("a"));
    assert_true(flaky_call("b"));
    expect_order("b");
    assert_int_equal(atomic_load(&flaky_released), 2);
}

TEST_WITH(rules_duplicate_sends_twice_and_tells_once, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ rules: [{ do: duplicate }] }");
    assert_true(flaky_call("a"));
    expect_order("a a");
    assert_int_equal(atomic_load(&flaky_ok), 1);
    assert_int_equal(atomic_load(&flaky_released), 1);
}

TEST_WITH(rules_delay_sends_later, flaky_set_up, flaky_tear_down)
{
    tenrec_error err;

    flaky_open("{ rules: [{ do: delay, by: 1h, on: [REMOTE_CALL] }, { do: delay, by: 2s }] }");
    assert_false(flaky_call("a"));
    assert_becomes(atomic_load(&flaky_delivered) == 1);
    flaky_send(TENREC_MSG_REMOTE_CALL, "b");
    assert_int_equal(chain_drain(flaky_chain, 1, &err), TENREC_ETIMEDOUT);
    chain_shutdown(flaky_chain);
    assert_int_equal(atomic_load(&flaky_ok), 2);
    assert_int_equal(atomic_load(&flaky_released), 2);
}

TEST_WITH(rules_delay_keeps_the_order, flaky_set_up, flaky_tear_down)
{
    tenrec_error err;

    flaky_open("{ rules: [{ do: delay, by: 3ms }] }");
    for (char c = 'a'; c < 'k'; c++)
        flaky_call((char[]){ c, '\0' });
    assert_status(chain_drain(flaky_chain, 10000, &err), &err);
    expect_order("a b c d e f g h i j");
}

TEST_WITH(rules_reorder_lets_the_next_message_pass, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ rules: [{ do: reorder, by: 1h }] }");
    assert_false(flaky_call("a"));
    assert_true(flaky_call("b"));
    assert_false(flaky_call("c"));
    assert_true(flaky_call("d"));
    expect_order("b a d c");
    assert_int_equal(flaky_number("rules.rule1.injected"), 2);
    assert_int_equal(flaky_number("delayed_now"), 0);
}

/* Its hour has not passed, but nothing is left to be sent then. */
TEST_WITH(rules_reorder_keeps_no_drain_waiting_once_a_message_has_passed, flaky_set_up,
          flaky_tear_down)
{
    tenrec_error err;

    flaky_open("{ rules: [{ do: reorder, by: 1h, times: 1 }] }");
    assert_false(flaky_call("a"));
    assert_int_equal(chain_drain(flaky_chain, 1, &err), TENREC_ETIMEDOUT);
    assert_true(flaky_call("b"));
    assert_int_equal(atomic_load(&flaky_ok), 2);
    assert_status(chain_drain(flaky_chain, 1, &err), &err);
}

TEST_WITH(rules_reorder_waits_for_the_same_worker_only, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ rules: [{ do: reorder, by: 1h, to: [worker1] }] }");
    flaky_send_to(1, TENREC_MSG_CALL, "a", 0);
    flaky_send_to(2, TENREC_MSG_CALL, "b", 0);
    expect_order("b");
    flaky_send_to(1, TENREC_MSG_CALL, "c", 0);
    expect_order("b c a");
}

TEST_WITH(rules_reorder_gives_up_when_nothing_comes, flaky_set_up, flaky_tear_down)
{
    tenrec_error err;

    flaky_open("{ rules: [{ do: reorder, by: 2s }] }");
    assert_false(flaky_call("a"));
    assert_status(chain_drain(flaky_chain, 10000, &err), &err);
    expect_order("a");
}

static void check_sent(void *arg, struct tenrec_msg *msg)
{
    assert_memory_equal(msg->payload, "0123456789", 10);
    atomic_fetch_add((atomic_int *)arg, 1);
}

TEST_WITH(rules_corrupt_changes_one_byte_of_a_copy, flaky_set_up, flaky_tear_down)
{
    struct tenrec_msg *msg = message_new(10, 0);
    atomic_int released = 0;
    char order[64];
    int differ = 0;

    flaky_open("{ seed: 7, rules: [{ do: corrupt }] }");
    msg->type = TENREC_MSG_CALL;
    memcpy(msg->payload, "0123456789", 10);
    message_on_release(msg, check_sent, &released);
    chain_send(flaky_chain, 0, msg, (struct tenrec_done){ NULL, NULL });
    flaky_order(order, sizeof order);
    for (int i = 0; i < 10; i++)
        differ += order[i] != "0123456789"[i];
    assert_int_equal(differ, 1);
    assert_int_equal(atomic_load(&released), 1);
}

TEST_WITH(rules_corrupt_leaves_messages_without_bytes_alone, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ seed: 7, rules: [{ do: corrupt }] }");
    assert_true(flaky_call(""));
    assert_int_equal(flaky_number("rules.rule1.matched"), 1);
    assert_int_equal(flaky_number("rules.rule1.injected"), 0);
}

TEST_WITH(rules_disconnect_breaks_the_connection_and_its_message, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ rules: [{ do: disconnect, times: 1 }] }");
    flaky_send_to(2, TENREC_MSG_CALL, "a", 0);
    assert_int_equal(atomic_load(&flaky_disconnected), 1);
    assert_int_equal(atomic_load(&flaky_failed), 1);
    assert_int_equal(flaky_last().code, TENREC_EPEER_LOST);
    assert_string_equal(flaky_last().text, "faulty: rule1 disconnected worker 2");
    flaky_send_to(2, TENREC_MSG_CALL, "b", 0);
    expect_order("b");
}

/* The message goes through, and is not counted. */
TEST_WITH(rules_disconnect_changes_nothing_when_there_is_no_connection, flaky_set_up,
          flaky_tear_down)
{
    flaky_open("{ rules: [{ do: disconnect }] }");
    assert_true(flaky_call("a"));
    assert_int_equal(flaky_number("rules.rule1.injected"), 0);
    assert_string_equal(flaky_log, "");
}

/* 2000 bytes at 100 kB/s: no sooner than 20 ms, and in order. */
TEST_WITH(rules_slow_carries_so_many_bytes_per_second, flaky_set_up, flaky_tear_down)
{
    const uint64_t begin = now_ms();
    char payload[501];
    tenrec_error err;
    int early;

    memset(payload, 'x', 500);
    payload[500] = '\0';
    flaky_open("{ rules: [{ do: slow, bytes_per_second: 100kB }] }");
    for (int i = 0; i < 4; i++) {
        payload[0] = (char)('0' + i);
        flaky_call(payload);
    }
    early = atomic_load(&flaky_ok);
    if (now_ms() - begin < 5) /* else this thread had to wait for its turn */
        assert_int_equal(early, 0);
    assert_status(chain_drain(flaky_chain, 10000, &err), &err);
    assert_true(now_ms() - begin >= 19);
    assert_int_equal(atomic_load(&flaky_delivered), 4);
}

TEST_WITH(rules_slow_holds_nothing_when_the_link_is_fast_enough, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ rules: [{ do: slow, bytes_per_second: 1GiB }] }");
    for (int i = 0; i < 100; i++)
        assert_true(flaky_call("small"));
}

TEST_WITH(rules_slow_has_a_link_to_each_worker, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ rules: [{ do: slow, bytes_per_second: 10 }] }");
    flaky_send_to(1, TENREC_MSG_CALL, "0123456789012345678901234567890123456789", 0);
    flaky_send_to(2, TENREC_MSG_CALL, "", 0);
    expect_order("");
    assert_int_equal(atomic_load(&flaky_delivered), 1);
    chain_shutdown(flaky_chain);
    assert_int_equal(atomic_load(&flaky_ok), 2);
}

/* --- what arrives --------------------------------------------------------------- */

TEST_WITH(rules_from_match_received_messages, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ rules: [{ do: drop, from: ['*'], on: [CALL], times: 1 },"
               " { do: duplicate, from: [0], on: [CALL], times: 1 },"
               " { do: reorder, by: 1h, from: [worker0], on: [CALL], times: 1 }] }");
    assert_true(flaky_call("dropped"));
    assert_true(flaky_call("a"));
    expect_order("a a");
    assert_true(flaky_call("b"));
    expect_order("a a");
    assert_true(flaky_call("c"));
    expect_order("a a c b");
    assert_int_equal(atomic_load(&flaky_released), 4);
}

TEST_WITH(rules_from_disconnect_the_sender, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ rules: [{ do: disconnect, from: ['*'], times: 1 }] }");
    assert_true(flaky_call("a")); /* no connection */
    flaky_send_to(2, TENREC_MSG_CALL, "b", 0);
    flaky_send_to(2, TENREC_MSG_CALL, "c", 0);
    expect_order("a c");
    assert_int_equal(atomic_load(&flaky_disconnected), 1);
}

TEST_WITH(rules_from_delay_and_slow_deliver_later, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ rules: [{ do: delay, by: 5ms, from: ['*'], on: [CALL] },"
               " { do: slow, bytes_per_second: 100kB, from: ['*'] }] }");
    assert_true(flaky_call("a"));
    flaky_send(TENREC_MSG_REMOTE_CALL, "0123456789012345678901234567890123456789012345678901234567"
                                       "890123456789012345678901234567890123456789");
    assert_becomes(atomic_load(&flaky_delivered) == 2);
    assert_becomes(flaky_number("delayed_now") == 0);
}

TEST_WITH(rules_from_corrupt_a_copy, flaky_set_up, flaky_tear_down)
{
    char order[64];

    flaky_open("{ seed: 1, rules: [{ do: corrupt, from: ['*'] }] }");
    assert_true(flaky_call("payload"));
    flaky_order(order, sizeof order);
    assert_string_not_equal(order, "payload");
    assert_int_equal(atomic_load(&flaky_released), 1);
}

/* No receiver is left: the message is released. */
TEST_WITH(rules_from_drop_held_messages_at_shutdown, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ rules: [{ do: delay, by: 1h, from: ['*'] }] }");
    assert_true(flaky_call("a"));
    chain_shutdown(flaky_chain);
    assert_int_equal(atomic_load(&flaky_delivered), 0);
    assert_int_equal(atomic_load(&flaky_released), 1);
}

/* --- what is late ------------------------------------------------------------------ */

static void send_with_deadline(uint64_t in_ms)
{
    struct tenrec_msg *msg = message_new(1, 0);
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    msg->type = TENREC_MSG_CALL;
    memcpy(msg->payload, "x", 1);
    msg->deadline_ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec + in_ms * 1000000u;
    chain_send(flaky_chain, 0, msg, (struct tenrec_done){ NULL, NULL });
}

TEST_WITH(faulty_sends_messages_past_their_deadline, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ messages_to_delay: { CALL: 5ms } }");
    send_with_deadline(1);
    assert_becomes(atomic_load(&flaky_delivered) == 1);
    assert_int_equal(flaky_number("dropped_past_deadline"), 0);
}

TEST_WITH(faulty_drops_messages_past_their_deadline_when_configured, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ past_deadline: drop, messages_to_delay: { CALL: 5ms } }");
    send_with_deadline(1);
    send_with_deadline(3600000);
    assert_becomes(atomic_load(&flaky_delivered) == 1);
    assert_becomes(flaky_number("dropped_past_deadline") == 1);
}

/* --- many threads -------------------------------------------------------------------- */

static void *hammer(void *arg)
{
    char payload[16];

    for (int i = 0; i < 300; i++) {
        snprintf(payload, sizeof payload, "%d", i);
        flaky_send_to(i % 3, i % 2 ? TENREC_MSG_CALL : TENREC_MSG_REMOTE_CALL, payload, 0);
    }
    return arg;
}

/* Everything at once, and a shutdown in the middle of it: each send completes
 * once, each message is released once. */
TEST_WITH(rules_lose_nothing_when_many_threads_send, flaky_set_up, flaky_tear_down)
{
    pthread_t thread[4];

    flaky_open("{ seed: 1, rules: [{ do: fail, probability: 0.1 },"
               " { do: fail_in_flight, probability: 0.1 }, { do: drop, probability: 0.1 },"
               " { do: duplicate, probability: 0.1 }, { do: delay, by: 1ms, probability: 0.1 },"
               " { do: reorder, by: 2ms, probability: 0.2 }, { do: corrupt, probability: 0.1 },"
               " { do: slow, bytes_per_second: 100kB, probability: 0.5 },"
               " { do: duplicate, probability: 0.1, from: ['*'] },"
               " { do: reorder, by: 1ms, probability: 0.2, from: ['*'] },"
               " { do: delay, by: 1ms, probability: 0.1, from: ['*'] }] }");
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, hammer, NULL), 0);
    assert_becomes(atomic_load(&flaky_ok) > 300);
    chain_shutdown(flaky_chain);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(atomic_load(&flaky_ok) + atomic_load(&flaky_failed), 1200);
    assert_int_equal(atomic_load(&flaky_released), 1200);
    assert_int_equal(flaky_number("delayed_now"), 0);
}
