/* SPDX-License-Identifier: Apache-2.0 */
/* worker_future_test.c - asynchronous calls, on the backend
 * named in argv. */
#include "pair.h"

#include <poll.h>
#include <stdatomic.h>

static atomic_int warnings;

TEST(worker_runs_a_one_way_call_and_answers_nothing)
{
    struct tenrec_call_options o = { .size = sizeof o, .flags = TENREC_ONE_WAY };
    const int before = functions_counted();

    for (int i = 0; i < 10; i++)
        assert_int_equal(
            tenrec_rpc_sync(two.worker[0], "worker1", "count", NULL, 0, &o, NULL, NULL), TENREC_OK);
    assert_becomes(functions_counted() == before + 10);
}

static atomic_int nested_ok;

static void count_success(struct tenrec_future *f, void *arg)
{
    (void)arg;
    if (tenrec_future_wait(f, 0, NULL) == TENREC_OK)
        atomic_fetch_add(&nested_ok, 1);
}

/* Makes a call, and has its end counted; for callbacks. */
static void call_count(const struct tenrec_call_options *o, tenrec_future_fn *then)
{
    struct tenrec_future *f = NULL;

    if (tenrec_rpc_async(two.worker[0], "worker1", "count", NULL, 0, o, &f, NULL) != TENREC_OK)
        return;
    tenrec_future_add_callback(f, then, NULL, NULL);
    tenrec_future_drop(f);
}

static void call_again(struct tenrec_future *f, void *arg)
{
    (void)f, (void)arg;
    call_count(NULL, count_success);
}

enum { ONE_WAY_CALLS = 200 }; /* more than one bundle of messages completes at once */

static void call_one_way_often(struct tenrec_future *f, void *arg)
{
    const struct tenrec_call_options o = { .size = sizeof o, .flags = TENREC_ONE_WAY };

    (void)f, (void)arg;
    for (int i = 0; i < ONE_WAY_CALLS; i++)
        call_count(&o, call_again);
}

/* The callback of a one-way call runs as its message is written, with others of one batch. */
TEST(worker_sends_each_call_once_when_the_callback_of_a_one_way_call_calls)
{
    const int before = functions_counted();

    atomic_store(&nested_ok, 0);
    call_count(NULL, call_one_way_often);
    assert_becomes(atomic_load(&nested_ok) == ONE_WAY_CALLS);
    assert_becomes(functions_counted() == before + 1 + 2 * ONE_WAY_CALLS);
}

TEST(worker_tells_the_callee_when_a_call_is_canceled)
{
    struct tenrec_future *f = NULL;
    tenrec_error err;

    f = functions_hold(two.worker[0], "worker1");
    tenrec_future_cancel(f);
    assert_int_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), TENREC_ECANCELED);
    assert_becomes(functions_waiting() == 0); /* the gate is still closed */
    functions_open_gate();
    tenrec_future_drop(f);
}

TEST(worker_collects_calls_in_a_scope)
{
    struct tenrec_value args[] = { tenrec_value_int(1), tenrec_value_int(1) },
                        bad = tenrec_value_text("no");
    struct tenrec_future *f = NULL;
    tenrec_error err;

    assert_int_equal(tenrec_scope_begin(&err), TENREC_OK);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(tenrec_rpc_async(two.worker[0], "worker1", "add", args, 2, NULL, &f, &err),
                         TENREC_OK);
        tenrec_future_drop(f);
    }
    assert_int_equal(tenrec_scope_end(CLUSTER_LONG_MS, &err), TENREC_OK);
    assert_int_equal(tenrec_scope_begin(&err), TENREC_OK);
    assert_int_equal(tenrec_rpc_async(two.worker[0], "worker1", "fail", &bad, 1, NULL, &f, &err),
                     TENREC_OK);
    tenrec_future_drop(f);
    assert_int_equal(tenrec_scope_end(CLUSTER_LONG_MS, &err), TENREC_EINVAL);
}

static void call_that_fails(struct tenrec_future *f, void *arg)
{
    struct tenrec_value why = tenrec_value_text("of another's");

    (void)f;
    assert_int_equal(tenrec_rpc_async(two.worker[0], "worker1", "fail", &why, 1, NULL, arg, NULL),
                     TENREC_OK);
}

static void count_warning(void *arg, enum tenrec_log_level level, const char *part,
                          const char *text)
{
    (void)part;
    if (level == TENREC_LOG_WARN && strstr(text, arg) && strstr(text, "did not end its scope"))
        atomic_fetch_add(&warnings, 1);
}

/* Its thread serves others afterwards. */
TEST(worker_closes_a_scope_that_a_function_left_open)
{
    static const char *const fn[] = { "forget_scope", "forget_scope_inline" };

    for (size_t i = 0; i < 2; i++) {
        const int before = functions_counted();

        atomic_store(&warnings, 0);
        tenrec_log_set_callback(count_warning, (void *)(uintptr_t)fn[i]);
        tenrec_value_drop(call("worker1", fn[i], NULL, 0));
        tenrec_log_set_callback(NULL, NULL);
        assert_int_equal(atomic_load(&warnings), 2);
        assert_becomes(functions_counted() == before + 2);
    }
}

/* It may run on any thread that waits: its calls are not that thread's. */
TEST(worker_leaves_calls_of_a_callback_out_of_the_scope)
{
    struct tenrec_future *own = NULL, *f = NULL;

    assert_int_equal(tenrec_future_new(&own, NULL), TENREC_OK);
    assert_int_equal(tenrec_future_add_callback(own, call_that_fails, &f, NULL), TENREC_OK);
    assert_int_equal(tenrec_scope_begin(NULL), TENREC_OK);
    assert_int_equal(tenrec_future_set_value(own, NULL, NULL), TENREC_OK);
    assert_int_equal(tenrec_scope_end(CLUSTER_LONG_MS, NULL), TENREC_OK);
    assert_int_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, NULL), TENREC_EINVAL);
    tenrec_future_drop(f);
    tenrec_future_drop(own);
}

/* Each callback makes the next call, from the thread that completes. */
struct chain_state {
    atomic_int left;
    struct tenrec_future *done;
};

static void next_call(struct tenrec_future *f, void *arg)
{
    struct chain_state *s = arg;
    struct tenrec_future *next = NULL;

    if (tenrec_future_error(f) || atomic_fetch_sub(&s->left, 1) == 1) {
        struct tenrec_value v = tenrec_value_bool(!tenrec_future_error(f));
        tenrec_future_set_value(s->done, &v, NULL);
    } else if (tenrec_rpc_async(two.worker[0], "worker1", "noop_inline", NULL, 0, NULL, &next,
                                NULL) == TENREC_OK) {
        tenrec_future_add_callback(next, next_call, s, NULL);
    }
    tenrec_future_drop(f);
}

TEST(worker_chains_calls_from_callbacks)
{
    struct chain_state s = { .left = 500 };
    struct tenrec_future *f = NULL;

    assert_int_equal(tenrec_future_new(&s.done, NULL), TENREC_OK);
    assert_int_equal(
        tenrec_rpc_async(two.worker[0], "worker1", "noop_inline", NULL, 0, NULL, &f, NULL),
        TENREC_OK);
    assert_int_equal(tenrec_future_add_callback(f, next_call, &s, NULL), TENREC_OK);
    assert_int_equal(tenrec_future_wait(s.done, CLUSTER_LONG_MS, NULL), TENREC_OK);
    assert_true(tenrec_future_value(s.done)->u.boolean);
    tenrec_future_drop(s.done);
}

enum { CHAIN = 100000 };

static tenrec_status add_one(struct tenrec_future *f, void *arg, struct tenrec_value *ret,
                             tenrec_error *err)
{
    const struct tenrec_value *v = tenrec_future_value(f);

    (void)arg, (void)err;
    *ret = tenrec_value_int(v && v->type == TENREC_VALUE_INT ? v->u.integer + 1 : 1);
    return TENREC_OK;
}

/* Makes a call that waits at the gate, and a long chain behind it; returns the end of the chain. */
static struct tenrec_future *chain_behind_a_call(struct tenrec_worker *w)
{
    struct tenrec_future *last = functions_hold(w, "worker1"), *next = NULL;

    for (int i = 0; i < CHAIN; i++) {
        assert_int_equal(tenrec_future_then(last, add_one, NULL, &next, NULL), TENREC_OK);
        tenrec_future_drop(last);
        last = next;
    }
    return last;
}

TEST(worker_completes_a_long_chain_behind_a_call)
{
    struct tenrec_future *last = chain_behind_a_call(two.worker[0]);

    functions_open_gate();
    assert_int_equal(tenrec_future_wait(last, CLUSTER_LONG_MS, NULL), TENREC_OK);
    assert_int_equal(tenrec_future_value(last)->u.integer, CHAIN);
    tenrec_future_drop(last);
}

TEST(worker_completes_a_long_chain_in_the_users_loop)
{
    struct pollfd p = { .events = POLLIN };
    struct tenrec_future *last;
    struct cluster c;

    cluster_open(&c, 2, NULL, functions_register);
    assert_int_equal(tenrec_worker_get_fd(c.worker[0], &p.fd, NULL), TENREC_OK);
    last = chain_behind_a_call(c.worker[0]);
    functions_open_gate();
    assert_int_equal(poll(&p, 1, CLUSTER_LONG_MS), 1);
    assert_int_equal(tenrec_worker_dispatch(c.worker[0]), 1);
    assert_true(tenrec_future_done(last));
    assert_int_equal(tenrec_future_value(last)->u.integer, CHAIN);
    tenrec_future_drop(last);
    cluster_close(&c, TENREC_GRACEFUL);
}

static void callback_counts(struct tenrec_future *f, void *arg)
{
    (void)f;
    ++*(int *)arg; /* on the thread that dispatches: no atomic needed */
}

TEST(worker_runs_callbacks_in_the_users_loop_when_asked)
{
    struct tenrec_future *f = NULL;
    struct pollfd p = { .events = POLLIN };
    struct cluster c;
    int n = 0;

    cluster_open(&c, 2, NULL, functions_register);
    assert_int_equal(tenrec_worker_get_fd(c.worker[0], &p.fd, NULL), TENREC_OK);
    assert_int_equal(tenrec_worker_dispatch(c.worker[0]), 0);
    functions_close_gate(); /* else it might be done before the callback is set */
    assert_int_equal(tenrec_rpc_async(c.worker[0], "worker1", "wait_gate", NULL, 0, NULL, &f, NULL),
                     TENREC_OK);
    assert_int_equal(tenrec_future_add_callback(f, callback_counts, &n, NULL), TENREC_OK);
    functions_open_gate();
    assert_int_equal(poll(&p, 1, CLUSTER_LONG_MS), 1);
    assert_int_equal(n, 0);
    assert_int_equal(tenrec_worker_dispatch(c.worker[0]), 1);
    assert_int_equal(n, 1);
    assert_int_equal(poll(&p, 1, 0), 0);
    tenrec_future_drop(f);
    cluster_close(&c, TENREC_GRACEFUL);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cluster_use(argv[1]);
    return testing_run(open_two, close_two);
}
