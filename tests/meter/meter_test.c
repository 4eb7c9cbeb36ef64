/* SPDX-License-Identifier: Apache-2.0 */
/* meter_test.c - the counters of the plugin meter: messages, bytes, and the times of requests. A
 * request comes back from the mirror as a request of its receiver; so does its answer. */
#include "../support/flaky.h"

#include <pthread.h>
#include <time.h>

static void set_up(void)
{
    flaky_plugin = "meter";
    flaky_set_up();
    flaky_open("{}");
}

/* A message of three bytes, with the answers of it counted by id and route. */
static void send_routed(tenrec_peer to, int32_t type, int64_t id, uint64_t pipe)
{
    struct tenrec_msg *msg = message_new(3, 0);

    assert_non_null(msg);
    msg->type = type;
    msg->id = id;
    msg->route.pipe = pipe;
    msg->route.generation = pipe;
    memcpy(msg->payload, "abc", 3);
    flaky_send_msg(to, msg);
}

static void send_plain(tenrec_peer to, int32_t type, int64_t id)
{
    send_routed(to, type, id, 0);
}

static bool has_key(const char *key)
{
    char text[16384], line[128];

    flaky_info(text, sizeof text);
    snprintf(line, sizeof line, "flaky.%s=", key);
    return strstr(text, line) != NULL;
}

static uint64_t now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* ---- messages and bytes ---------------------------------------------------------- */

TEST_WITH(meter_counts_by_direction_type_and_peer, set_up, flaky_tear_down)
{
    struct tenrec_msg *msg = message_new(10, 2);

    msg->type = TENREC_MSG_CALL;
    tenrec_msg_tensor(msg, 0)->bytes = 1000;
    tenrec_msg_tensor(msg, 1)->bytes = 500;
    flaky_send_msg(1, msg);
    send_plain(1, TENREC_MSG_CALL, 2);
    send_plain(2, TENREC_MSG_ONE_WAY_CALL, 3);
    assert_int_equal(flaky_number("peer.1.out.CALL.messages"), 2);
    assert_int_equal(flaky_number("peer.1.out.CALL.bytes"), 1513);
    assert_int_equal(flaky_number("peer.1.in.CALL.messages"), 2);
    assert_int_equal(flaky_number("peer.1.in.CALL.bytes"), 13);
    assert_int_equal(flaky_number("peer.2.out.ONE_WAY_CALL.messages"), 1);
    assert_false(has_key("peer.2.out.CALL.messages"));
    assert_false(has_key("peer.0.out.CALL.messages"));
    assert_int_equal(flaky_number("out.messages"), 3);
    assert_int_equal(flaky_number("out.bytes"), 1516);
    assert_int_equal(flaky_number("in.messages"), 3);
    assert_int_equal(atomic_load(&flaky_ok), 3);
    assert_int_equal(atomic_load(&flaky_delivered), 3);
}

/* A peer chooses the numbers of types, and must not choose how much memory they take. */
TEST_WITH(meter_counts_types_without_a_name_together, set_up, flaky_tear_down)
{
    for (int32_t type = 0x1000; type < 0x2000; type++)
        send_plain(1, type, type);
    assert_int_equal(flaky_number("peer.1.out.OTHER.messages"), 0x1000);
    assert_int_equal(flaky_number("peer.1.in.OTHER.messages"), 0x1000);
}

TEST_WITH(meter_counts_callers_that_are_no_members, set_up, flaky_tear_down)
{
    send_plain(TENREC_ANONYMOUS, TENREC_MSG_RET, 1);
    send_plain(32767, TENREC_MSG_RET, 1);
    send_plain(-2, TENREC_MSG_RET, 1); /* no id of a worker: in the sums only */
    send_plain(32768, TENREC_MSG_RET, 1);
    assert_int_equal(flaky_number("peer.-1.out.RET.messages"), 1);
    assert_int_equal(flaky_number("peer.32767.in.RET.messages"), 1);
    assert_int_equal(flaky_number("out.messages"), 4);
    assert_false(has_key("peer.-2.out.RET.messages"));
    assert_false(has_key("peer.32768.out.RET.messages"));
}

/* ---- times ------------------------------------------------------------------------ */

TEST_WITH(meter_times_requests_until_their_answer, set_up, flaky_tear_down)
{
    const uint64_t before = now_us();
    uint64_t sent, answered, after;

    send_plain(1, TENREC_MSG_CALL, 7); /* comes back as a request of worker 1 */
    sent = now_us();
    assert_int_equal(flaky_number("awaited"), 2);
    assert_false(has_key("peer.1.out.CALL.answers"));
    answered = now_us();
    send_plain(1, TENREC_MSG_EXCEPTION, 7); /* the answer to both */
    after = now_us();
    assert_int_equal(flaky_number("awaited"), 0);
    assert_int_equal(flaky_number("peer.1.out.CALL.answers"), 1);
    assert_int_equal(flaky_number("peer.1.in.CALL.answers"), 1);
    assert_in_range(flaky_number("peer.1.out.CALL.total_us"), answered - sent, after - before + 1);
    assert_int_equal(flaky_number("peer.1.out.CALL.max_us"),
                     flaky_number("peer.1.out.CALL.total_us"));
}

TEST_WITH(meter_sorts_each_answer_into_one_of_six_times, set_up, flaky_tear_down)
{
    char text[8192];
    unsigned long n[6], sum = 0;
    const char *at;

    for (int64_t id = 0; id < 50; id++) {
        send_plain(1, TENREC_MSG_RREF_FETCH_CALL, id);
        send_plain(1, TENREC_MSG_RREF_FETCH_RET, id);
    }
    flaky_info(text, sizeof text);
    at = strstr(text, "flaky.peer.1.out.RREF_FETCH_CALL.times=");
    assert_non_null(at);
    assert_int_equal(sscanf(strchr(at, '='), "=%lu %lu %lu %lu %lu %lu\n", &n[0], &n[1], &n[2],
                            &n[3], &n[4], &n[5]),
                     6);
    for (int i = 0; i < 6; i++)
        sum += n[i];
    assert_int_equal(sum, 50);
    assert_int_equal(flaky_number("peer.1.out.RREF_FETCH_CALL.answers"), 50);
}

TEST_WITH(meter_takes_an_answer_of_another_peer_or_id_for_none, set_up, flaky_tear_down)
{
    send_plain(1, TENREC_MSG_CALL, 7);
    send_plain(2, TENREC_MSG_RET, 7);
    send_plain(1, TENREC_MSG_RET, 8);
    assert_int_equal(flaky_number("awaited"), 2);
    assert_false(has_key("peer.1.out.CALL.answers"));
    send_plain(1, TENREC_MSG_RET, 7);
    send_plain(1, TENREC_MSG_RET, 7); /* a duplicate: the first one counts */
    assert_int_equal(flaky_number("peer.1.out.CALL.answers"), 1);
}

/* Callers without a name choose their ids, so two may choose the same. */
TEST_WITH(meter_tells_requests_of_one_id_by_their_routes, set_up, flaky_tear_down)
{
    send_routed(-1, TENREC_MSG_CALL, 7, 1);
    send_routed(-1, TENREC_MSG_CALL, 7, 2);
    send_routed(-1, TENREC_MSG_RET, 7, 3);
    assert_false(has_key("peer.-1.in.CALL.answers"));
    send_routed(-1, TENREC_MSG_RET, 7, 2);
    assert_int_equal(flaky_number("peer.-1.in.CALL.answers"), 1);
    send_routed(-1, TENREC_MSG_RET, 7, 1);
    assert_int_equal(flaky_number("peer.-1.in.CALL.answers"), 2);
}

TEST_WITH(meter_awaits_no_answer_to_messages_that_get_none, set_up, flaky_tear_down)
{
    send_plain(1, TENREC_MSG_ONE_WAY_CALL, 1);
    send_plain(1, TENREC_MSG_CANCEL, 2);
    send_plain(1, TENREC_MSG_RET, 3);
    send_plain(1, 0x2, 4);
    assert_int_equal(flaky_number("awaited"), 0);
}

/* Answers may never come: the oldest requests give way, and the newest are timed. */
TEST_WITH(meter_keeps_a_bounded_number_of_requests, set_up, flaky_tear_down)
{
    const long n = 20000;

    for (int64_t id = 0; id < n; id++)
        send_plain(1, TENREC_MSG_CALL, id);
    assert_in_range(flaky_number("awaited"), 1, 4096);
    assert_int_equal(flaky_number("awaited") + flaky_number("untimed"), 2 * n);
    send_plain(1, TENREC_MSG_RET, n - 1);
    assert_int_equal(flaky_number("peer.1.out.CALL.answers"), 1);
}

static void *hammer(void *arg)
{
    const int64_t first = *(int64_t *)arg;

    for (int64_t id = first; id < first + 500; id++) {
        send_plain(1, TENREC_MSG_CALL, id);
        send_plain(1, TENREC_MSG_RET, id);
    }
    return arg;
}

TEST_WITH(meter_counts_right_when_many_threads_send, set_up, flaky_tear_down)
{
    int64_t first[4] = { 0, 1000, 2000, 3000 };
    pthread_t thread[4];
    char text[8192];

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, hammer, &first[i]), 0);
    for (int i = 0; i < 4; i++) {
        flaky_info(text, sizeof text); /* meanwhile */
        pthread_join(thread[i], NULL);
    }
    assert_int_equal(flaky_number("peer.1.out.CALL.answers"), 2000);
    assert_int_equal(flaky_number("peer.1.in.CALL.answers"), 2000);
    assert_int_equal(flaky_number("peer.1.out.RET.bytes"), 6000);
    assert_int_equal(flaky_number("awaited"), 0);
}
