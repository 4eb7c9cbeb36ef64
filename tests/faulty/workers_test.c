/* SPDX-License-Identifier: Apache-2.0 */
/* workers_test.c - real workers whose messages are lost, doubled, spoiled ...
 * What a caller sees, what a callee does, and that all of them get over it.
 * On the transport named in argv, with one faulty layer around it, or two. */
#include "../support/cluster.h"
#include "../support/debug_info.h"
#include "../support/functions.h"
#include "../testing.h"
#include "core/backend/backend.h"
#include "core/config/node.h"
#include "rpc/future/worker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHORT_MS = 100 /* of a call that must time out */ };

static struct cluster two;
static const char *transport = "inproc";
static bool is_open;

static void set_up(void)
{
    is_open = false;
}

static void tear_down(void)
{
    if (is_open)
        cluster_close(&two, TENREC_GRACEFUL);
}

/* worker0 and worker1. `first` and `second` (or NULL) are options of the layer
 * around the transport, `outer` is one of a layer around that, or NULL for none. */
static void open_with(const char *first, const char *second, const char *outer)
{
    char backend[64], text[3][1024];
    const char *extra[4] = { NULL };
    size_t n = 0;

    snprintf(backend, sizeof backend, "%sfaulty_%s", outer ? "two_" : "", transport);
    for (size_t i = 0; i < 3; i++) {
        const char *option = i == 0 ? first : i == 1 ? second : outer;
        if (!option)
            continue;
        snprintf(text[n], sizeof text[n], "backends.%s_%s.options.%s",
                 i == 2 ? "two_faulty" : "faulty", transport, option);
        extra[n] = text[n];
        n++;
    }
    cluster_use(backend);
    cluster_open(&two, 2, extra, functions_register);
    is_open = true;
}

static void open_rules(const char *rules)
{
    char option[512];

    snprintf(option, sizeof option, "rules=%s", rules);
    open_with(option, NULL, NULL);
}

static tenrec_status add(int64_t timeout_ms, tenrec_error *err)
{
    const struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = timeout_ms };
    const struct tenrec_value args[] = { tenrec_value_int(2), tenrec_value_int(40) };
    struct tenrec_value *got = NULL;
    tenrec_status st = tenrec_rpc_sync(two.worker[0], "worker1", "add", args, 2, &o, &got, err);

    if (st == TENREC_OK)
        assert_int_equal(got->u.integer, 42);
    tenrec_value_drop(got);
    return st;
}

static tenrec_status count(int64_t timeout_ms, tenrec_error *err)
{
    const struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = timeout_ms };

    return tenrec_rpc_sync(two.worker[0], "worker1", "count", NULL, 0, &o, NULL, err);
}

static void expect_works(void)
{
    tenrec_error err;

    assert_status(add(CLUSTER_LONG_MS, &err), &err);
}

/* The first calls may still hear of the connection that was lost. */
static void expect_connects(void)
{
    assert_becomes(add(CLUSTER_LONG_MS, NULL) == TENREC_OK);
}

/* A number of worker `rank`'s debug info. */
static long number(size_t rank, const char *key)
{
    const long n = debug_info_number(two.worker[rank], key);

    if (n < 0)
        fail_msg("no number '%s'", key);
    return n;
}

/* --- other rules ---------------------------------------------------------------- */

/* As the function tenrec.set of worker `rank` does. */
static tenrec_status change_rules(size_t rank, const char *rules, tenrec_error *err)
{
    static const struct position where = { .kind = POSITION_SETTING };
    struct node *map = node_new(NODE_MAP, &where);
    tenrec_status st;
    char name[64];

    snprintf(name, sizeof name, "faulty_%s", transport);
    node_add_key(map, "rules", &where, node_scalar(rules, NODE_RAW, &where));
    st = chain_change(two.worker[rank]->chain, name, map, err);
    node_drop(map);
    return st;
}

TEST_WITH(workers_get_rules_while_they_run, set_up, tear_down)
{
    tenrec_error err;

    open_with(NULL, NULL, NULL);
    expect_works();
    assert_status(change_rules(0, "[{ do: fail, on: [CALL], to: [worker1] }]", &err), &err);
    assert_int_equal(count(CLUSTER_LONG_MS, &err), TENREC_EINJECTED);
    assert_int_equal(change_rules(0, "[{ do: fail, to: [nobody] }]", &err), TENREC_ECONFIG);
    assert_text_has(err.text, "nobody");
    assert_int_equal(change_rules(0, "[{ do: drip }]", &err), TENREC_ECONFIG);
    assert_text_has(err.text, "drip");
    assert_int_equal(count(CLUSTER_LONG_MS, &err), TENREC_EINJECTED);
    assert_status(change_rules(0, "[]", &err), &err);
    expect_works();
}

TEST_WITH(workers_get_rules_for_their_answers, set_up, tear_down)
{
    tenrec_error err;

    open_with(NULL, NULL, NULL);
    assert_status(change_rules(1, "[{ do: drop, on: [RET], to: [worker0], times: 1 }]", &err),
                  &err);
    assert_int_equal(count(SHORT_MS, &err), TENREC_ETIMEDOUT);
    expect_works();
}

/* What former rules hold is passed on when it is due, and a drain waits for it. */
TEST_WITH(workers_keep_what_former_rules_hold, set_up, tear_down)
{
    const struct tenrec_value args[] = { tenrec_value_int(1), tenrec_value_int(2) };
    struct tenrec_future *held;
    tenrec_error err;

    open_rules("[{ do: delay, by: 300ms, on: [CALL], to: [worker1], times: 1 }]");
    assert_status(tenrec_rpc_async(two.worker[0], "worker1", "add", args, 2, NULL, &held, &err),
                  &err);
    assert_status(change_rules(0, "[{ do: reorder, by: 100ms, from: ['*'] }]", &err), &err);
    expect_works();
    assert_status(tenrec_future_wait(held, CLUSTER_LONG_MS, &err), &err);
    tenrec_future_drop(held);
}

/* --- what is sent --------------------------------------------------------------- */

TEST_WITH(workers_run_a_call_that_fails_in_flight, set_up, tear_down)
{
    const int before = functions_counted();
    tenrec_error err;

    open_rules("[{ do: fail_in_flight, on: [CALL], to: [worker1], times: 1 }]");
    assert_int_equal(count(CLUSTER_LONG_MS, &err), TENREC_EINJECTED);
    assert_string_equal(err.worker_name, "worker1");
    assert_becomes(functions_counted() == before + 1);
    assert_becomes(number(0, "calls.late_replies") == 1);
    expect_works();
}

TEST_WITH(workers_time_out_when_a_request_is_dropped, set_up, tear_down)
{
    const int before = functions_counted();
    tenrec_error err;

    open_rules("[{ do: drop, on: [CALL], to: [worker1], times: 1 }]");
    assert_int_equal(count(SHORT_MS, &err), TENREC_ETIMEDOUT);
    assert_int_equal(functions_counted(), before);
    expect_works();
}

TEST_WITH(workers_time_out_when_the_answer_is_dropped, set_up, tear_down)
{
    const int before = functions_counted();
    tenrec_error err;

    open_rules("[{ do: drop, on: [RET], to: [worker0], times: 1 },"
               " { do: drop, on: [RESPONSE], from: [worker1], times: 1 }]");
    assert_int_equal(count(SHORT_MS, &err), TENREC_ETIMEDOUT); /* by the callee's side */
    assert_int_equal(count(SHORT_MS, &err), TENREC_ETIMEDOUT); /* by the caller's */
    assert_becomes(functions_counted() == before + 2);
    expect_works();
}

/* The callee cannot distinguish the two, and runs both. The caller takes the
 * first answer and drops the other. */
TEST_WITH(workers_run_duplicated_calls_twice, set_up, tear_down)
{
    const int before = functions_counted();
    tenrec_error err;

    open_rules("[{ do: duplicate, on: [CALL], to: [worker1], times: 1 }]");
    assert_status(count(CLUSTER_LONG_MS, &err), &err);
    assert_becomes(functions_counted() == before + 2);
    assert_becomes(number(0, "calls.late_replies") == 1);
    expect_works();
}

TEST_WITH(workers_take_the_first_of_two_answers, set_up, tear_down)
{
    open_rules("[{ do: duplicate, on: [RET], to: [worker0] },"
               " { do: duplicate, on: [RET], from: [worker1] }]");
    for (int i = 0; i < 20; i++)
        expect_works();
    assert_becomes(number(0, "calls.late_replies") == 60);
}

/* Answers with tensors, of which the first goes into the caller's own buffer. */
TEST_WITH(workers_keep_their_tensors_when_answers_are_doubled, set_up, tear_down)
{
    const int64_t length = 1000;
    const struct tenrec_value arg = tenrec_value_int(length);
    struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = CLUSTER_LONG_MS };
    struct tenrec_value *got = NULL;
    tenrec_error err;

    open_rules("[{ do: duplicate, on: [CALL, RET] }, { do: duplicate, from: ['*'] }]");
    assert_status(tenrec_tensor_new(TENREC_FLOAT32, 1, &length, &o.into, &err), &err);
    for (int i = 0; i < 5; i++) {
        float *data = tenrec_tensor_data(o.into);
        memset(data, 0, (size_t)length * sizeof *data);
        assert_status(tenrec_rpc_sync(two.worker[0], "worker1", "range", &arg, 1, &o, &got, &err),
                      &err);
        for (int64_t k = 0; k < length; k++)
            assert_true(data[k] == (float)k);
        tenrec_value_drop(got);
    }
    tenrec_tensor_drop(o.into);
}

TEST_WITH(workers_time_out_on_a_delayed_request_and_run_the_request_late, set_up, tear_down)
{
    const int before = functions_counted();
    tenrec_error err;

    open_rules("[{ do: delay, by: 2s, on: [CALL], to: [worker1], times: 1 }]");
    assert_int_equal(count(20, &err), TENREC_ETIMEDOUT);
    assert_int_equal(functions_counted(), before);
    assert_becomes(functions_counted() == before + 1);
    expect_works();
}

TEST_WITH(workers_never_run_calls_dropped_past_their_deadline, set_up, tear_down)
{
    const int before = functions_counted();
    char key[64];
    tenrec_error err;

    open_with("past_deadline=drop", "messages_to_delay={ CALL: 50ms }", NULL);
    assert_int_equal(count(5, &err), TENREC_ETIMEDOUT);
    snprintf(key, sizeof key, "faulty_%s.dropped_past_deadline", transport);
    assert_becomes(number(0, key) == 1);
    expect_works(); /* behind it on the same way */
    assert_int_equal(functions_counted(), before);
}

TEST_WITH(workers_answer_all_calls_when_messages_change_places, set_up, tear_down)
{
    struct tenrec_future *f[50];
    tenrec_error err;

    open_rules("[{ do: reorder, by: 20ms, probability: 0.5 },"
               " { do: reorder, by: 20ms, from: ['*'], probability: 0.5 }]");
    for (int64_t i = 0; i < 50; i++) {
        const struct tenrec_value args[] = { tenrec_value_int(i), tenrec_value_int(1000) };
        assert_status(tenrec_rpc_async(two.worker[0], "worker1", "add", args, 2, NULL, &f[i], &err),
                      &err);
    }
    assert_status(tenrec_future_wait_all(f, 50, CLUSTER_LONG_MS, &err), &err);
    for (int64_t i = 0; i < 50; i++) {
        assert_int_equal(tenrec_future_value(f[i])->u.integer, 1000 + i);
        tenrec_future_drop(f[i]);
    }
}

/* Any byte of a request or an answer may be another one: a wrong result, an
 * error or a timeout, but no crash, and no harm to what follows. */
TEST_WITH(workers_survive_spoiled_messages, set_up, tear_down)
{
    const struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = SHORT_MS };
    struct tenrec_future *f[100];
    struct tenrec_value inner[] = { tenrec_value_text("some text"), tenrec_value_int(7),
                                    tenrec_value_nil() };
    const struct tenrec_value args[] = { tenrec_value_array(inner, 3), tenrec_value_double(0.5) };
    int failed = 0;
    tenrec_error err;

    open_rules("[{ do: corrupt, on: [CALL, RET], times: 100 },"
               " { do: corrupt, on: [RET], from: [worker1], times: 20 }]");
    for (size_t i = 0; i < 100; i++)
        assert_status(
            tenrec_rpc_async(two.worker[0], "worker1", "identity", args, 2, &o, &f[i], &err), &err);
    for (size_t i = 0; i < 100; i++) {
        failed += tenrec_future_wait(f[i], CLUSTER_LONG_MS, &err) != TENREC_OK;
        assert_true(tenrec_future_done(f[i]));
        tenrec_future_drop(f[i]);
    }
    assert_true(failed > 0);
    for (int i = 0; i < 120; i++)
        count(SHORT_MS, &err); /* uses up the rest */
    expect_works();
}

static void on_lost(struct tenrec_worker *w, tenrec_peer peer, const tenrec_error *why, void *arg)
{
    (void)w, (void)peer, (void)why;
    atomic_fetch_add((atomic_int *)arg, 1);
}

TEST_WITH(workers_lose_calls_with_the_connection_and_connect_again, set_up, tear_down)
{
    static atomic_int lost;
    struct tenrec_future *held;
    tenrec_error err;

    atomic_store(&lost, 0);
    open_rules("[{ do: disconnect, on: [CALL], to: [worker1], after_messages: 1, times: 1 }]");
    tenrec_worker_set_peer_lost_callback(two.worker[0], on_lost, &lost);
    held = functions_hold(two.worker[0], "worker1");
    assert_int_equal(count(CLUSTER_LONG_MS, &err), TENREC_EPEER_LOST);
    assert_string_equal(err.worker_name, "worker1");
    assert_int_equal(tenrec_future_wait(held, CLUSTER_LONG_MS, &err), TENREC_EPEER_LOST);
    assert_becomes(atomic_load(&lost) == 1);
    functions_open_gate();
    tenrec_future_drop(held);
    expect_connects();
}

TEST_WITH(workers_lose_calls_when_an_arrival_disconnects, set_up, tear_down)
{
    tenrec_error err;

    open_rules("[{ do: disconnect, on: [RET], from: [worker1], times: 1 }]");
    assert_int_equal(count(CLUSTER_LONG_MS, &err), TENREC_EPEER_LOST);
    expect_connects();
}

TEST_WITH(workers_wait_for_a_slow_link, set_up, tear_down)
{
    const int64_t length = 5000;
    const struct tenrec_value arg = tenrec_value_int(length);
    struct tenrec_value *got = NULL;
    char key[64];
    tenrec_error err;

    open_rules("[{ do: slow, bytes_per_second: 1MB, on: [RET], to: [worker0] }]");
    assert_status(tenrec_rpc_sync(two.worker[0], "worker1", "range", &arg, 1, NULL, &got, &err),
                  &err);
    assert_int_equal(tenrec_tensor_count(got->u.tensor), length);
    tenrec_value_drop(got);
    snprintf(key, sizeof key, "faulty_%s.rules.rule1.injected", transport);
    assert_int_equal(number(1, key), 1);
}

static void *in_barriers(void *worker)
{
    tenrec_error err;

    for (int i = 0; i < 10; i++)
        if (tenrec_worker_barrier(worker, NULL, 0, CLUSTER_LONG_MS, &err) != TENREC_OK)
            fail_msg("barrier %d: %s", i, err.text);
    return NULL;
}

TEST_WITH(workers_meet_in_barriers_whose_messages_are_doubled, set_up, tear_down)
{
    pthread_t thread;

    open_rules("[{ do: duplicate, on: [GATHER, GATHER_RET] },"
               " { do: duplicate, on: [GATHER, GATHER_RET], from: ['*'] }]");
    assert_int_equal(pthread_create(&thread, NULL, in_barriers, two.worker[1]), 0);
    in_barriers(two.worker[0]);
    pthread_join(thread, NULL);
    expect_works();
}

/* --- two layers -------------------------------------------------------------------- */

/* The inner one sees what the outer one lets through: one of two is dropped. */
TEST_WITH(workers_stack_faults_in_two_layers, set_up, tear_down)
{
    const int before = functions_counted();
    char key[64];
    tenrec_error err;

    open_with("rules=[{ do: drop, on: [CALL], to: [worker1], times: 1 }]", NULL,
              "rules=[{ do: duplicate, on: [CALL], to: [worker1], times: 1 }]");
    assert_status(count(CLUSTER_LONG_MS, &err), &err);
    assert_int_equal(functions_counted(), before + 1);
    snprintf(key, sizeof key, "faulty_%s.rules.rule1.injected", transport);
    assert_int_equal(number(0, key), 1);
    snprintf(key, sizeof key, "two_faulty_%s.rules.rule1.injected", transport);
    assert_int_equal(number(0, key), 1);
    expect_works();
}

/* --- all at once ------------------------------------------------------------------- */

static void *call_often(void *arg)
{
    const struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = 2 * SHORT_MS };
    struct tenrec_worker *w = arg;
    const char *to = w == two.worker[0] ? "worker1" : "worker0";

    for (int i = 0; i < 40; i++) {
        const struct tenrec_value args[] = { tenrec_value_int(i), tenrec_value_int(1) };
        struct tenrec_value *got = NULL;
        tenrec_error err;
        tenrec_status st =
            tenrec_rpc_sync(w, to, i % 2 ? "add" : "add_inline", args, 2, &o, &got, &err);
        if (st == TENREC_OK)
            tenrec_value_drop(got);
    }
    return NULL;
}

TEST_WITH(workers_shut_down_gracefully_after_all_kinds_of_faults, set_up, tear_down)
{
    static const char rules[] =
        "rules=[{ do: fail, probability: 0.05 }, { do: fail_in_flight, probability: 0.05 },"
        " { do: drop, probability: 0.03 }, { do: duplicate, probability: 0.1 },"
        " { do: delay, by: 2ms, probability: 0.1 }, { do: reorder, by: 3ms, probability: 0.1 },"
        " { do: slow, bytes_per_second: 1MB, probability: 0.1 },"
        " { do: disconnect, probability: 0.01 }]";
    static const char outer[] = "rules=[{ do: duplicate, from: ['*'], probability: 0.1 },"
                                " { do: reorder, by: 3ms, from: ['*'], probability: 0.1 },"
                                " { do: delay, by: 2ms, from: ['*'], probability: 0.1 },"
                                " { do: drop, from: ['*'], probability: 0.03 }]";
    pthread_t thread[4];

    open_with(rules, NULL, outer);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, call_often, two.worker[i % 2]), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        transport = argv[1];
    return testing_run(NULL, NULL);
}
