/* SPDX-License-Identifier: Apache-2.0 */
/* rules_test.c - the option `rules`: which messages are hit, when, and what is said
 * of it. */
#include "../support/flaky.h"

#include <stdio.h>
#include <stdlib.h>

static void expect_order(const char *expected)
{
    char order[256];

    flaky_order(order, sizeof order);
    assert_string_equal(order, expected);
}

/* --- when ------------------------------------------------------------------------ */

TEST_WITH(rules_apply_to_the_named_types, flaky_set_up, flaky_tear_down)
{
    static const struct {
        const char *on;
        int32_t hit[2], missed[2];
    } cases[] = {
        { "CALL", { 0x102, 0x100 }, { 0x202, 0x105 } },
        { "RET", { 0x203, 0x201 }, { 0x102, 0x237 } },
        { "RREF_FETCH_RET", { 0x209, 0x20a }, { 0x108, 0x203 } },
        { "PYTHON_RET", { 0x203, 0x203 }, { 0x201, 0x237 } },
        { "EXCEPTION", { 0x237, 0x237 }, { 0x203, 0x102 } },
        { "RREF_ACK", { 0x20e, 0x20e }, { 0x10d, 0x203 } },
        { "ONE_WAY_CALL", { 0x180, 0x180 }, { 0x102, 0x181 } },
        { "CANCEL", { 0x181, 0x181 }, { 0x102, 0x180 } },
        { "GATHER", { 0x182, 0x182 }, { 0x102, 0x283 } },
        { "GATHER_RET", { 0x283, 0x283 }, { 0x182, 0x203 } },
        { "BULK_READ", { 0x186, 0x186 }, { 0x188, 0x287 } },
        { "BULK_WRITE", { 0x188, 0x188 }, { 0x186, 0x289 } },
        { "BULK_DONE", { 0x287, 0x289 }, { 0x186, 0x188 } },
        { "REQUEST", { 0x186, 0x1ff }, { 0x203, 0x182 } },
        { "RESPONSE", { 0x289, 0x2ff }, { 0x102, 0x283 } },
        { "", { 0x102, 0x7 }, { 0x182, 0x283 } },
    };
    char options[128];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(options, sizeof options, "{ rules: [{ do: fail, on: [%s] }] }", cases[i].on);
        flaky_open(options);
        atomic_store(&flaky_failed, 0);
        for (int k = 0; k < 2; k++) {
            flaky_send(cases[i].hit[k], "x");
            if (atomic_load(&flaky_failed) != k + 1)
                fail_msg("'%s' does not hit 0x%x", cases[i].on, (unsigned)cases[i].hit[k]);
        }
        for (int k = 0; k < 2; k++) {
            flaky_send(cases[i].missed[k], "x");
            if (atomic_load(&flaky_failed) != 2)
                fail_msg("'%s' hits 0x%x", cases[i].on, (unsigned)cases[i].missed[k]);
        }
        flaky_close();
    }
}

TEST_WITH(rules_mean_workers_by_name_or_rank, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ rules: [{ do: fail, to: [worker2, 1] }] }");
    for (tenrec_peer to = 0; to < 3; to++)
        flaky_send_to(to, TENREC_MSG_CALL, "x", 0);
    assert_int_equal(atomic_load(&flaky_failed), 2);
    assert_int_equal(flaky_number("rules.rule1.matched"), 2);
}

TEST_WITH(rules_refuse_an_unknown_worker, flaky_set_up, flaky_tear_down)
{
    tenrec_error err;

    assert_int_equal(flaky_start("{ rules: [{ do: fail, to: [wroker1] }] }", &err), TENREC_ECONFIG);
    assert_text_has(err.text,
                    "backend 'flaky': rule 'rule1': 'wroker1' is neither the name nor the "
                    "rank of a worker (workers: worker0, worker1, worker2)");
    flaky_close();
    assert_int_equal(flaky_start("{ rules: [{ do: drop, from: [3] }] }", &err), TENREC_ECONFIG);
    assert_text_has(err.text, "'3' is neither");
}

TEST_WITH(rules_begin_after_so_many_messages, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ rules: [{ do: fail, on: [CALL], after_messages: 2, times: 1 }] }");
    assert_true(flaky_call("a"));
    flaky_send(TENREC_MSG_REMOTE_CALL, "is not meant");
    assert_true(flaky_call("b"));
    assert_false(flaky_call("c"));
    assert_true(flaky_call("d"));
}

TEST_WITH(rules_begin_after_some_time, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ rules: [{ do: fail, after: 1h }, { do: drop, after: 5ms }] }");
    assert_becomes(flaky_call("x") && flaky_number("rules.rule2.injected") > 0);
    assert_int_equal(atomic_load(&flaky_failed), 0);
}

TEST_WITH(rules_count_by_their_option, flaky_set_up, flaky_tear_down)
{
    static const struct {
        const char *by;
        int failed;
    } cases[] = {
        { "all", 1 },
        { "payload", 3 },
        { "type", 2 },
        { "destination", 2 },
        { "type_and_destination", 4 },
    };
    char options[128];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(options, sizeof options, "{ rules: [{ do: fail, times: 1, count_by: %s }] }",
                 cases[i].by);
        flaky_open(options);
        atomic_store(&flaky_failed, 0);
        for (int k = 0; k < 2; k++) {
            flaky_send_to(1, TENREC_MSG_CALL, "a", 0);
            flaky_send_to(1, TENREC_MSG_REMOTE_CALL, "a", 0);
            flaky_send_to(2, TENREC_MSG_CALL, "b", 0);
            flaky_send_to(2, TENREC_MSG_REMOTE_CALL, "c", 0);
        }
        if (atomic_load(&flaky_failed) != cases[i].failed)
            fail_msg("by %s: %d failed, expected %d", cases[i].by, atomic_load(&flaky_failed),
                     cases[i].failed);
        flaky_close();
    }
}

TEST_WITH(torch_counts_by_the_option, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ messages_to_fail: [CALL], num_fail_sends: 1, count_by: destination }");
    assert_false(flaky_call("a"));
    assert_true(flaky_call("b"));
    flaky_send_to(1, TENREC_MSG_CALL, "b", 0);
    assert_int_equal(atomic_load(&flaky_failed), 2);
}

/* The first that hits has it; all that mean it count it. */
TEST_WITH(rules_are_asked_in_their_order, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ messages_to_fail: [CALL], num_fail_sends: 1, messages_to_delay: { CALL: 1h },"
               " rules: [{ do: drop, times: 1 }, { do: duplicate, times: 1 }] }");
    assert_false(flaky_call("x"));
    assert_int_equal(flaky_last().code, TENREC_EINJECTED);
    assert_true(flaky_call("x"));
    expect_order("");
    assert_true(flaky_call("x"));
    expect_order("x x");
    assert_false(flaky_call("x")); /* delayed */
    assert_int_equal(flaky_number("rules.rule1.matched"), 4);
    assert_int_equal(flaky_number("rules.rule2.injected"), 1);
    assert_int_equal(flaky_number("injected_delays"), 1);
}

TEST_WITH(rules_that_do_not_name_barriers_leave_barriers_alone, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ rules: [{ do: fail }] }");
    flaky_send(TENREC_MSG_GATHER, "x");
    flaky_send(TENREC_MSG_GATHER_RET, "x");
    assert_int_equal(atomic_load(&flaky_ok), 2);
}

/* --- chance ----------------------------------------------------------------------- */

/* Which of 64 calls fail, as text. */
static void pattern(const char *options, tenrec_peer to, char buf[65])
{
    flaky_open(options);
    for (int i = 0; i < 64; i++) {
        int before = atomic_load(&flaky_failed);
        flaky_send_to(to, TENREC_MSG_CALL, "x", 0);
        buf[i] = atomic_load(&flaky_failed) > before ? '1' : '0';
    }
    buf[64] = '\0';
    flaky_close();
}

TEST_WITH(rules_of_one_seed_hit_the_same_messages, flaky_set_up, flaky_tear_down)
{
    char one[65], again[65], other[65], peer[65];

    pattern("{ seed: 5, rules: [{ do: fail, probability: 0.5 }] }", 0, one);
    pattern("{ seed: 5, rules: [{ do: fail, probability: 0.5 }] }", 0, again);
    pattern("{ seed: 6, rules: [{ do: fail, probability: 0.5 }] }", 0, other);
    pattern("{ seed: 5, rules: [{ do: fail, probability: 0.5 }] }", 1, peer);
    assert_string_equal(one, again);
    assert_string_not_equal(one, other);
    assert_string_not_equal(one, peer);
    assert_non_null(strchr(one, '0'));
    assert_non_null(strchr(one, '1'));
}

/* Messages to another worker do not change the hits here. */
TEST_WITH(rules_draw_for_each_worker_apart, flaky_set_up, flaky_tear_down)
{
    char alone[65], mixed[65];

    pattern("{ seed: 5, rules: [{ do: fail, probability: 0.5 }] }", 1, alone);
    flaky_open("{ seed: 5, rules: [{ do: fail, probability: 0.5 }] }");
    for (int i = 0; i < 64; i++) {
        int before;
        for (int k = 0; k < i % 3; k++)
            flaky_send_to(2, TENREC_MSG_CALL, "y", 0);
        before = atomic_load(&flaky_failed);
        flaky_send_to(1, TENREC_MSG_CALL, "x", 0);
        mixed[i] = atomic_load(&flaky_failed) > before ? '1' : '0';
    }
    mixed[64] = '\0';
    assert_string_equal(alone, mixed);
}

TEST_WITH(rules_hit_about_as_often_as_their_probability, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ seed: 11, rules: [{ do: fail, probability: 0.1 }] }");
    for (int i = 0; i < 10000; i++)
        flaky_call("x");
    assert_in_range(atomic_load(&flaky_failed), 850, 1150);
}

TEST_WITH(rules_print_the_drawn_seed, flaky_set_up, flaky_tear_down)
{
    const char *at;
    long seed;

    flaky_open("{ rules: [{ do: fail, probability: 0.5 }] }");
    at = strstr(flaky_log, "warn worker0/flaky: random faults use seed ");
    assert_non_null(at);
    seed = atol(strstr(at, "seed ") + 5);
    assert_true(seed > 0);
    assert_int_equal(flaky_number("seed"), seed);
}

TEST_WITH(rules_without_chance_have_no_seed, flaky_set_up, flaky_tear_down)
{
    char text[1024];

    flaky_open("{ seed: 3, rules: [{ do: fail }] }");
    flaky_info(text, sizeof text);
    assert_null(strstr(text, "seed"));
    assert_string_equal(flaky_log, "");
}

/* --- what it says --------------------------------------------------------------------- */

TEST_WITH(rules_are_counted_and_logged_by_name, flaky_set_up, flaky_tear_down)
{
    char text[1024];

    flaky_open("{ rules: [{ do: drop, name: lossy, on: [RET] }, { do: fail, on: [CALL] }] }");
    flaky_send_to(2, TENREC_MSG_RET, "a", 0);
    flaky_send_to(2, TENREC_MSG_RET, "a", 0);
    flaky_call("b");
    flaky_info(text, sizeof text);
    assert_text_has(text, "flaky.rules.lossy.injected=2\nflaky.rules.lossy.matched=2\n"
                          "flaky.rules.rule2.injected=1\nflaky.rules.rule2.matched=1\n");
    assert_string_equal(flaky_log,
                        "info worker0/flaky: lossy drops its first message: RET to worker 2\n"
                        "info worker0/flaky: rule2 fails its first message: CALL to worker 0\n");
}

TEST_WITH(rules_warn_of_options_that_hit_nothing, flaky_set_up, flaky_tear_down)
{
    flaky_open("{ rules: [{ do: drop, on: [RET, SCRIPT_RET] }, { do: fail, probability: 0 }] }");
    assert_text_has(flaky_log,
                    "warn worker0/flaky: rule1: 'SCRIPT_RET' hits only torch's own messages: ");
    assert_text_has(flaky_log, "warn worker0/flaky: rule2 hits nothing: its probability is 0");
}

TEST_WITH(rules_refuse_invalid_options, flaky_set_up, flaky_tear_down)
{
    static const char *const cases[][2] = {
        { "[{}]", "t.yaml:4:3: backend 'flaky': rule 1 at t.yaml:7:24: 'do' is missing, expected "
                  "one of fail|" },
        { "[{ do: drip }]", "t.yaml:7:30: backend 'flaky': option 'rules', item 1: 'do': expected "
                            "one of fail, " },
        { "[{ do: drip }]", "(did you mean 'drop'?)" },
        { "[{ do: drop, on: [CAL] }]", "t.yaml:7:41: " },
        { "[{ do: drop, on: [CAL] }]", "(did you mean 'CALL'?)" },
        { "[{ do: drop, form: [a] }]", "has no key 'form' (did you mean 'from'?)" },
        { "[{ do: fail, from: [a] }]", "'fail' with 'from': only a send can fail" },
        { "[{ do: fail_in_flight, from: [a] }]", "'fail_in_flight' with 'from'" },
        { "[{ do: drop, from: [a], to: [b] }]", "has 'to' and 'from'" },
        { "[{ do: slow }]", "'bytes_per_second' and 'do: slow' require each other" },
        { "[{ do: drop, bytes_per_second: 1kB }]", "require each other" },
        { "[{ do: delay, by: none }]", "'by' is infinite" },
        { "[{ do: drop, after: none }]", "'after' is infinite" },
        { "[{ do: drop, probability: 1.5 }]", "expected 0 to 1, found '1.5'" },
        { "[{ do: drop, times: -1 }]", "'times'" },
        { "[{ do: drop, name: 'a b' }]", "name 'a b': expected at most 40 letters" },
        { "[{ do: drop, name: x }, { do: fail, name: x }]",
          "rule 2 at t.yaml:7:47: name 'x' is used by the rule at t.yaml:7:24" },
        { "[{ do: drop, name: rule2 }, { do: fail }]", "name 'rule2' is used by the rule at" },
        { "{ do: drop }", "expected a list of maps" },
    };
    char options[256];
    tenrec_error err;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(options, sizeof options, "{ rules: %s }", cases[i][0]);
        assert_int_equal(flaky_try(options, &err), TENREC_ECONFIG);
        assert_text_has(err.text, cases[i][1]);
    }
    assert_int_equal(flaky_try("{ count_by: all }", &err), TENREC_ECONFIG);
    assert_int_equal(flaky_try("{ past_deadline: keep }", &err), TENREC_ECONFIG);
    assert_int_equal(flaky_try("{ seed: -1 }", &err), TENREC_ECONFIG);
}
