/* SPDX-License-Identifier: Apache-2.0 */
/* faulty_test.c - torch's options: what is failed, what is delayed,
 * what is counted. */
#include "../support/flaky.h"

#include "../support/message_hooks.h"
#include "core/backend/chain_layer.h"

#include <pthread.h>

/* --- failing ------------------------------------------------------------------ */

TEST_WITH(faulty_fails_the_first_sends_of_each_payload, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ messages_to_fail: [CALL], num_fail_sends: 2 }");
    assert_false(flaky_call("add 1 2"));
    assert_int_equal(flaky_last().code, TENREC_EINJECTED);
    assert_string_equal(flaky_last().text, "faulty: messages_to_fail fails this CALL (1 of 2)");
    assert_int_equal(atomic_load(&flaky_released), 1);
    assert_false(flaky_call("add 1 2"));
    assert_false(flaky_call("add 1 3")); /* another payload counts from 1 */
    assert_true(flaky_call("add 1 2"));
    assert_true(flaky_call("add 1 2")); /* and once through it is not failed again */
    assert_false(flaky_call("add 1 3"));
    assert_true(flaky_call("add 1 3"));
    assert_int_equal(atomic_load(&flaky_delivered), 3);
}

TEST_WITH(faulty_counts_by_the_key_of_a_payload, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ messages_to_fail: [CALL], num_fail_sends: 1 }");
    flaky_send_to(0, TENREC_MSG_CALL, "add 1 2|left 59s", 7);
    assert_int_equal(atomic_load(&flaky_failed), 1);
    flaky_send_to(0, TENREC_MSG_CALL, "add 1 2|left 58s", 7);
    assert_int_equal(atomic_load(&flaky_failed), 1);
    assert_int_equal(atomic_load(&flaky_ok), 1);
}

/* As in torch: neither the type nor the receiver is part of the key. */
TEST_WITH(faulty_counts_one_payload_once_for_all_types, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ messages_to_fail: [CALL, RREF_USER_DELETE], num_fail_sends: 1 }");
    assert_false(flaky_call("same"));
    flaky_send(TENREC_MSG_RREF_USER_DELETE, "same");
    assert_int_equal(atomic_load(&flaky_ok), 1);
}

TEST_WITH(faulty_fails_payloads_without_a_byte, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ messages_to_fail: [CALL], num_fail_sends: 1 }");
    assert_false(flaky_call(""));
    assert_true(flaky_call(""));
}

TEST_WITH(faulty_lets_other_types_through, flaky_set_up, flaky_tear_down)
{
    static const int32_t others[] = { TENREC_MSG_REMOTE_CALL,
                                      TENREC_MSG_RREF_FETCH_CALL,
                                      TENREC_MSG_GATHER,
                                      TENREC_MSG_RET,
                                      TENREC_MSG_ONE_WAY_CALL,
                                      TENREC_MSG_CANCEL,
                                      TENREC_MSG_EXCEPTION,
                                      0x10f,
                                      0x02,
                                      -1 };

    flaky_open("{ messages_to_fail: [CALL], num_fail_sends: 100 }");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        flaky_send(others[i], "x");
    assert_int_equal(atomic_load(&flaky_failed), 0);
    assert_int_equal(atomic_load(&flaky_delivered), sizeof others / sizeof others[0]);
}

struct name {
    const char *rule;
    int32_t hit[2], missed[2];
};

/* torch's names their number only; the first three both of their family. */
TEST_WITH(faulty_names_mean_torchs_numbers, flaky_set_up, flaky_tear_down)
{
    static const struct name names[] = {
        { "CALL", { 0x102, 0x100 }, { 0x105, 0x104 } },
        { "REMOTE_CALL", { 0x105, 0x104 }, { 0x102, 0x100 } },
        { "RREF_FETCH_CALL", { 0x108, 0x107 }, { 0x102, 0x105 } },
        { "PYTHON_CALL", { 0x102 }, { 0x100, 0x105 } },
        { "SCRIPT_CALL", { 0x100 }, { 0x102, 0x104 } },
        { "PYTHON_REMOTE_CALL", { 0x105 }, { 0x104, 0x102 } },
        { "SCRIPT_REMOTE_CALL", { 0x104 }, { 0x105, 0x100 } },
        { "PYTHON_RREF_FETCH_CALL", { 0x108 }, { 0x107, 0x105 } },
        { "SCRIPT_RREF_FETCH_CALL", { 0x107 }, { 0x108, 0x104 } },
        { "RREF_USER_DELETE", { 0x10b }, { 0x10c, 0x10d } },
        { "RREF_FORK_REQUEST", { 0x10c }, { 0x10b, 0x10d } },
        { "RREF_CHILD_ACCEPT", { 0x10d }, { 0x10c, 0x10b } },
        { "CLEANUP_AUTOGRAD_CONTEXT_REQ", { 0x113 }, { 0x111, 0x115 } },
    };
    char options[128], payload[8];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(options, sizeof options, "{ messages_to_fail: [%s], num_fail_sends: 1 }",
                 names[i].rule);
        flaky_open(options);
        for (int k = 0; k < 2; k++) {
            int before = atomic_load(&flaky_failed);
            snprintf(payload, sizeof payload, "%d", k);
            if (names[i].hit[k])
                flaky_send(names[i].hit[k], payload);
            assert_int_equal(atomic_load(&flaky_failed) - before, names[i].hit[k] ? 1 : 0);
            flaky_send(names[i].missed[k], "missed");
            assert_int_equal(atomic_load(&flaky_failed) - before, names[i].hit[k] ? 1 : 0);
        }
        flaky_close();
    }
}

TEST_WITH(faulty_is_transparent_without_rules, flaky_set_up, flaky_tear_down)
{
    flaky_open("{}");
    for (int i = 0; i < 10; i++)
        assert_true(flaky_call("x"));
    assert_string_equal(flaky_log, "");
}

static void *hammer(void *arg)
{
    char payload[16];

    for (int i = 0; i < 500; i++) {
        snprintf(payload, sizeof payload, "%d", i);
        flaky_send(TENREC_MSG_CALL, payload);
    }
    return arg;
}

/* 500 payloads from each of four threads: three of each four fail. */
TEST_WITH(faulty_counts_right_when_many_threads_send, flaky_set_up, flaky_tear_down)
{
    pthread_t thread[4];

    flaky_open("{ messages_to_fail: [CALL], num_fail_sends: 3 }");
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, hammer, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(atomic_load(&flaky_failed), 1500);
    assert_int_equal(atomic_load(&flaky_ok), 500);
    assert_int_equal(atomic_load(&flaky_released), 2000);
}

/* --- delaying ------------------------------------------------------------------- */

TEST_WITH(faulty_delays_without_blocking_the_sender, flaky_set_up, flaky_tear_down)
{
    tenrec_error err;

    flaky_open("{ messages_to_delay: { CALL: 1h } }");
    assert_false(flaky_call("late"));
    assert_int_equal(atomic_load(&flaky_failed), 0);
    flaky_send(TENREC_MSG_RREF_FETCH_CALL, "at once");
    assert_int_equal(atomic_load(&flaky_delivered), 1);
    assert_int_equal(chain_drain(flaky_chain, 1, &err), TENREC_ETIMEDOUT);
    assert_text_has(err.text, "backend 'flaky': 1 delayed messages are still held");
    chain_shutdown(flaky_chain); /* sends it at the latest */
    assert_int_equal(atomic_load(&flaky_ok), 2);
    assert_int_equal(atomic_load(&flaky_released), 2);
}

TEST_WITH(faulty_sends_when_the_delay_is_over, flaky_set_up, flaky_tear_down)
{
    tenrec_error err;

    flaky_open("{ messages_to_delay: { PYTHON_CALL: 0.02, REMOTE_CALL: 5ms } }");
    flaky_call("x");
    flaky_send(TENREC_MSG_REMOTE_CALL, "y");
    assert_status(chain_drain(flaky_chain, 10000, &err), &err);
    assert_int_equal(atomic_load(&flaky_delivered), 2);
}

TEST_WITH(faulty_fails_first_and_delays_then, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ messages_to_fail: [CALL], num_fail_sends: 1, messages_to_delay: { CALL: 1ms } }");
    flaky_call("x");
    assert_int_equal(atomic_load(&flaky_failed), 1);
    flaky_call("x");
    assert_becomes(atomic_load(&flaky_delivered) == 1);
}

static void keep_flags(void *arg, struct tenrec_msg *msg)
{
    atomic_store((atomic_int *)arg, (int)msg->flags);
}

TEST_WITH(faulty_never_lets_the_core_thread_wait, flaky_set_up, flaky_tear_down)
{
    struct tenrec_msg *msg = message_new(0, 0);
    atomic_int flags = -1;

    flaky_open("{ messages_to_delay: { CALL: 1ms } }");
    msg->type = TENREC_MSG_CALL;
    msg->flags = TENREC_MSG_MAY_WAIT | TENREC_MSG_CONTROL;
    message_on_release(msg, keep_flags, &flags);
    chain_send(flaky_chain, 0, msg, (struct tenrec_done){ NULL, NULL });
    assert_becomes(atomic_load(&flags) == TENREC_MSG_CONTROL);
}

/* --- what it says ---------------------------------------------------------------- */

TEST_WITH(faulty_shows_its_injected_faults, flaky_set_up, flaky_tear_down)
{
    char text[1024];

    flaky_open("{ messages_to_fail: [RREF_USER_DELETE, CALL], num_fail_sends: 1,"
               " messages_to_delay: { REMOTE_CALL: 1h } }");
    flaky_call("a");
    flaky_call("b");
    flaky_call("b");
    flaky_send(TENREC_MSG_REMOTE_CALL, "c");
    flaky_info(text, sizeof text);
    assert_string_equal(text, "flaky.injected_failures.RREF_USER_DELETE=0\n"
                              "flaky.injected_failures.CALL=2\n"
                              "flaky.injected_failures=2\n"
                              "flaky.injected_delays.REMOTE_CALL=1\n"
                              "flaky.injected_delays=1\n"
                              "flaky.delayed_now=1\n"
                              "flaky.dropped_past_deadline=0\n"
                              "flaky.distinct_messages=2\n");
}

TEST_WITH(faulty_logs_the_first_injection_of_each_rule, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ messages_to_fail: [CALL], num_fail_sends: 5,"
               " messages_to_delay: { REMOTE_CALL: 1h } }");
    flaky_call("a");
    flaky_call("b");
    flaky_send(TENREC_MSG_REMOTE_CALL, "c");
    flaky_send(TENREC_MSG_REMOTE_CALL, "d");
    assert_string_equal(flaky_log,
                        "info worker0/flaky: messages_to_fail fails its first message: CALL to "
                        "worker 0\n"
                        "info worker0/flaky: messages_to_delay delays its first message: "
                        "REMOTE_CALL to worker 0\n");
}

TEST_WITH(faulty_warns_of_rules_that_hit_nothing, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ messages_to_fail: [SCRIPT_CALL],"
               " messages_to_delay: { CLEANUP_AUTOGRAD_CONTEXT_REQ: 1s } }");
    assert_text_has(
        flaky_log,
        "warn worker0/flaky: messages_to_fail: 'SCRIPT_CALL' hits only torch's own messages: ");
    assert_text_has(
        flaky_log,
        "messages_to_delay: 'CLEANUP_AUTOGRAD_CONTEXT_REQ' hits only torch's own messages: ");
    assert_text_has(flaky_log, "messages_to_fail hits nothing: num_fail_sends is 0");
}

/* --- wrong options ------------------------------------------------------------------ */

static void expect_refused(const char *options, const char *text)
{
    tenrec_error err;

    assert_int_equal(flaky_try(options, &err), TENREC_ECONFIG);
    assert_text_has(err.text, "t.yaml:");
    assert_text_has(err.text, text);
}

TEST_WITH(faulty_refuses_an_unknown_name, flaky_set_up, flaky_tear_down)
{
    expect_refused("{ messages_to_fail: [CALL, PYTHON_CAL] }", "'PYTHON_CALL'");
    expect_refused("{ messages_to_delay: { RREF_FORK_REQ: 1s } }", "'RREF_FORK_REQUEST'");
    expect_refused("{ messages_to_fail: [SCRIPT_RET] }", "SCRIPT_RET");
}

TEST_WITH(faulty_refuses_negative_numbers, flaky_set_up, flaky_tear_down)
{
    expect_refused("{ num_fail_sends: -1 }", "num_fail_sends");
    expect_refused("{ messages_to_delay: { CALL: -1s } }", "-1s");
    expect_refused("{ messages_to_delay: { CALL: -1.5 } }", "-1.5");
}

TEST_WITH(faulty_refuses_delays_that_never_end_or_clash, flaky_set_up, flaky_tear_down)
{
    expect_refused("{ messages_to_delay: { CALL: none } }", "'CALL' has an infinite delay");
    expect_refused("{ messages_to_delay: { CALL: 1s, SCRIPT_CALL: 2s } }",
                   "'CALL' and 'SCRIPT_CALL' mean the same messages");
}
