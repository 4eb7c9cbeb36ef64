/* SPDX-License-Identifier: Apache-2.0 */
/* life_test.c - starting, leaving and starting again, on the backend named in argv. */
#include "../support/cluster.h"
#include "../support/functions.h"
#include "../support/together.h"
#include "../testing.h"
#include "core/backend/backend.h"
#include "rpc/call/calls.h"
#include "rpc/future/pool.h"
#include "rpc/worker/worker.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

TEST(life_works_again_when_workers_are_made_anew)
{
    struct cluster c;

    for (int i = 0; i < 3; i++) {
        cluster_open(&c, 3, NULL, functions_register);
        assert_int_equal(tenrec_rpc_sync(c.worker[2], "worker0", "noop", NULL, 0, NULL, NULL, NULL),
                         TENREC_OK);
        cluster_close(&c, TENREC_GRACEFUL);
    }
}

TEST(life_refuses_calls_when_not_running)
{
    struct tenrec_config *config = NULL;
    struct tenrec_worker *w = NULL;
    struct tenrec_worker_info info;
    tenrec_error err;

    assert_int_equal(
        tenrec_config_parse("backend: inproc\nbackends: { inproc: { plugin: inproc } }", NULL,
                            &config, &err),
        TENREC_OK);
    assert_int_equal(tenrec_worker_new(config, &w, &err), TENREC_OK);
    assert_int_equal(tenrec_rpc_sync(w, "worker0", "noop", NULL, 0, NULL, NULL, &err),
                     TENREC_ESHUTDOWN);
    assert_int_equal(tenrec_shutdown(w, TENREC_GRACEFUL, 10, &err), TENREC_ESHUTDOWN);
    assert_int_equal(tenrec_worker_barrier(w, NULL, 0, 10, &err), TENREC_ESHUTDOWN);
    assert_int_equal(tenrec_get_worker_info(w, NULL, &info, &err), TENREC_ESHUTDOWN);
    assert_false(tenrec_worker_running(w));
    tenrec_worker_drop(w);
    tenrec_worker_drop(NULL);
    tenrec_config_drop(config);
}

TEST(life_fails_pending_calls_when_shut_down_at_once)
{
    struct tenrec_future *f = NULL;
    struct cluster c;
    tenrec_error err;

    cluster_open(&c, 2, NULL, functions_register);
    f = functions_hold(c.worker[0], "worker1");
    assert_int_equal(tenrec_shutdown(c.worker[0], TENREC_IMMEDIATE, CLUSTER_LONG_MS, &err),
                     TENREC_OK);
    assert_int_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), TENREC_ECANCELED);
    functions_open_gate();
    assert_int_equal(tenrec_shutdown(c.worker[1], TENREC_IMMEDIATE, CLUSTER_LONG_MS, &err),
                     TENREC_OK);
    tenrec_worker_drop(c.worker[0]);
    tenrec_worker_drop(c.worker[1]);
    tenrec_future_drop(f); /* may outlive its worker */
}

/* A function whose answer does not wait for the calls it starts: they end
 * before the group does. */
static atomic_int hops;

static tenrec_status hop(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_worker *w = tenrec_call_worker(c);
    struct tenrec_worker_info me;
    struct tenrec_future *f = NULL;
    struct tenrec_value left;
    const char *to;
    int64_t n;
    tenrec_status st = tenrec_call_get_args(c, err, "i", &n);

    (void)arg;
    if (st == TENREC_OK)
        st = tenrec_get_worker_info(w, NULL, &me, err);
    if (st != TENREC_OK)
        return st;
    atomic_fetch_add(&hops, 1);
    if (n == 0)
        return TENREC_OK;
    left = tenrec_value_int(n - 1);
    to = me.id == 0 ? "worker1" : me.id == 1 ? "worker2" : "worker0";
    st = tenrec_rpc_async(w, to, "hop", &left, 1, NULL, &f, err);
    tenrec_future_drop(f);
    return st;
}

static void register_hop(struct tenrec_worker *w, size_t rank)
{
    functions_register(w, rank);
    assert_int_equal(tenrec_worker_register_function(w, "hop", hop, NULL, TENREC_POOL, NULL),
                     TENREC_OK);
}

TEST(life_ends_when_every_follow_up_call_has_ended)
{
    struct tenrec_value n = tenrec_value_int(50);
    struct tenrec_future *f = NULL;
    struct cluster c;

    atomic_store(&hops, 0);
    cluster_open(&c, 3, NULL, register_hop);
    assert_int_equal(tenrec_rpc_async(c.worker[0], "worker1", "hop", &n, 1, NULL, &f, NULL),
                     TENREC_OK);
    tenrec_future_drop(f);
    cluster_close(&c, TENREC_GRACEFUL);
    assert_int_equal(atomic_load(&hops), 51);
}

/* The same with calls without a waiter. */
static tenrec_status hop_one_way(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    const struct tenrec_call_options one_way = { .size = sizeof one_way, .flags = TENREC_ONE_WAY };
    struct tenrec_worker *w = tenrec_call_worker(call);
    struct tenrec_value left;
    struct tenrec_worker_info me;
    int64_t n;
    tenrec_status st = tenrec_call_get_args(call, err, "i", &n);

    (void)arg;
    if (st == TENREC_OK)
        st = tenrec_get_worker_info(w, NULL, &me, err);
    if (st == TENREC_OK && n > 0) {
        left = tenrec_value_int(n - 1);
        st = tenrec_rpc_sync(w, me.id == 0 ? "worker1" : "worker0", "hop_one_way", &left, 1,
                             &one_way, NULL, err);
    }
    atomic_fetch_add(&hops, 1);
    return st;
}

static void register_hop_one_way(struct tenrec_worker *w, size_t rank)
{
    (void)rank;
    assert_int_equal(
        tenrec_worker_register_function(w, "hop_one_way", hop_one_way, NULL, TENREC_POOL, NULL),
        TENREC_OK);
}

TEST(life_ends_when_every_one_way_call_has_ended)
{
    const struct tenrec_call_options one_way = { .size = sizeof one_way, .flags = TENREC_ONE_WAY };
    struct tenrec_value n = tenrec_value_int(200);
    struct cluster c;

    atomic_store(&hops, 0);
    cluster_open(&c, 2, NULL, register_hop_one_way);
    assert_int_equal(
        tenrec_rpc_sync(c.worker[0], "worker1", "hop_one_way", &n, 1, &one_way, NULL, NULL),
        TENREC_OK);
    cluster_close(&c, TENREC_GRACEFUL);
    assert_int_equal(atomic_load(&hops), 201);
}

TEST(life_ends_although_one_way_calls_were_lost)
{
    struct cluster c;

    cluster_open(&c, 2, NULL, functions_register);
    atomic_fetch_add(&c.worker[0]->calls->counts.one_way,
                     3); /* that no connection brings anywhere */
    cluster_close(&c, TENREC_GRACEFUL);
}

TEST(life_bounds_a_shutdown_when_calls_have_no_limit)
{
    const char *const none[] = { "worker.rpc_timeout=none", NULL };
    struct cluster c;

    cluster_open(&c, 1, none, functions_register);
    assert_int_equal(shutdown_limit_ms(c.worker[0], TENREC_TIMEOUT_DEFAULT), 60000);
    assert_true(shutdown_limit_ms(c.worker[0], TENREC_TIMEOUT_NONE) == TENREC_TIMEOUT_NONE);
    assert_int_equal(tenrec_worker_set_rpc_timeout(c.worker[0], 500, NULL), TENREC_OK);
    assert_int_equal(shutdown_limit_ms(c.worker[0], TENREC_TIMEOUT_DEFAULT), 500);
    cluster_close(&c, TENREC_GRACEFUL);
}

TEST(life_names_the_missing_when_a_graceful_shutdown_times_out)
{
    struct cluster c;
    tenrec_error err;

    cluster_open(&c, 3, NULL, functions_register);
    assert_int_equal(tenrec_shutdown(c.worker[0], TENREC_GRACEFUL, 100, &err), TENREC_ETIMEDOUT);
    assert_non_null(strstr(err.text, "1"));
    assert_non_null(strstr(err.text, "2"));
    assert_false(tenrec_worker_running(c.worker[0]));
    for (size_t i = 0; i < 3; i++)
        tenrec_worker_drop(c.worker[i]);
}

static void *leave_the_dead(void *arg)
{
    struct together *t = arg;
    tenrec_error err;

    if (tenrec_shutdown(t->w, TENREC_GRACEFUL, CLUSTER_LONG_MS, &err) != TENREC_EPEER_LOST)
        t->why = "no lost peer";
    else if (!strstr(err.text, "\"worker1\"") || !strstr(err.text, "was lost"))
        t->why = "the lost member is not named";
    return NULL;
}

/* worker1 is gone when the others shut down; worker0 and it may have been connected. */
static void leave_a_dead_member(bool connected)
{
    struct together t[3];
    pthread_t thread[3];
    struct cluster c;

    cluster_open(&c, 3, NULL, functions_register);
    if (connected)
        functions_must_call_add(c.worker[0], "worker1");
    tenrec_worker_drop(c.worker[1]);
    for (size_t i = 0; i < 3; i += 2) {
        t[i] = (struct together){ .w = c.worker[i] };
        assert_int_equal(pthread_create(&thread[i], NULL, leave_the_dead, &t[i]), 0);
    }
    for (size_t i = 0; i < 3; i += 2) {
        pthread_join(thread[i], NULL);
        if (t[i].why)
            fail_msg("worker %zu: %s", i, t[i].why);
        tenrec_worker_drop(c.worker[i]);
    }
}

TEST(life_names_a_dead_member_when_shut_down_gracefully)
{
    leave_a_dead_member(true);
}

TEST(life_names_a_dead_member_that_was_never_connected)
{
    leave_a_dead_member(false);
}

/* ---- again ------------------------------------------------------------------ */

static void *again(void *arg)
{
    struct together *t = arg;
    tenrec_error err;

    if (tenrec_shutdown(t->w, TENREC_GRACEFUL, CLUSTER_LONG_MS, &err) != TENREC_OK)
        t->why = "shutdown failed";
    else if (tenrec_init_rpc(t->w, &err) != TENREC_OK)
        t->why = "init failed";
    return NULL;
}

static void *barrier(void *arg)
{
    struct together *t = arg;
    tenrec_error err;

    if (tenrec_worker_barrier(t->w, NULL, 0, CLUSTER_LONG_MS, &err) != TENREC_OK)
        t->why = "barrier failed";
    return NULL;
}

/* Both at once, each in a thread of its own. */
static void both(struct cluster *c, void *(*fn)(void *))
{
    struct together t[2];
    pthread_t thread[2];

    for (size_t i = 0; i < 2; i++) {
        t[i] = (struct together){ .w = c->worker[i] };
        assert_int_equal(pthread_create(&thread[i], NULL, fn, &t[i]), 0);
    }
    for (size_t i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    for (size_t i = 0; i < 2; i++)
        if (t[i].why)
            fail_msg("worker %zu: %s", i, t[i].why);
}

TEST(life_is_in_step_again_when_the_same_workers_start_again)
{
    struct cluster c;
    tenrec_error err;

    cluster_open(&c, 2, NULL, functions_register);
    /* Only one of them counts this one. */
    assert_int_equal(tenrec_worker_barrier(c.worker[1], NULL, 0, 50, &err), TENREC_ETIMEDOUT);
    both(&c, again);
    both(&c, barrier);
    cluster_close(&c, TENREC_GRACEFUL);
}

TEST(life_does_not_start_again_while_a_function_still_runs)
{
    struct tenrec_future *f = NULL;
    struct cluster c;
    tenrec_error err;

    cluster_open(&c, 2, NULL, functions_register);
    f = functions_hold(c.worker[0], "worker1");
    assert_int_equal(tenrec_shutdown(c.worker[1], TENREC_IMMEDIATE, 20, &err), TENREC_ETIMEDOUT);
    assert_int_equal(tenrec_init_rpc(c.worker[1], &err), TENREC_EBUSY);
    assert_non_null(strstr(err.text, "wait_gate"));
    assert_false(tenrec_worker_running(c.worker[1]));
    functions_open_gate();
    tenrec_future_drop(f);
    tenrec_worker_drop(c.worker[1]);
    tenrec_worker_drop(c.worker[0]);
}

/* ---- functions that have not begun ------------------------------------------------- */

static atomic_int started;

static tenrec_status start_function(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    (void)c, (void)arg, (void)err;
    atomic_fetch_add(&started, 1);
    return TENREC_OK;
}

static void register_started(struct tenrec_worker *w, size_t rank)
{
    functions_register(w, rank);
    assert_int_equal(
        tenrec_worker_register_function(w, "start", start_function, NULL, TENREC_POOL, NULL),
        TENREC_OK);
    assert_int_equal(tenrec_worker_register_function(w, "start_inline", start_function, NULL,
                                                     TENREC_INLINE, NULL),
                     TENREC_OK);
    atomic_store(&started, 0);
}

static struct tenrec_future *call_later(struct tenrec_worker *w, const char *to, const char *fn,
                                        const struct tenrec_call_options *o)
{
    struct tenrec_future *f = NULL;
    tenrec_error err;

    assert_status(tenrec_rpc_async(w, to, fn, NULL, 0, o, &f, &err), &err);
    return f;
}

static size_t n_queued(struct tenrec_worker *w)
{
    return pool_count(w->calls->pool).queued;
}

static size_t n_given_up(struct tenrec_worker *w)
{
    struct tenrec_call *c;
    size_t n = 0;

    pthread_mutex_lock(&w->calls->active_calls.lock);
    for (c = w->calls->active_calls.calls; c; c = c->hh.next)
        n += !c->one_way && tenrec_call_canceled(c);
    pthread_mutex_unlock(&w->calls->active_calls.lock);
    return n;
}

/* One thread, which wait_long holds, and calls behind it. */
static void open_busy(struct cluster *c, struct tenrec_future **held, struct tenrec_future **f,
                      size_t n)
{
    const char *const one_thread[] = { "worker.num_worker_threads=1", NULL };

    cluster_open(c, 2, one_thread, register_started);
    functions_close_gate();
    *held = call_later(c->worker[0], "worker1", "wait_long", NULL);
    assert_becomes(functions_waiting() == 1);
    for (size_t i = 0; i < n; i++)
        f[i] = call_later(c->worker[0], "worker1", "start", NULL);
    assert_becomes(n_queued(c->worker[1]) == n);
}

TEST(life_starts_no_function_when_shut_down_at_once)
{
    struct tenrec_future *held, *f[20];
    struct cluster c;
    tenrec_error err;

    open_busy(&c, &held, f, 20);
    assert_int_equal(tenrec_shutdown(c.worker[1], TENREC_IMMEDIATE, 20, &err), TENREC_ETIMEDOUT);
    assert_text_has(err.text, "'wait_long' still runs");
    for (size_t i = 0; i < 20; i++) {
        /* The connection may end before it has carried the answer. */
        if (tenrec_future_wait(f[i], CLUSTER_LONG_MS, &err) == TENREC_ESHUTDOWN)
            assert_text_has(err.text, "'start' was not started");
        else
            assert_int_equal(err.code, TENREC_EPEER_LOST);
        assert_string_equal(err.worker_name, "worker1");
        tenrec_future_drop(f[i]);
    }
    functions_open_gate();
    tenrec_future_drop(held);
    tenrec_worker_drop(c.worker[1]);
    tenrec_worker_drop(c.worker[0]);
    assert_int_equal(atomic_load(&started), 0);
}

TEST(life_refuses_inline_functions_when_the_worker_stops)
{
    struct cluster c;
    tenrec_error err;

    cluster_open(&c, 2, NULL, register_started);
    serve_stop(c.worker[1]);
    assert_int_equal(
        tenrec_rpc_sync(c.worker[0], "worker1", "start_inline", NULL, 0, NULL, NULL, &err),
        TENREC_ESHUTDOWN);
    assert_int_equal(tenrec_rpc_sync(c.worker[0], "worker1", "start", NULL, 0, NULL, NULL, &err),
                     TENREC_ESHUTDOWN);
    assert_int_equal(atomic_load(&started), 0);
    serve_resume(c.worker[1]);
    assert_status(tenrec_rpc_sync(c.worker[0], "worker1", "start", NULL, 0, NULL, NULL, &err),
                  &err);
    cluster_close(&c, TENREC_GRACEFUL);
    assert_int_equal(atomic_load(&started), 1);
}

/* A one-way call has no caller that gave up. */
TEST(life_starts_no_function_when_its_caller_has_given_up)
{
    const struct tenrec_call_options brief = { .size = sizeof brief, .timeout_ms = 20 };
    const struct tenrec_call_options one_way = { .size = sizeof one_way,
                                                 .flags = TENREC_ONE_WAY,
                                                 .timeout_ms = 20 };
    struct tenrec_future *held, *late, *canceled, *last;
    struct cluster c;
    tenrec_error err;

    open_busy(&c, &held, NULL, 0);
    late = call_later(c.worker[0], "worker1", "start", &brief);
    tenrec_future_drop(call_later(c.worker[0], "worker1", "start", &one_way));
    canceled = call_later(c.worker[0], "worker1", "start", NULL);
    assert_becomes(n_queued(c.worker[1]) == 3);
    tenrec_future_cancel(canceled);
    assert_int_equal(tenrec_future_wait(late, CLUSTER_LONG_MS, &err), TENREC_ETIMEDOUT);
    last = call_later(c.worker[0], "worker1", "start", NULL);
    assert_becomes(n_queued(c.worker[1]) == 4);
    assert_becomes(n_given_up(c.worker[1]) == 2);
    functions_open_gate();
    assert_status(tenrec_future_wait(last, CLUSTER_LONG_MS, &err), &err);
    assert_int_equal(atomic_load(&started), 2);
    tenrec_future_drop(held);
    tenrec_future_drop(late);
    tenrec_future_drop(canceled);
    tenrec_future_drop(last);
    cluster_close(&c, TENREC_GRACEFUL);
}

TEST(life_starts_no_function_when_its_caller_is_lost)
{
    enum { QUEUED = 3 };
    const struct tenrec_call_options one_way = { .size = sizeof one_way,
                                                 .flags = TENREC_ONE_WAY,
                                                 .timeout_ms = TENREC_TIMEOUT_DEFAULT };
    struct tenrec_future *held, *f[QUEUED];
    struct cluster c;
    tenrec_error err;

    open_busy(&c, &held, f, QUEUED);
    tenrec_future_drop(call_later(c.worker[0], "worker1", "start", &one_way));
    assert_becomes(n_queued(c.worker[1]) == QUEUED + 1);
    assert_status(chain_disconnect(c.worker[0]->chain, 1, &err), &err);
    assert_becomes(n_given_up(c.worker[1]) == QUEUED + 1); /* the function that runs, too */
    functions_open_gate();
    for (size_t i = 0; i < QUEUED; i++) {
        assert_int_equal(tenrec_future_wait(f[i], CLUSTER_LONG_MS, &err), TENREC_EPEER_LOST);
        tenrec_future_drop(f[i]);
    }
    tenrec_future_drop(held);
    f[0] = call_later(c.worker[0], "worker1", "start", NULL);
    assert_status(tenrec_future_wait(f[0], CLUSTER_LONG_MS, &err), &err);
    tenrec_future_drop(f[0]);
    assert_int_equal(atomic_load(&started), 2); /* the one-way call, and the call afterwards */
    cluster_close(&c, TENREC_GRACEFUL);
}

static void drop_worker(struct tenrec_future *f, void *arg)
{
    (void)f;
    tenrec_worker_drop(arg);
}

TEST(life_goes_on_when_a_callback_drops_the_worker)
{
    struct tenrec_future *f = NULL;
    struct cluster c;
    tenrec_error err;

    cluster_open(&c, 2, NULL, functions_register);
    assert_int_equal(tenrec_rpc_async(c.worker[0], "worker1", "noop", NULL, 0, NULL, &f, &err),
                     TENREC_OK);
    assert_int_equal(tenrec_future_add_callback(f, drop_worker, c.worker[0], &err), TENREC_OK);
    assert_int_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), TENREC_OK);
    assert_true(tenrec_worker_running(c.worker[0]));
    tenrec_future_drop(f);
    cluster_close(&c, TENREC_GRACEFUL);
}

/* Waits that end while their worker is freed: no thread may touch it afterwards. */
static void *wait_and_leave(void *arg)
{
    struct tenrec_future *f = arg;

    tenrec_future_wait(f, CLUSTER_LONG_MS, NULL);
    tenrec_future_drop(f);
    return NULL;
}

TEST(life_ends_under_threads_that_wait)
{
    pthread_t thread[8];
    struct cluster c;
    tenrec_error err;

    for (int round = 0; round < 10; round++) {
        cluster_open(&c, 2, NULL, functions_register);
        functions_close_gate();
        for (size_t i = 0; i < 8; i++) {
            struct tenrec_future *f = NULL;
            assert_int_equal(
                tenrec_rpc_async(c.worker[0], "worker1", "wait_gate", NULL, 0, NULL, &f, &err),
                TENREC_OK);
            assert_int_equal(pthread_create(&thread[i], NULL, wait_and_leave, f), 0);
        }
        tenrec_worker_drop(c.worker[0]);
        functions_open_gate();
        tenrec_worker_drop(c.worker[1]);
        for (size_t i = 0; i < 8; i++)
            pthread_join(thread[i], NULL);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cluster_use(argv[1]);
    return testing_run(NULL, NULL);
}
