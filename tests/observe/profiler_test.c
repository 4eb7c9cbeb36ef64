/* profiler_test.c - sessions over three workers, on the backend named in argv. */
#include "../rpc/functions.h"
#include "../support/cluster.h"
#include "../testing.h"
#include "profiler_functions.h"

#include <pthread.h>
#include <stdlib.h>
#include <tenrec/profiler.h>

static struct cluster three;

static int open_three(void **state)
{
    static const char *const extra[] = { "worker.num_worker_threads=2", NULL };

    (void)state;
    cluster_open(&three, 3, extra, profiler_functions_register);
    return 0;
}

static int close_three(void **state)
{
    (void)state;
    functions_open_gate();
    cluster_close(&three, TENREC_GRACEFUL);
    return 0;
}

static struct tenrec_profiler *start(size_t rank, enum tenrec_profiler_scope scope, uint32_t flags)
{
    const struct tenrec_profiler_options o = { .size = sizeof o, .scope = scope, .flags = flags };
    struct tenrec_profiler *p = NULL;
    tenrec_error err;

    assert_status(tenrec_profiler_start(scope == TENREC_PROFILE_SERVER ? NULL : three.worker[rank],
                                        &o, &p, &err),
                  &err);
    return p;
}

static void stop(struct tenrec_profiler *p)
{
    tenrec_error err;

    assert_status(tenrec_profiler_stop(p, &err), &err);
}

static void call(size_t from, const char *to, const char *fn, const struct tenrec_value *args,
                 size_t n)
{
    tenrec_error err;

    assert_status(tenrec_rpc_sync(three.worker[from], to, fn, args, n, NULL, NULL, &err), &err);
}

/* The event of exactly this name, which there must be once. */
static const struct tenrec_event *one(const struct tenrec_profiler *p, const char *name)
{
    const struct tenrec_event *found = NULL, *e;
    size_t times = 0;

    for (size_t i = 0; (e = tenrec_profiler_event(p, i)); i++) {
        if (strcmp(e->name, name) == 0) {
            found = e;
            times++;
        }
    }
    if (times != 1) {
        for (size_t i = 0; (e = tenrec_profiler_event(p, i)); i++)
            print_message("# %s\n", e->name);
        fail_msg("'%s' is there %zu times", name, times);
    }
    return found;
}

static bool within(const struct tenrec_event *inner, const struct tenrec_event *outer)
{
    return inner->start_ns >= outer->start_ns &&
           inner->start_ns + inner->duration_ns <= outer->start_ns + outer->duration_ns;
}

/* ---- what a call leaves --------------------------------------------------------- */

struct wanted {
    const char *key;
    long value;
};

static void read_key(void *arg, const char *key, const char *value)
{
    struct wanted *w = arg;

    if (strcmp(key, w->key) == 0)
        w->value = strtol(value, NULL, 10);
}

static long debug_info(size_t rank, const char *key)
{
    struct wanted w = { key, -1 };

    tenrec_worker_debug_info(three.worker[rank], read_key, &w);
    assert_true(w.value >= 0);
    return w.value;
}

static void both_sides(const char *fn, bool pooled)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    const struct tenrec_value args[] = { tenrec_int(1), tenrec_int(2) };
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

static void profiler_has_both_sides_when_a_call_runs_on_the_pool(void **state)
{
    (void)state;
    both_sides("add", true);
}

static void profiler_has_both_sides_when_a_call_runs_inline(void **state)
{
    (void)state;
    both_sides("add_inline", false);
}

static void later(const char *fn)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    const struct tenrec_value arg = tenrec_int(21);
    char name[128];

    call(0, "worker1", fn, &arg, 1);
    stop(p);
    snprintf(name, sizeof name, "rpc_sync#%s(worker0 -> worker1)#remote_op: %s", fn, fn);
    assert_true(one(p, name)->run_ns <= one(p, name)->duration_ns);
    tenrec_profiler_drop(p);
}

static void profiler_has_both_sides_when_a_function_answers_later(void **state)
{
    (void)state;
    later("later");
    later("later_inline");
}

static void profiler_counts_the_bytes_of_tensors(void **state)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    const struct tenrec_value n = tenrec_int(1000);

    (void)state;
    call(0, "worker1", "range", &n, 1);
    stop(p);
    assert_true(one(p, "rpc_sync#range(worker0 -> worker1)")->received_bytes > 4000);
    tenrec_profiler_drop(p);
}

static void profiler_tells_its_name_when_a_call_is_asynchronous(void **state)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    const struct tenrec_event *e;
    struct tenrec_future *f;
    tenrec_error err;

    (void)state;
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

static void profiler_has_one_side_when_a_call_is_one_way(void **state)
{
    const struct tenrec_call_options o = { .size = sizeof o, .flags = TENREC_ONE_WAY };
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    int before = functions_counted();
    tenrec_error err;

    (void)state;
    assert_status(tenrec_rpc_sync(three.worker[0], "worker1", "count", NULL, 0, &o, NULL, &err),
                  &err);
    assert_becomes(functions_counted() == before + 1);
    stop(p);
    one(p, "rpc_one_way#count(worker0 -> worker1)");
    assert_int_equal(tenrec_profiler_count(p), 1);
    tenrec_profiler_drop(p);
}

static void profiler_has_the_callers_side_when_nobody_may_answer(void **state)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    tenrec_error err;

    (void)state;
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
    const struct tenrec_value text = tenrec_text("ouch");
    char name[128];
    tenrec_error err;

    assert_int_equal(tenrec_rpc_sync(three.worker[0], "worker1", fn, &text, 1, NULL, NULL, &err),
                     TENREC_EREMOTE);
    assert_text_has(err.text, "ouch");
    stop(p);
    snprintf(name, sizeof name, "rpc_sync#%s(worker0 -> worker1)", fn);
    assert_int_equal(one(p, name)->status, TENREC_EREMOTE);
    snprintf(name, sizeof name, "rpc_sync#%s(worker0 -> worker1)#remote_op: %s", fn, fn);
    assert_int_equal(one(p, name)->status, TENREC_EINVAL);
    tenrec_profiler_drop(p);
}

static void profiler_has_both_sides_when_the_function_fails(void **state)
{
    (void)state;
    failing("fail");
    failing("fail_inline");
}

static void profiler_has_the_callers_side_when_the_call_is_late(void **state)
{
    const struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = 20 };
    const long late = debug_info(0, "calls.late_replies");
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    tenrec_error err;

    (void)state;
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

/* Behind its value the answer has spans that nobody waits for any more. */
static void profiler_lets_go_of_references_when_an_answer_is_late(void **state)
{
    const struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = 20 };
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    const long late = debug_info(0, "calls.late_replies");
    tenrec_error err;

    (void)state;
    functions_close_gate();
    assert_int_equal(tenrec_rpc_sync(three.worker[0], "worker1", "give", NULL, 0, &o, NULL, &err),
                     TENREC_ETIMEDOUT);
    functions_open_gate();
    assert_becomes(debug_info(0, "calls.late_replies") == late + 1);
    assert_becomes(debug_info(1, "rref.num_owner_rrefs") == 0);
    tenrec_profiler_drop(p);
}

static void profiler_has_the_call_when_it_goes_to_itself(void **state)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);

    (void)state;
    call(0, "worker0", "noop", NULL, 0);
    stop(p);
    one(p, "rpc_sync#noop(worker0 -> worker0)#remote_op: noop");
    tenrec_profiler_drop(p);
}

static void profiler_has_creations_and_fetches_of_references(void **state)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    const struct tenrec_value n = tenrec_int(1000);
    const struct tenrec_event *made, *fetched;
    struct tenrec_value *v;
    struct tenrec_rref *r;
    struct tenrec_future *f;
    tenrec_error err;

    (void)state;
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

static void profiler_has_calls_on_references(void **state)
{
    struct tenrec_profiler *p;
    const struct tenrec_value two = tenrec_int(2), three_more = tenrec_int(3);
    struct tenrec_value *sum;
    struct tenrec_rref *r, *again;
    struct tenrec_future *f;
    tenrec_error err;

    (void)state;
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

/* ---- what follows from a call ----------------------------------------------------- */

static void profiler_has_the_whole_way_when_calls_are_nested(void **state)
{
    const struct tenrec_value args[] = { tenrec_text("worker2"), tenrec_text("marked") };
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    const struct tenrec_event *e;

    (void)state;
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
    assert_int_equal(one(p, B "#remote_op: step")->kind, TENREC_EVENT_RECORD);
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

static void profiler_follows_a_call_into_callbacks_when_they_say_so(void **state)
{
    const struct tenrec_value args[] = { tenrec_text("worker2"), tenrec_text("noop") };
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);

    (void)state;
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

static void profiler_has_each_call_once_when_they_go_to_and_fro(void **state)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    const struct tenrec_value depth = tenrec_int(3);

    (void)state;
    call(0, "worker1", "nest", &depth, 1);
    stop(p);
    assert_int_equal(tenrec_profiler_count(p), 4 * 2);
    tenrec_profiler_drop(p);
}

static void profiler_has_the_calls_of_its_thread_through_any_worker(void **state)
{
    struct tenrec_profiler *p = start(1, TENREC_PROFILE_THREAD, 0);

    (void)state;
    call(0, "worker1", "noop_inline", NULL, 0);
    call(2, "worker1", "noop_inline", NULL, 0);
    stop(p);
    assert_int_equal(tenrec_profiler_count(p), 4);
    tenrec_profiler_drop(p);
}

static void profiler_bounds_what_a_callee_keeps(void **state)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    const struct tenrec_value n = tenrec_int(5000);

    (void)state;
    call(0, "worker1", "many", &n, 1);
    stop(p);
    one(p, "rpc_sync#many(worker0 -> worker1)#remote_op: many");
    assert_true(tenrec_profiler_count(p) > 1000);
    assert_int_equal(tenrec_profiler_count(p) + tenrec_profiler_dropped(p), 5002);
    tenrec_profiler_drop(p);
}

static void profiler_counts_what_it_cannot_keep(void **state)
{
    const struct tenrec_profiler_options o = { .size = sizeof o, .max_events = 3 };
    struct tenrec_profiler *p = NULL;
    tenrec_error err;

    (void)state;
    assert_status(tenrec_profiler_start(three.worker[0], &o, &p, &err), &err);
    for (int i = 0; i < 5; i++)
        call(0, "worker1", "noop", NULL, 0);
    stop(p);
    assert_int_equal(tenrec_profiler_count(p), 3);
    assert_int_equal(tenrec_profiler_dropped(p), 7);
    tenrec_profiler_drop(p);
}

/* ---- scopes --------------------------------------------------------------------------- */

static void profiler_asks_nobody_when_it_is_local(void **state)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, TENREC_PROFILE_LOCAL);

    (void)state;
    call(0, "worker1", "marked", NULL, 0);
    stop(p);
    assert_int_equal(tenrec_profiler_count(p), 1);
    assert_true(one(p, "rpc_sync#marked(worker0 -> worker1)")->wire_ns > 0);
    assert_int_equal(tenrec_profiler_dropped(p), 0);
    tenrec_profiler_drop(p);
}

static void profiler_has_both_roles_when_it_is_of_a_worker(void **state)
{
    struct tenrec_profiler *p = start(1, TENREC_PROFILE_WORKER, TENREC_PROFILE_LOCAL);
    const struct tenrec_value args[] = { tenrec_text("worker2"), tenrec_text("noop") };
    const struct tenrec_event *e;

    (void)state;
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

static void profiler_has_all_that_is_served_when_it_is_of_the_server(void **state)
{
    struct tenrec_profiler *outer = start(0, TENREC_PROFILE_SERVER, 0), *inner;
    const struct tenrec_value args[] = { tenrec_text("worker2"), tenrec_text("noop_inline") };

    (void)state;
    call(0, "worker1", "marked", NULL, 0);
    inner = start(0, TENREC_PROFILE_SERVER, TENREC_PROFILE_LOCAL);
    call(0, "worker1", "through", args, 2);
    stop(inner);
    call(0, "worker1", "add_inline", (const struct tenrec_value[]){ tenrec_int(1), tenrec_int(1) },
         2);
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

static void profiler_fills_both_when_sessions_of_a_thread_are_nested(void **state)
{
    struct tenrec_profiler *outer = start(0, TENREC_PROFILE_THREAD, 0), *inner;
    tenrec_error err;

    (void)state;
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

static void profiler_has_records_of_the_calling_thread(void **state)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    struct tenrec_record *r = tenrec_record_begin(three.worker[0], "epoch");

    (void)state;
    call(0, "worker1", "noop", NULL, 0);
    tenrec_record_end(r);
    stop(p);
    assert_true(within(one(p, "rpc_sync#noop(worker0 -> worker1)"), one(p, "epoch")));
    tenrec_profiler_drop(p);
}

static void profiler_ends_a_record_when_its_future_is_done(void **state)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    struct tenrec_record *r = tenrec_record_begin(three.worker[0], "fetch");
    struct tenrec_future *f;
    tenrec_error err;

    (void)state;
    assert_status(tenrec_future_new(&f, &err), &err);
    assert_status(tenrec_record_end_with(r, f, &err), &err);
    assert_status(tenrec_future_set_value(f, NULL, &err), &err);
    stop(p);
    assert_true(one(p, "fetch")->run_ns <= one(p, "fetch")->duration_ns);
    tenrec_future_drop(f);
    tenrec_profiler_drop(p);
}

static void profiler_takes_no_record_when_nobody_records(void **state)
{
    (void)state;
    assert_null(tenrec_record_begin(three.worker[0], "idle"));
    tenrec_record_end(NULL);
}

/* ---- misuse --------------------------------------------------------------------------------- */

static void profiler_refuses_what_it_does_not_know(void **state)
{
    struct tenrec_profiler_options o = { .size = sizeof o, .scope = 3 };
    struct tenrec_profiler *p = NULL;
    tenrec_error err;

    (void)state;
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

static void profiler_has_no_events_before_it_is_stopped(void **state)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    tenrec_error err;

    (void)state;
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

static void profiler_stops_on_its_own_thread_only(void **state)
{
    struct tenrec_profiler *p = start(0, TENREC_PROFILE_THREAD, 0);
    pthread_t thread;
    void *wrong = p;

    (void)state;
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
        const struct tenrec_value args[] = { tenrec_text("worker0"), tenrec_text("marked") };
        call(crowd->rank, to, "through", args, 2);
        stop(p);
        crowd->n += tenrec_profiler_count(p);
        tenrec_profiler_drop(p);
    }
    return NULL;
}

static void profiler_keeps_sessions_apart_when_threads_record_at_once(void **state)
{
    struct crowd crowd[] = { { 0, 0 }, { 0, 0 }, { 1, 0 }, { 2, 0 } };
    struct tenrec_profiler *server = start(0, TENREC_PROFILE_SERVER, TENREC_PROFILE_LOCAL);
    pthread_t thread[4];

    (void)state;
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiler_has_both_sides_when_a_call_runs_on_the_pool),
        cmocka_unit_test(profiler_has_both_sides_when_a_call_runs_inline),
        cmocka_unit_test(profiler_has_both_sides_when_a_function_answers_later),
        cmocka_unit_test(profiler_counts_the_bytes_of_tensors),
        cmocka_unit_test(profiler_tells_its_name_when_a_call_is_asynchronous),
        cmocka_unit_test(profiler_has_one_side_when_a_call_is_one_way),
        cmocka_unit_test(profiler_has_the_callers_side_when_nobody_may_answer),
        cmocka_unit_test(profiler_has_both_sides_when_the_function_fails),
        cmocka_unit_test(profiler_has_the_callers_side_when_the_call_is_late),
        cmocka_unit_test(profiler_lets_go_of_references_when_an_answer_is_late),
        cmocka_unit_test(profiler_has_the_call_when_it_goes_to_itself),
        cmocka_unit_test(profiler_has_creations_and_fetches_of_references),
        cmocka_unit_test(profiler_has_calls_on_references),
        cmocka_unit_test(profiler_has_the_whole_way_when_calls_are_nested),
        cmocka_unit_test(profiler_follows_a_call_into_callbacks_when_they_say_so),
        cmocka_unit_test(profiler_has_each_call_once_when_they_go_to_and_fro),
        cmocka_unit_test(profiler_has_the_calls_of_its_thread_through_any_worker),
        cmocka_unit_test(profiler_bounds_what_a_callee_keeps),
        cmocka_unit_test(profiler_counts_what_it_cannot_keep),
        cmocka_unit_test(profiler_asks_nobody_when_it_is_local),
        cmocka_unit_test(profiler_has_both_roles_when_it_is_of_a_worker),
        cmocka_unit_test(profiler_has_all_that_is_served_when_it_is_of_the_server),
        cmocka_unit_test(profiler_fills_both_when_sessions_of_a_thread_are_nested),
        cmocka_unit_test(profiler_has_records_of_the_calling_thread),
        cmocka_unit_test(profiler_ends_a_record_when_its_future_is_done),
        cmocka_unit_test(profiler_takes_no_record_when_nobody_records),
        cmocka_unit_test(profiler_refuses_what_it_does_not_know),
        cmocka_unit_test(profiler_has_no_events_before_it_is_stopped),
        cmocka_unit_test(profiler_stops_on_its_own_thread_only),
        cmocka_unit_test(profiler_keeps_sessions_apart_when_threads_record_at_once),
    };

    if (argc > 1)
        cluster_use(argv[1]);
    return cmocka_run_group_tests_name("profiler", tests, open_three, close_three);
}
