/* SPDX-License-Identifier: Apache-2.0 */
/* profiler_test.c - sessions over three workers, on the backend named in argv. */
#include "../support/functions.h"
#include "../testing.h"
#include "profiler_functions.h"
#include "profiler_sessions.h"

#include <pthread.h>
#include <tenrec/profiler.h>

/* ---- what follows from a call ----------------------------------------------------- */

TEST(profiler_has_the_whole_way_when_calls_are_nested)
{
    const struct tenrec_value args[] = { tenrec_value_text("worker2"),
                                         tenrec_value_text("marked") };
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    const struct tenrec_event *e;

    call(0, "worker1", "through", args, 2);
    stop(p);
#define A "rpc_sync#through(worker0 -> worker1)"
#define B A "#remote_op: rpc_sync#marked(worker1 -> worker2)"
    assert_int_equal(one(p, A)->worker_id, 0);
    assert_int_equal(one(p, A "#remote_op: through")->worker_id, 1);
    assert_int_equal(one(p, B)->worker_id, 1);
    e = one(p, B "#remote_op: marked");
    assert_int_equal(e->worker_id, 2);
    assert_int_equal(e->caller_id, 1);
    assert_int_equal(e->call_id, one(p, B)->call_id);
    assert_int_equal(one(p, B "#remote_op: step")->kind, TENREC_EVENT_MARK);
    assert_true(within(one(p, B "#remote_op: inner"), one(p, B "#remote_op: step")));
    assert_true(within(one(p, B "#remote_op: step"), e));
    assert_true(within(e, one(p, B)));
    assert_true(within(one(p, B), one(p, A)));
    assert_int_equal(tenrec_profiler_count(p), 6);
    assert_int_equal(tenrec_profiler_dropped(p), 0);
    tenrec_profiler_drop(p);
#undef A
#undef B
}

TEST(profiler_follows_a_call_into_callbacks_on_request)
{
    const struct tenrec_value args[] = { tenrec_value_text("worker2"), tenrec_value_text("noop") };
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);

    call(0, "worker1", "pass", args, 2);
    stop(p);
#define A "rpc_sync#pass(worker0 -> worker1)#remote_op: "
    one(p, A "rpc_async#noop(worker1 -> worker2)");
    one(p, A "rpc_async#noop(worker1 -> worker2)#remote_op: noop");
    one(p, A "passed");
    one(p, A "pass");
#undef A
    tenrec_profiler_drop(p);
}

TEST(profiler_has_each_call_once_when_calls_go_to_and_fro)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    const struct tenrec_value depth = tenrec_value_int(3);

    call(0, "worker1", "nest", &depth, 1);
    stop(p);
    assert_int_equal(tenrec_profiler_count(p), 4 * 2);
    tenrec_profiler_drop(p);
}

TEST(profiler_has_the_calls_of_its_thread_through_any_worker)
{
    struct tenrec_profiler *p = start(1, TENREC_PROFILE_THREAD, 0);

    call(0, "worker1", "noop_inline", NULL, 0);
    call(2, "worker1", "noop_inline", NULL, 0);
    stop(p);
    assert_int_equal(tenrec_profiler_count(p), 4);
    tenrec_profiler_drop(p);
}

TEST(profiler_bounds_the_records_of_a_callee)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    const struct tenrec_value n = tenrec_value_int(5000);

    call(0, "worker1", "many", &n, 1);
    stop(p);
    one(p, "rpc_sync#many(worker0 -> worker1)#remote_op: many");
    assert_true(tenrec_profiler_count(p) > 1000);
    assert_int_equal(tenrec_profiler_count(p) + tenrec_profiler_dropped(p), 5002);
    tenrec_profiler_drop(p);
}

TEST(profiler_counts_dropped_records)
{
    const struct tenrec_profiler_options o = { .size = sizeof o, .max_events = 3 };
    struct tenrec_profiler *p = NULL;
    tenrec_error err;

    assert_status(tenrec_profiler_start(three.worker[0], &o, &p, &err), &err);
    for (int i = 0; i < 5; i++)
        call(0, "worker1", "noop", NULL, 0);
    stop(p);
    assert_int_equal(tenrec_profiler_count(p), 3);
    assert_int_equal(tenrec_profiler_dropped(p), 7);
    tenrec_profiler_drop(p);
}

/* ---- scopes --------------------------------------------------------------------------- */

TEST(profiler_asks_no_peer_when_local)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, TENREC_PROFILE_LOCAL);

    call(0, "worker1", "marked", NULL, 0);
    stop(p);
    assert_int_equal(tenrec_profiler_count(p), 1);
    assert_true(one(p, "rpc_sync#marked(worker0 -> worker1)")->wire_ns > 0);
    assert_int_equal(tenrec_profiler_dropped(p), 0);
    tenrec_profiler_drop(p);
}

TEST(profiler_of_a_worker_has_both_roles)
{
    struct tenrec_profiler *p = start(1, TENREC_PROFILE_WORKER, TENREC_PROFILE_LOCAL);
    const struct tenrec_value args[] = { tenrec_value_text("worker2"), tenrec_value_text("noop") };
    const struct tenrec_event *e;

    call(0, "worker1", "through", args, 2);
    call(2, "worker0", "noop", NULL, 0);
    stop(p);
    e = one(p, "through");
    assert_int_equal(e->kind, TENREC_EVENT_SERVE);
    assert_int_equal(e->remote, 0);
    assert_true(within(one(p, "rpc_sync#noop(worker1 -> worker2)"), e));
    assert_int_equal(tenrec_profiler_count(p), 2);
    tenrec_profiler_drop(p);
}

TEST(profiler_of_a_server_has_all_served_calls)
{
    struct tenrec_profiler *outer = start(0, TENREC_PROFILE_SERVER, 0), *inner;
    const struct tenrec_value args[] = { tenrec_value_text("worker2"),
                                         tenrec_value_text("noop_inline") };

    call(0, "worker1", "marked", NULL, 0);
    inner = start(0, TENREC_PROFILE_SERVER, TENREC_PROFILE_LOCAL);
    call(0, "worker1", "through", args, 2);
    stop(inner);
    call(0, "worker1", "add_inline",
         (const struct tenrec_value[]){ tenrec_value_int(1), tenrec_value_int(1) }, 2);
    stop(outer);
    one(inner, "through");
    one(inner, "rpc_sync#noop_inline(worker1 -> worker2)");
    one(inner, "noop_inline");
    assert_int_equal(tenrec_profiler_count(inner), 3);
    one(outer, "marked");
    one(outer, "step");
    one(outer, "through");
    one(outer, "noop_inline");
    one(outer, "rpc_sync#noop_inline(worker1 -> worker2)#remote_op: noop_inline");
    one(outer, "add_inline");
    assert_null(tenrec_profiler_get_function_event(outer, "worker0"));
    tenrec_profiler_drop(inner);
    tenrec_profiler_drop(outer);
}

TEST(profiler_fills_both_nested_sessions_of_a_thread)
{
    struct tenrec_profiler *outer = start(0, TENREC_PROFILE_THREAD, 0), *inner;
    tenrec_error err;

    call(0, "worker1", "noop", NULL, 0);
    inner = start(0, TENREC_PROFILE_THREAD, 0);
    call(0, "worker2", "noop", NULL, 0);
    assert_int_equal(tenrec_profiler_stop(outer, &err), TENREC_EINVAL);
    assert_text_has(err.text, "innermost");
    stop(inner);
    stop(outer);
    assert_int_equal(tenrec_profiler_count(inner), 2);
    assert_int_equal(tenrec_profiler_count(outer), 4);
    tenrec_profiler_drop(inner);
    tenrec_profiler_drop(outer);
}

/* ---- records ----------------------------------------------------------------------------- */

TEST(profiler_has_records_of_the_calling_thread)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    struct tenrec_profiler_mark *r = tenrec_profiler_mark_begin(three.worker[0], "epoch");

    call(0, "worker1", "noop", NULL, 0);
    tenrec_profiler_mark_end(r);
    stop(p);
    assert_true(within(one(p, "rpc_sync#noop(worker0 -> worker1)"), one(p, "epoch")));
    tenrec_profiler_drop(p);
}

TEST(profiler_ends_a_record_when_its_future_is_done)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    struct tenrec_profiler_mark *r = tenrec_profiler_mark_begin(three.worker[0], "fetch");
    struct tenrec_future *f;
    tenrec_error err;

    assert_status(tenrec_future_new(&f, &err), &err);
    assert_status(tenrec_profiler_mark_end_with(r, f, &err), &err);
    assert_status(tenrec_future_set_value(f, NULL, &err), &err);
    stop(p);
    assert_true(one(p, "fetch")->run_ns <= one(p, "fetch")->duration_ns);
    tenrec_future_drop(f);
    tenrec_profiler_drop(p);
}

TEST(profiler_makes_no_record_without_a_session)
{
    assert_null(tenrec_profiler_mark_begin(three.worker[0], "idle"));
    tenrec_profiler_mark_end(NULL);
}

/* ---- misuse --------------------------------------------------------------------------------- */

TEST(profiler_refuses_unknown_options)
{
    struct tenrec_profiler_options o = { .size = sizeof o, .scope = 3 };
    struct tenrec_profiler *p = NULL;
    tenrec_error err;

    assert_int_equal(tenrec_profiler_start(three.worker[0], &o, &p, &err), TENREC_EINVAL);
    assert_text_has(err.text, "scope 3");
    o = (struct tenrec_profiler_options){ .size = sizeof o, .flags = 2 };
    assert_int_equal(tenrec_profiler_start(three.worker[0], &o, &p, &err), TENREC_EINVAL);
    assert_text_has(err.text, "flags 0x2");
    o = (struct tenrec_profiler_options){ .size = 8 };
    assert_int_equal(tenrec_profiler_start(three.worker[0], &o, &p, &err), TENREC_EINVAL);
    assert_text_has(err.text, "size is 8");
    assert_int_equal(tenrec_profiler_start(NULL, NULL, &p, &err), TENREC_EINVAL);
    assert_text_has(err.text, "needs a worker");
    assert_null(p);
}

TEST(profiler_has_no_events_before_its_stop)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    tenrec_error err;

    call(0, "worker1", "noop", NULL, 0);
    assert_int_equal(tenrec_profiler_count(p), 0);
    assert_null(tenrec_profiler_get_function_event(p, "noop"));
    assert_int_equal(tenrec_profiler_write(p, "/dev/null", &err), TENREC_EINVAL);
    stop(p);
    assert_int_equal(tenrec_profiler_stop(p, &err), TENREC_EINVAL);
    assert_text_has(err.text, "stopped already");
    assert_non_null(tenrec_profiler_get_function_event(p, "noop"));
    tenrec_profiler_drop(p);
}

static void *stop_elsewhere(void *arg)
{
    tenrec_error err;

    return tenrec_profiler_stop(arg, &err) == TENREC_EINVAL ? NULL : arg;
}

TEST(profiler_stops_on_its_own_thread_only)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    pthread_t thread;
    void *wrong = p;

    assert_int_equal(pthread_create(&thread, NULL, stop_elsewhere, p), 0);
    pthread_join(thread, &wrong);
    assert_null(wrong);
    tenrec_profiler_drop(p); /* while it runs */
    call(0, "worker1", "noop", NULL, 0);
}

/* ---- many at once ------------------------------------------------------------------------------
 */

struct crowd {
    size_t rank;
    size_t n;
};

static void *profile_some(void *arg)
{
    struct crowd *crowd = arg;
    const char *to = crowd->rank == 2 ? "worker1" : "worker2";

    for (int i = 0; i < 20; i++) {
        struct tenrec_profiler *p = start(crowd->rank, TENREC_PROFILE_THREAD, 0);
        const struct tenrec_value args[] = { tenrec_value_text("worker0"),
                                             tenrec_value_text("marked") };
        call(crowd->rank, to, "through", args, 2);
        stop(p);
        crowd->n += tenrec_profiler_count(p);
        tenrec_profiler_drop(p);
    }
    return NULL;
}

TEST(profiler_keeps_sessions_apart_when_threads_record_at_once)
{
    struct crowd crowd[] = { { 0, 0 }, { 0, 0 }, { 1, 0 }, { 2, 0 } };
    struct tenrec_profiler *server = start(0, TENREC_PROFILE_SERVER, TENREC_PROFILE_LOCAL);
    pthread_t thread[4];

    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, profile_some, &crowd[i]), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    stop(server);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(crowd[i].n, 20 * 6);
    assert_int_equal(tenrec_profiler_count(server), 4 * 20 * 5);
    tenrec_profiler_drop(server);
}

TEST_MAIN(cluster_use(argv[1]), open_three, close_three)
