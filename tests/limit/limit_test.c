/* SPDX-License-Identifier: Apache-2.0 */
/* limit_test.c - the calls that the plugin limit passes, queues and refuses, by a clock of the
 * test, which begins as the core's: time is frozen for this thread, and is later for the thread
 * of timers. */
#include "../support/flaky.h"

#include "../support/message_hooks.h"
#include "core/backend/chain_layer.h"
#include "core/base/clock.h"
#include "rpc/value/codec.h"

#include <pthread.h>
#include <tenrec/backend.h>
#include <time.h>

int limit_test_clock(clockid_t id, struct timespec *ret);

#define S UINT64_C(1000000000)
#define AT(s) (begin_ns + (s)*S) /* that many seconds after the beginning */

static atomic_uint_fast64_t clock_ns, timers_ns;
static uint64_t begin_ns;
static pthread_t main_thread;

int limit_test_clock(clockid_t id, struct timespec *ret)
{
    const bool ours = pthread_equal(pthread_self(), main_thread);
    const uint64_t ns = atomic_load(ours ? &clock_ns : &timers_ns);

    if (id != CLOCK_MONOTONIC)
        return -1;
    *ret = (struct timespec){ (time_t)(ns / S), (long)(ns % S) };
    return 0;
}

static void set_up(void)
{
    tenrec_error err;

    main_thread = pthread_self();
    begin_ns = clock_now_ns();
    atomic_store(&clock_ns, begin_ns);
    atomic_store(&timers_ns, begin_ns);
    flaky_plugin = "limit";
    flaky_set_up();
    if (!tenrec_backend_registered("limit"))
        assert_status(tenrec_register_backend(&tenrec_plugin, tenrec_construct_options,
                                              tenrec_init_agent, &err),
                      &err);
}

static void advance(uint64_t ns)
{
    atomic_fetch_add(&clock_ns, ns);
}

static struct tenrec_msg *make(int32_t type, int64_t id, const void *payload, size_t len)
{
    struct tenrec_msg *msg = message_new(len, 0);

    assert_non_null(msg);
    msg->type = type;
    msg->id = id;
    memcpy(msg->payload, payload, len);
    return msg;
}

/* How many of `n` calls went through. */
static int pass(int n, tenrec_peer to, int32_t type)
{
    const int before = atomic_load(&flaky_ok);

    for (int i = 0; i < n; i++)
        flaky_send_to(to, type, "x", 0);
    return atomic_load(&flaky_ok) - before;
}

static void expect_error(tenrec_status code, const char *text)
{
    assert_int_equal(flaky_last().code, code);
    assert_string_equal(flaky_last().text, text);
}

/* ---- refusing ------------------------------------------------------------------ */

TEST_WITH(limit_refuses_calls_beyond_its_rate, set_up, flaky_tear_down)
{
    flaky_open("{ calls_per_second: 10, over: refuse }");
    assert_int_equal(pass(13, 1, TENREC_MSG_CALL), 10);
    assert_int_equal(atomic_load(&flaky_failed), 3);
    expect_error(TENREC_EAGAIN, "flaky: CALL to worker 1 exceeds calls_per_second");
    advance(S / 10);
    assert_int_equal(pass(2, 1, TENREC_MSG_CALL), 1);
    advance(100 * S);
    assert_int_equal(pass(20, 2, TENREC_MSG_REMOTE_CALL), 10);
    assert_int_equal(atomic_load(&flaky_released), 35);
    assert_int_equal(atomic_load(&flaky_delivered), 21);
    assert_int_equal(flaky_number("refused"), 14);
    assert_int_equal(flaky_number("queued_now"), 0);
}

TEST_WITH(limit_refuses_bytes_beyond_its_rate, set_up, flaky_tear_down)
{
    struct tenrec_msg *msg = make(TENREC_MSG_CALL, 1, "1234567890", 10);
    struct tenrec_msg *large = message_new(20, 2);

    flaky_open("{ bytes_per_second: 100, burst: 1s, over: refuse }");
    flaky_send_msg(1, msg);
    large->type = TENREC_MSG_CALL;
    tenrec_msg_tensor(large, 0)->bytes = 30;
    tenrec_msg_tensor(large, 1)->bytes = 40;
    flaky_send_msg(1, large);
    assert_int_equal(atomic_load(&flaky_ok), 2);
    assert_int_equal(pass(1, 1, TENREC_MSG_CALL), 0);
    expect_error(TENREC_EAGAIN, "flaky: CALL to worker 1 exceeds bytes_per_second");
    advance(S / 100);
    assert_int_equal(pass(2, 1, TENREC_MSG_CALL), 1);
}

TEST_WITH(limit_passes_answers_and_control_messages, set_up, flaky_tear_down)
{
    static const int32_t types[] = { TENREC_MSG_RET,
                                     TENREC_MSG_EXCEPTION,
                                     TENREC_MSG_CANCEL,
                                     TENREC_MSG_GATHER,
                                     TENREC_MSG_VIEW,
                                     TENREC_MSG_RREF_USER_DELETE,
                                     0x7ab,
                                     -1 };
    struct tenrec_msg *msg = make(TENREC_MSG_CALL, 1, "x", 1);

    flaky_open("{ calls_per_second: 1, over: refuse }");
    assert_int_equal(pass(2, 1, TENREC_MSG_CALL), 1);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        assert_int_equal(pass(5, 1, types[i]), 5);
    msg->flags = TENREC_MSG_CONTROL;
    flaky_send_msg(1, msg);
    assert_int_equal(atomic_load(&flaky_failed), 1);
}

TEST_WITH(limit_has_a_budget_for_all_for_types_or_for_peers, set_up, flaky_tear_down)
{
    static const struct {
        const char *by;
        int passed[4]; /* two CALLs and two REMOTE_CALLs to 1, then to 2 */
    } cases[] = { { "all", { 1, 0, 0, 0 } },
                  { "type", { 1, 1, 0, 0 } },
                  { "peer", { 1, 0, 1, 0 } },
                  { "type_and_peer", { 1, 1, 1, 1 } } };
    char options[128];

    for (size_t i = 0; i < 4; i++) {
        snprintf(options, sizeof options, "{ calls_per_second: 1, over: refuse, by: %s }",
                 cases[i].by);
        flaky_open(options);
        for (int k = 0; k < 4; k++)
            assert_int_equal(
                pass(2, k < 2 ? 1 : 2, k % 2 ? TENREC_MSG_REMOTE_CALL : TENREC_MSG_CALL),
                cases[i].passed[k]);
        /* Ids that no worker has share a budget, and touch no memory. */
        assert_in_range(pass(2, -1, TENREC_MSG_CALL) + pass(2, 99999, TENREC_MSG_CALL) +
                            pass(2, INT32_MIN, TENREC_MSG_CALL),
                        0, 1);
        assert_int_equal(pass(2, 32767, TENREC_MSG_ONE_WAY_CALL), i > 0);
        flaky_close();
    }
}

static void *hammer(void *arg)
{
    for (int i = 0; i < 500; i++)
        flaky_send_to(1, TENREC_MSG_CALL, "x", 0);
    return arg;
}

TEST_WITH(limit_counts_right_when_many_threads_send, set_up, flaky_tear_down)
{
    pthread_t thread[4];

    flaky_open("{ calls_per_second: 100, over: refuse }");
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, hammer, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(atomic_load(&flaky_ok), 100);
    assert_int_equal(atomic_load(&flaky_failed), 1900);
    assert_int_equal(atomic_load(&flaky_released), 2000);
}

/* ---- queuing ------------------------------------------------------------------- */

TEST_WITH(limit_queues_calls_until_their_turn, set_up, flaky_tear_down)
{
    tenrec_error err;

    atomic_store(&timers_ns, AT(1000));
    flaky_open("{ calls_per_second: 1000, burst: 1ms }");
    assert_int_equal(pass(20, 1, TENREC_MSG_CALL), 1);
    assert_becomes(flaky_number("queued_now") == 0);
    assert_status(chain_drain(flaky_chain, 1, &err), &err);
    assert_int_equal(atomic_load(&flaky_ok), 20);
    assert_int_equal(atomic_load(&flaky_delivered), 20);
    assert_int_equal(atomic_load(&flaky_released), 20);
    assert_int_equal(flaky_number("refused"), 0);
}

/* Also one that is due while an earlier call of its budget is still queued. */
TEST_WITH(limit_keeps_the_order_of_the_calls_of_a_budget, set_up, flaky_tear_down)
{
    char expected[512] = "", text[8], got[512];

    atomic_store(&timers_ns, AT(1000));
    flaky_open("{ calls_per_second: 1000, burst: 1ms, by: peer }");
    for (int i = 0; i < 100; i++) {
        snprintf(text, sizeof text, "%d", i);
        flaky_send_to(1, TENREC_MSG_CALL, text, 0);
        if (i % 10 == 9)
            advance(S / 100);
        snprintf(expected + strlen(expected), 8, "%s%d", i ? " " : "", i);
    }
    assert_becomes(atomic_load(&flaky_delivered) == 100);
    flaky_order(got, sizeof got);
    assert_string_equal(got, expected);
}

TEST_WITH(limit_cancels_queued_calls_at_shutdown, set_up, flaky_tear_down)
{
    tenrec_error err;

    flaky_open("{ calls_per_second: 0.001, burst: 1000s }");
    assert_int_equal(pass(3, 1, TENREC_MSG_CALL), 1);
    assert_int_equal(atomic_load(&flaky_failed), 0);
    assert_int_equal(flaky_number("queued_now"), 2);
    assert_int_equal(pass(1, 1, TENREC_MSG_RET), 1);
    assert_int_equal(chain_drain(flaky_chain, 1, &err), TENREC_ETIMEDOUT);
    assert_text_has(err.text, "backend 'flaky': 2 messages are still held");
    chain_shutdown(flaky_chain);
    assert_int_equal(atomic_load(&flaky_failed), 2);
    assert_int_equal(flaky_last().code, TENREC_ECANCELED);
    assert_text_has(flaky_last().text, "flaky: CALL to worker 1 was queued, and the worker shuts");
    assert_int_equal(atomic_load(&flaky_released), 4);
    assert_int_equal(atomic_load(&flaky_delivered), 2);
}

TEST_WITH(limit_queues_no_call_whose_deadline_ends_before_its_turn, set_up, flaky_tear_down)
{
    struct tenrec_msg *msg[2];

    flaky_open("{ calls_per_second: 0.1, burst: 10s }");
    assert_int_equal(pass(1, 1, TENREC_MSG_CALL), 1);
    for (int i = 0; i < 2; i++) {
        msg[i] = make(TENREC_MSG_CALL, i, "x", 1);
        msg[i]->deadline_ns = AT(10 + (uint64_t)i);
        flaky_send_msg(1, msg[i]);
    }
    assert_int_equal(atomic_load(&flaky_failed), 1);
    expect_error(TENREC_EAGAIN, "flaky: CALL to worker 1 exceeds the limit, and its turn comes "
                                "after its deadline");
    assert_int_equal(flaky_number("queued_now"), 1); /* due at 10 s, and may wait until 11 s */
    flaky_close();
    assert_int_equal(atomic_load(&flaky_released), 3);
}

/* A timer may be late. */
TEST_WITH(limit_sends_no_call_after_its_deadline, set_up, flaky_tear_down)
{
    struct tenrec_msg *msg = make(TENREC_MSG_CALL, 1, "x", 1);

    atomic_store(&timers_ns, AT(2));
    flaky_open("{ calls_per_second: 1000, burst: 1ms }");
    assert_int_equal(pass(1, 1, TENREC_MSG_CALL), 1);
    msg->deadline_ns = AT(1);
    flaky_send_msg(1, msg);
    assert_becomes(atomic_load(&flaky_failed) == 1);
    expect_error(TENREC_ETIMEDOUT, "flaky: CALL to worker 1 was queued, and its deadline expired");
    assert_int_equal(atomic_load(&flaky_delivered), 1);
}

TEST_WITH(limit_bounds_its_queue, set_up, flaky_tear_down)
{
    flaky_open("{ calls_per_second: 0.001, burst: 1000s, max_queued_bytes: 5KiB }");
    assert_int_equal(pass(1, 1, TENREC_MSG_CALL), 1);
    pass(10, 1, TENREC_MSG_CALL); /* of 1025 bytes each */
    assert_int_equal(flaky_number("queued_now"), 4);
    assert_int_equal(atomic_load(&flaky_failed), 6);
    expect_error(TENREC_EAGAIN,
                 "flaky: CALL to worker 1 exceeds the limit, and max_queued_bytes is reached");
    flaky_close();
    assert_int_equal(atomic_load(&flaky_released), 11);
}

static void keep_flags(void *arg, struct tenrec_msg *msg)
{
    atomic_store((atomic_int *)arg, (int)msg->flags);
}

/* The core's timer thread sends it, and must not wait for a full queue. */
TEST_WITH(limit_lets_no_queued_call_wait_for_room, set_up, flaky_tear_down)
{
    struct tenrec_msg *msg = make(TENREC_MSG_CALL, 1, "x", 1);
    atomic_int flags = -1;

    atomic_store(&timers_ns, AT(1000));
    flaky_open("{ calls_per_second: 1000, burst: 1ms }");
    assert_int_equal(pass(1, 1, TENREC_MSG_CALL), 1);
    msg->flags = TENREC_MSG_MAY_WAIT;
    message_on_release(msg, keep_flags, &flags);
    chain_send(flaky_chain, 1, msg, (struct tenrec_done){ NULL, NULL });
    assert_becomes(atomic_load(&flags) == 0);
}

/* ---- received calls --------------------------------------------------------------- */

/* The answer that came back last, as its caller reads it. */
static tenrec_error read_answer(int64_t id)
{
    const struct flaky_received got = flaky_newest();
    struct tenrec_msg *msg = make(got.type, got.id, got.payload, got.payload_len);
    tenrec_error err;

    assert_int_equal(got.type, TENREC_MSG_EXCEPTION);
    assert_int_equal(got.id, id);
    codec_read_error(msg, &err);
    msg->release(msg);
    return err;
}

TEST_WITH(limit_answers_received_calls_that_it_refuses, set_up, flaky_tear_down)
{
    static const char text[] = "flaky: CALL from worker 1 exceeds calls_per_second";
    tenrec_error err;

    flaky_open("{ direction: in, calls_per_second: 1, over: refuse, by: peer }");
    flaky_send_msg(1, make(TENREC_MSG_CALL, 1, "\xd9\xd9\xf7\x01", 4));
    assert_int_equal(flaky_newest().type, TENREC_MSG_CALL);
    flaky_send_msg(1, make(TENREC_MSG_CALL, 2, "\xd9\xd9\xf7\x01", 4));
    err = read_answer(2);
    assert_int_equal(err.code, TENREC_EAGAIN);
    assert_int_equal(err.worker, -1);
    assert_string_equal(err.text, text);
    flaky_send_msg(1, make(TENREC_MSG_CALL, 3, "pickle", 6)); /* not Tenrec's: plain text */
    err = read_answer(3);
    assert_int_equal(err.code, TENREC_EREMOTE);
    assert_string_equal(err.text, text);
    flaky_send_msg(2, make(TENREC_MSG_CALL, 4, "x", 1));
    assert_int_equal(flaky_newest().id, 4);
    assert_int_equal(atomic_load(&flaky_ok), 4); /* all were sent */
    assert_int_equal(atomic_load(&flaky_delivered), 4);
}

TEST_WITH(limit_answers_no_one_way_call, set_up, flaky_tear_down)
{
    flaky_open("{ direction: in, calls_per_second: 1, over: refuse }");
    pass(3, 1, TENREC_MSG_ONE_WAY_CALL);
    assert_int_equal(atomic_load(&flaky_delivered), 1);
    assert_int_equal(flaky_number("refused"), 2);
}

TEST_WITH(limit_delivers_queued_calls_in_their_turn, set_up, flaky_tear_down)
{
    atomic_store(&timers_ns, AT(1000));
    flaky_open("{ direction: in, calls_per_second: 1000, burst: 1ms }");
    assert_int_equal(pass(5, 1, TENREC_MSG_CALL), 5);
    assert_becomes(atomic_load(&flaky_delivered) == 5);
    assert_int_equal(flaky_newest().type, TENREC_MSG_CALL);
}

/* ---- chains and options ------------------------------------------------------------ */

/* Not even a call: the other direction is the next agent's. */
TEST_WITH(limit_is_passed_by_in_the_other_direction, set_up, flaky_tear_down)
{
    flaky_open("{ calls_per_second: 1 }");
    assert_ptr_equal(flaky_chain->port.sender, &flaky_chain->link[0].agent);
    assert_null(flaky_chain->link[1].outer_deliver);
    flaky_close();
    flaky_open("{ direction: in }");
    assert_ptr_equal(flaky_chain->port.sender, &flaky_chain->link[1].agent);
    assert_non_null(flaky_chain->link[1].outer_deliver);
}

TEST_WITH(limit_refuses_wrong_options, set_up, flaky_tear_down)
{
    static const char *const cases[][2] = {
        { "{ calls_per_second: -1 }", "-1" }, { "{ bytes_per_second: -1 }", "-1" },
        { "{ burst: none }", "none" },        { "{ types: [RET] }", "'RET'" },
        { "{ over: drop }", "'drop'" },       { "{ by: caller }", "'caller'" }
    };
    tenrec_error err;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(flaky_try(cases[i][0], &err), TENREC_ECONFIG);
        assert_text_has(err.text, cases[i][1]);
    }
}
