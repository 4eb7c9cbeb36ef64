/* SPDX-License-Identifier: Apache-2.0 */
/* profiler_call_test.c - what each kind of call leaves in a session, on the backend
 * named in argv. */
#include "../support/debug_info.h"
#include "../support/functions.h"
#include "../testing.h"
#include "profiler_functions.h"
#include "profiler_sessions.h"

#include <stdlib.h>
#include <tenrec/profiler.h>

static long debug_info(size_t rank, const char *key)
{
    const long n = debug_info_number(three.worker[rank], key);

    assert_true(n >= 0);
    return n;
}

static void both_sides(const char *fn, bool pooled)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    const struct tenrec_value args[] = { tenrec_value_int(1), tenrec_value_int(2) };
    const struct tenrec_event *mine, *theirs;
    char name[128];

    call(0, "worker1", fn, args, 2);
    stop(p);
    snprintf(name, sizeof name, "rpc_sync#%s(worker0 -> worker1)", fn);
    mine = one(p, name);
    snprintf(name, sizeof name, "rpc_sync#%s(worker0 -> worker1)#remote_op: %s", fn, fn);
    theirs = one(p, name);
    assert_int_equal(tenrec_profiler_count(p), 2);
    assert_int_equal(mine->kind, TENREC_EVENT_CALL);
    assert_int_equal(theirs->kind, TENREC_EVENT_SERVE);
    assert_string_equal(mine->worker_name, "worker0");
    assert_string_equal(theirs->worker_name, "worker1");
    assert_int_equal(theirs->worker_id, 1);
    assert_int_equal(mine->remote, 0);
    assert_int_equal(theirs->remote, 1);
    assert_int_equal(mine->caller_id, 0);
    assert_int_equal(theirs->caller_id, 0);
    assert_int_equal(mine->call_id, theirs->call_id);
    assert_true(within(theirs, mine));
    assert_true(mine->run_ns == mine->duration_ns);
    assert_true(mine->wire_ns > 0 && mine->wire_ns <= mine->duration_ns);
    assert_true(mine->sent_bytes > 0 && mine->sent_bytes <= theirs->received_bytes);
    assert_true(mine->received_bytes > 0);
    assert_int_equal(mine->received_bytes, theirs->sent_bytes);
    assert_true(mine->thread != 0 && theirs->thread != 0);
    if (pooled)
        assert_string_equal(theirs->thread_name, "tenrec-pool");
    tenrec_profiler_drop(p);
}

TEST(profiler_has_both_sides_when_a_call_runs_on_the_pool)
{
    both_sides("add", true);
}

TEST(profiler_has_both_sides_when_a_call_runs_inline)
{
    both_sides("add_inline", false);
}

static void later(const char *fn)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    const struct tenrec_value arg = tenrec_value_int(21);
    char name[128];

    call(0, "worker1", fn, &arg, 1);
    stop(p);
    snprintf(name, sizeof name, "rpc_sync#%s(worker0 -> worker1)#remote_op: %s", fn, fn);
    assert_true(one(p, name)->run_ns <= one(p, name)->duration_ns);
    tenrec_profiler_drop(p);
}

TEST(profiler_has_both_sides_when_a_function_answers_later)
{
    later("later");
    later("later_inline");
}

TEST(profiler_counts_the_bytes_of_tensors)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    const struct tenrec_value n = tenrec_value_int(1000);

    call(0, "worker1", "range", &n, 1);
    stop(p);
    assert_true(one(p, "rpc_sync#range(worker0 -> worker1)")->received_bytes > 4000);
    tenrec_profiler_drop(p);
}

TEST(profiler_tells_its_name_when_a_call_is_asynchronous)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    const struct tenrec_event *e;
    struct tenrec_future *f;
    tenrec_error err;

    functions_close_gate();
    assert_status(
        tenrec_rpc_async(three.worker[0], "worker2", "wait_gate", NULL, 0, NULL, &f, &err), &err);
    assert_becomes(functions_waiting() == 1);
    functions_open_gate();
    assert_status(tenrec_future_wait(f, TENREC_TIMEOUT_NONE, &err), &err);
    tenrec_future_drop(f);
    stop(p);
    e = one(p, "rpc_async#wait_gate(worker0 -> worker2)");
    assert_true(e->run_ns < e->duration_ns); /* its thread went on */
    assert_true(within(one(p, "rpc_async#wait_gate(worker0 -> worker2)#remote_op: wait_gate"), e));
    tenrec_profiler_drop(p);
}

TEST(profiler_has_one_side_of_a_one_way_call)
{
    const struct tenrec_call_options o = { .size = sizeof o, .flags = TENREC_ONE_WAY };
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    int before = functions_counted();
    tenrec_error err;

    assert_status(tenrec_rpc_sync(three.worker[0], "worker1", "count", NULL, 0, &o, NULL, &err),
                  &err);
    assert_becomes(functions_counted() == before + 1);
    stop(p);
    one(p, "rpc_one_way#count(worker0 -> worker1)");
    assert_int_equal(tenrec_profiler_count(p), 1);
    tenrec_profiler_drop(p);
}

TEST(profiler_has_the_callers_side_when_the_callee_may_not_answer)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    tenrec_error err;

    assert_int_equal(
        tenrec_rpc_sync(three.worker[0], "worker1", "nobody", NULL, 0, NULL, NULL, &err),
        TENREC_ENOFUNCTION);
    stop(p);
    assert_int_equal(one(p, "rpc_sync#nobody(worker0 -> worker1)")->status, TENREC_ENOFUNCTION);
    assert_int_equal(tenrec_profiler_count(p), 1);
    tenrec_profiler_drop(p);
}

static void failing(const char *fn)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    const struct tenrec_value text = tenrec_value_text("ouch");
    char name[128];
    tenrec_error err;

    assert_int_equal(tenrec_rpc_sync(three.worker[0], "worker1", fn, &text, 1, NULL, NULL, &err),
                     TENREC_EINVAL);
    assert_text_has(err.text, "ouch");
    stop(p);
    snprintf(name, sizeof name, "rpc_sync#%s(worker0 -> worker1)", fn);
    assert_int_equal(one(p, name)->status, TENREC_EINVAL);
    snprintf(name, sizeof name, "rpc_sync#%s(worker0 -> worker1)#remote_op: %s", fn, fn);
    assert_int_equal(one(p, name)->status, TENREC_EINVAL);
    tenrec_profiler_drop(p);
}

TEST(profiler_has_both_sides_when_the_function_fails)
{
    failing("fail");
    failing("fail_inline");
}

TEST(profiler_has_the_callers_side_when_the_call_is_late)
{
    const struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = 20 };
    const long late = debug_info(0, "calls.late_replies");
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    tenrec_error err;

    functions_close_gate();
    assert_int_equal(
        tenrec_rpc_sync(three.worker[0], "worker1", "wait_long", NULL, 0, &o, NULL, &err),
        TENREC_ETIMEDOUT);
    stop(p);
    functions_open_gate();
    assert_becomes(debug_info(0, "calls.late_replies") == late + 1);
    assert_int_equal(one(p, "rpc_sync#wait_long(worker0 -> worker1)")->status, TENREC_ETIMEDOUT);
    assert_int_equal(tenrec_profiler_count(p), 1);
    tenrec_profiler_drop(p);
}

/* After its value the answer has spans without a waiter. */
TEST(profiler_releases_references_when_an_answer_is_late)
{
    const struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = 20 };
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    const long late = debug_info(0, "calls.late_replies");
    tenrec_error err;

    functions_close_gate();
    assert_int_equal(tenrec_rpc_sync(three.worker[0], "worker1", "give", NULL, 0, &o, NULL, &err),
                     TENREC_ETIMEDOUT);
    functions_open_gate();
    assert_becomes(debug_info(0, "calls.late_replies") == late + 1);
    assert_becomes(debug_info(1, "rref.num_owner_rrefs") == 0);
    tenrec_profiler_drop(p);
}

TEST(profiler_has_the_call_of_a_worker_to_itself)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);

    call(0, "worker0", "noop", NULL, 0);
    stop(p);
    one(p, "rpc_sync#noop(worker0 -> worker0)#remote_op: noop");
    tenrec_profiler_drop(p);
}

TEST(profiler_has_creations_and_fetches_of_references)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    const struct tenrec_value n = tenrec_value_int(1000);
    const struct tenrec_event *made, *fetched;
    struct tenrec_value *v;
    struct tenrec_rref *r;
    struct tenrec_future *f;
    tenrec_error err;

    assert_status(tenrec_remote(three.worker[0], "worker1", "range", &n, 1, NULL, &r, &err), &err);
    assert_status(tenrec_rref_to_here(r, NULL, &v, &err), &err);
    assert_status(tenrec_rref_future(r, &f, &err), &err);
    assert_status(tenrec_future_wait(f, TENREC_TIMEOUT_NONE, &err), &err);
    stop(p);
    made = one(p, "remote#range(worker0 -> worker1)");
    fetched = one(p, "to_here#(worker0 -> worker1)");
    assert_int_equal(one(p, "remote#range(worker0 -> worker1)#remote_op: range")->call_id,
                     made->call_id);
    assert_true(made->wire_ns > 0);
    assert_true(fetched->received_bytes > 4000);
    assert_true(fetched->run_ns == fetched->duration_ns);
    assert_int_equal(tenrec_profiler_count(p), 3);
    assert_int_equal(tenrec_profiler_dropped(p), 0);
    tenrec_profiler_drop(p);
    tenrec_value_drop(v);
    tenrec_future_drop(f);
    tenrec_rref_drop(r);
}

TEST(profiler_has_calls_on_references)
{
    struct tenrec_profiler *p;
    const struct tenrec_value two = tenrec_value_int(2), three_more = tenrec_value_int(3);
    struct tenrec_value *sum;
    struct tenrec_rref *r, *again;
    struct tenrec_future *f;
    tenrec_error err;

    assert_status(tenrec_rref_new(three.worker[0], &two, &r, &err), &err);
    p = start(0, TENREC_PROFILE_THREAD, 0);
    assert_status(tenrec_rref_rpc_sync(r, "add", &three_more, 1, NULL, &sum, &err), &err);
    assert_int_equal(sum->u.integer, 5);
    assert_status(tenrec_rref_remote(r, "add", &three_more, 1, NULL, &again, &err), &err);
    tenrec_value_drop(sum);
    assert_status(tenrec_rref_to_here(again, NULL, &sum, &err), &err);
    assert_int_equal(sum->u.integer, 5);
    /* The value is here before the answer is that it was made. */
    assert_status(tenrec_rref_future(again, &f, &err), &err);
    assert_status(tenrec_future_wait(f, TENREC_TIMEOUT_NONE, &err), &err);
    tenrec_future_drop(f);
    stop(p);
    one(p, "rpc_sync#add(worker0 -> worker0)#remote_op: add");
    one(p, "remote#add(worker0 -> worker0)");
    tenrec_profiler_drop(p);
    tenrec_value_drop(sum);
    tenrec_rref_drop(again);
    tenrec_rref_drop(r);
}

TEST_MAIN(cluster_use(argv[1]), open_three, close_three)
