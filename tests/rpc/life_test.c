/* life_test.c - starting, leaving, losing and gathering, on the backend named in argv. */
#include "../support/cluster.h"
#include "functions.h"
#include "rpc/call.h"
#include "rpc/codec.h"
#include "rpc/quiesce.h"
#include "rpc/worker.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

static void life_works_again_when_workers_are_made_anew(void **state)
{
    struct cluster c;

    (void)state;
    for (int i = 0; i < 3; i++) {
        cluster_open(&c, 3, NULL, functions_register);
        assert_int_equal(tenrec_rpc_sync(c.worker[2], "worker0", "noop", NULL, 0, NULL, NULL, NULL),
                         TENREC_OK);
        cluster_close(&c, TENREC_GRACEFUL);
    }
}

static void life_refuses_calls_when_not_running(void **state)
{
    struct tenrec_config *config = NULL;
    struct tenrec_worker *w = NULL;
    struct tenrec_worker_info info;
    tenrec_error err;

    (void)state;
    assert_int_equal(
        tenrec_config_parse("backend: inproc\nbackends: { inproc: { plugin: inproc } }", NULL,
                            &config, &err),
        TENREC_OK);
    assert_int_equal(tenrec_worker_new(config, &w, &err), TENREC_OK);
    assert_int_equal(tenrec_rpc_sync(w, "worker0", "noop", NULL, 0, NULL, NULL, &err),
                     TENREC_ESHUTDOWN);
    assert_int_equal(tenrec_shutdown(w, TENREC_GRACEFUL, 10, &err), TENREC_ESHUTDOWN);
    assert_int_equal(tenrec_barrier(w, NULL, 0, 10, &err), TENREC_ESHUTDOWN);
    assert_int_equal(tenrec_get_worker_info(w, NULL, &info, &err), TENREC_ESHUTDOWN);
    assert_false(tenrec_worker_running(w));
    tenrec_worker_drop(w);
    tenrec_worker_drop(NULL);
    tenrec_config_drop(config);
}

static void life_fails_pending_calls_when_shut_down_at_once(void **state)
{
    struct tenrec_future *f = NULL;
    struct cluster c;
    tenrec_error err;

    (void)state;
    cluster_open(&c, 2, NULL, functions_register);
    functions_close_gate();
    assert_int_equal(tenrec_rpc_async(c.worker[0], "worker1", "wait_gate", NULL, 0, NULL, &f, &err),
                     TENREC_OK);
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
    size_t k;
    const struct tenrec_value *args = tenrec_call_args(c, &k);
    tenrec_status st = tenrec_values_get(args, k, err, "i", &n);

    (void)arg;
    if (st == TENREC_OK)
        st = tenrec_get_worker_info(w, NULL, &me, err);
    if (st != TENREC_OK)
        return st;
    atomic_fetch_add(&hops, 1);
    if (n == 0)
        return TENREC_OK;
    left = tenrec_int(n - 1);
    to = me.id == 0 ? "worker1" : me.id == 1 ? "worker2" : "worker0";
    st = tenrec_rpc_async(w, to, "hop", &left, 1, NULL, &f, err);
    tenrec_future_drop(f);
    return st;
}

static void register_hop(struct tenrec_worker *w, size_t rank)
{
    functions_register(w, rank);
    assert_int_equal(tenrec_register_function(w, "hop", hop, NULL, TENREC_POOL, NULL), TENREC_OK);
}

static void life_ends_when_every_follow_up_call_has_ended(void **state)
{
    struct tenrec_value n = tenrec_int(50);
    struct tenrec_future *f = NULL;
    struct cluster c;

    (void)state;
    atomic_store(&hops, 0);
    cluster_open(&c, 3, NULL, register_hop);
    assert_int_equal(tenrec_rpc_async(c.worker[0], "worker1", "hop", &n, 1, NULL, &f, NULL),
                     TENREC_OK);
    tenrec_future_drop(f);
    cluster_close(&c, TENREC_GRACEFUL);
    assert_int_equal(atomic_load(&hops), 51);
}

/* The same with calls that nobody waits for. */
static tenrec_status hop_one_way(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    const struct tenrec_call_options one_way = { .size = sizeof one_way, .flags = TENREC_ONE_WAY };
    struct tenrec_worker *w = tenrec_call_worker(call);
    struct tenrec_value left;
    struct tenrec_worker_info me;
    int64_t n;
    size_t n_args;
    const struct tenrec_value *v = tenrec_call_args(call, &n_args);
    tenrec_status st = tenrec_values_get(v, n_args, err, "i", &n);

    (void)arg;
    if (st == TENREC_OK)
        st = tenrec_get_worker_info(w, NULL, &me, err);
    if (st == TENREC_OK && n > 0) {
        left = tenrec_int(n - 1);
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
        tenrec_register_function(w, "hop_one_way", hop_one_way, NULL, TENREC_POOL, NULL),
        TENREC_OK);
}

static void life_ends_when_every_one_way_call_has_ended(void **state)
{
    const struct tenrec_call_options one_way = { .size = sizeof one_way, .flags = TENREC_ONE_WAY };
    struct tenrec_value n = tenrec_int(200);
    struct cluster c;

    (void)state;
    atomic_store(&hops, 0);
    cluster_open(&c, 2, NULL, register_hop_one_way);
    assert_int_equal(
        tenrec_rpc_sync(c.worker[0], "worker1", "hop_one_way", &n, 1, &one_way, NULL, NULL),
        TENREC_OK);
    cluster_close(&c, TENREC_GRACEFUL);
    assert_int_equal(atomic_load(&hops), 201);
}

static void life_ends_although_one_way_calls_were_lost(void **state)
{
    struct cluster c;

    (void)state;
    cluster_open(&c, 2, NULL, functions_register);
    atomic_fetch_add(&c.worker[0]->counts.one_way, 3); /* that no connection brings anywhere */
    cluster_close(&c, TENREC_GRACEFUL);
}

static void life_bounds_a_shutdown_when_calls_have_no_limit(void **state)
{
    const char *const none[] = { "worker.rpc_timeout=none", NULL };
    struct cluster c;

    (void)state;
    cluster_open(&c, 1, none, functions_register);
    assert_int_equal(shutdown_limit_ms(c.worker[0], TENREC_TIMEOUT_DEFAULT), 60000);
    assert_true(shutdown_limit_ms(c.worker[0], TENREC_TIMEOUT_NONE) == TENREC_TIMEOUT_NONE);
    assert_int_equal(tenrec_set_rpc_timeout(c.worker[0], 500, NULL), TENREC_OK);
    assert_int_equal(shutdown_limit_ms(c.worker[0], TENREC_TIMEOUT_DEFAULT), 500);
    cluster_close(&c, TENREC_GRACEFUL);
}

static void life_names_the_missing_when_a_graceful_shutdown_times_out(void **state)
{
    struct cluster c;
    tenrec_error err;

    (void)state;
    cluster_open(&c, 3, NULL, functions_register);
    assert_int_equal(tenrec_shutdown(c.worker[0], TENREC_GRACEFUL, 100, &err), TENREC_ETIMEDOUT);
    assert_non_null(strstr(err.text, "1"));
    assert_non_null(strstr(err.text, "2"));
    assert_false(tenrec_worker_running(c.worker[0]));
    for (size_t i = 0; i < 3; i++)
        tenrec_worker_drop(c.worker[i]);
}

static void peer_lost(struct tenrec_worker *w, tenrec_peer id, const tenrec_error *why, void *arg)
{
    (void)w, (void)why;
    atomic_store((atomic_int *)arg, id);
}

static void life_tells_when_a_peer_is_lost(void **state)
{
    atomic_int lost = -1;
    struct cluster c;
    tenrec_error err;

    (void)state;
    cluster_open(&c, 2, NULL, functions_register);
    tenrec_set_peer_lost_callback(c.worker[0], peer_lost, &lost);
    assert_int_equal(tenrec_rpc_sync(c.worker[0], "worker1", "noop", NULL, 0, NULL, NULL, &err),
                     TENREC_OK);
    tenrec_worker_drop(c.worker[1]);
    for (int i = 0; i < CLUSTER_LONG_MS && atomic_load(&lost) < 0; i++)
        poll(NULL, 0, 1);
    assert_int_equal(atomic_load(&lost), 1);
    assert_int_not_equal(tenrec_rpc_sync(c.worker[0], "worker1", "noop", NULL, 0, NULL, NULL, &err),
                         TENREC_OK);
    assert_string_equal(err.worker_name, "worker1");
    tenrec_worker_drop(c.worker[0]);
}

static void count_lost(struct tenrec_worker *w, tenrec_peer id, const tenrec_error *why, void *arg)
{
    (void)w;
    assert_int_equal(id, why->worker);
    atomic_fetch_add((atomic_int *)arg, 1);
}

static void call(struct cluster *c, size_t from, const char *to)
{
    tenrec_error err;

    assert_int_equal(tenrec_rpc_sync(c->worker[from], to, "noop", NULL, 0, NULL, NULL, &err),
                     TENREC_OK);
}

static void await_count(atomic_int *n, int want)
{
    for (int i = 0; i < CLUSTER_LONG_MS && atomic_load(n) < want; i++)
        poll(NULL, 0, 1);
    assert_int_equal(atomic_load(n), want);
}

static void life_tells_when_a_caller_is_lost(void **state)
{
    atomic_int lost = 0;
    struct cluster c;

    (void)state;
    cluster_open(&c, 2, NULL, functions_register);
    tenrec_set_peer_lost_callback(c.worker[0], count_lost, &lost);
    call(&c, 1, "worker0");
    tenrec_worker_drop(c.worker[1]);
    await_count(&lost, 1);
    tenrec_worker_drop(c.worker[0]);
}

/* worker2 goes after worker1, and its loss is told after what there is to
 * tell of worker1's: three of them would mean that one was told twice. */
static void life_tells_once_when_both_directions_break(void **state)
{
    atomic_int lost = 0;
    struct cluster c;

    (void)state;
    cluster_open(&c, 3, NULL, functions_register);
    tenrec_set_peer_lost_callback(c.worker[0], count_lost, &lost);
    for (size_t i = 1; i < 3; i++) {
        call(&c, 0, i == 1 ? "worker1" : "worker2");
        call(&c, i, "worker0");
    }
    tenrec_worker_drop(c.worker[1]);
    await_count(&lost, 1);
    tenrec_worker_drop(c.worker[2]);
    await_count(&lost, 2);
    tenrec_worker_drop(c.worker[0]);
    assert_int_equal(atomic_load(&lost), 2);
}

static void life_fails_a_pending_call_when_its_peer_is_lost(void **state)
{
    struct tenrec_future *f = NULL;
    struct cluster c;
    tenrec_error err;

    (void)state;
    cluster_open(&c, 2, NULL, functions_register);
    functions_close_gate();
    assert_int_equal(tenrec_rpc_async(c.worker[0], "worker1", "wait_gate", NULL, 0, NULL, &f, &err),
                     TENREC_OK);
    for (int i = 0; i < CLUSTER_LONG_MS && functions_waiting() == 0; i++)
        poll(NULL, 0, 1);
    assert_int_equal(tenrec_shutdown(c.worker[1], TENREC_IMMEDIATE, 20, &err), TENREC_ETIMEDOUT);
    assert_non_null(strstr(err.text, "wait_gate"));
    assert_int_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), TENREC_EPEER_LOST);
    functions_open_gate();
    tenrec_future_drop(f);
    tenrec_worker_drop(c.worker[1]);
    tenrec_worker_drop(c.worker[0]);
}

/* ---- together ------------------------------------------------------------- */

struct together {
    struct tenrec_worker *w;
    size_t rank;
    const char *const *names;
    size_t n;
    int rounds;
    const char *why;
};

static void *gather(void *arg)
{
    struct together *t = arg;
    struct tenrec_value mine = tenrec_int((int64_t)t->rank), *all = NULL;
    tenrec_error err;

    for (int i = 0; i < t->rounds && !t->why; i++) {
        if (tenrec_all_gather(t->w, &mine, t->names, t->n, CLUSTER_LONG_MS, &all, &err) !=
            TENREC_OK)
            t->why = "gather failed";
        else if (all->n != t->n || !tenrec_value_find(all, "worker2") ||
                 tenrec_value_find(all, "worker2")->u.integer != 2)
            t->why = "wrong result";
        else
            tenrec_value_drop(all);
        if (tenrec_barrier(t->w, t->names, t->n, CLUSTER_LONG_MS, &err) != TENREC_OK)
            t->why = "barrier failed";
    }
    return NULL;
}

static void life_gathers_from_a_set_of_workers(void **state)
{
    static const char *const names[] = { "worker3", "worker1", "worker2" };
    struct together t[4];
    pthread_t thread[4];
    struct cluster c;

    (void)state;
    cluster_open(&c, 4, NULL, functions_register);
    for (size_t i = 1; i < 4; i++) {
        t[i] = (struct together){ c.worker[i], i, names, 3, 20, NULL };
        assert_int_equal(pthread_create(&thread[i], NULL, gather, &t[i]), 0);
    }
    for (size_t i = 1; i < 4; i++)
        pthread_join(thread[i], NULL);
    for (size_t i = 1; i < 4; i++)
        if (t[i].why)
            fail_msg("worker %zu: %s", i, t[i].why);
    cluster_close(&c, TENREC_GRACEFUL);
}

static void *late_barrier(void *arg)
{
    struct together *t = arg;
    tenrec_error err;

    if (tenrec_barrier(t->w, NULL, 0, 300, &err) != TENREC_ETIMEDOUT)
        t->why = "no timeout";
    else if (!strstr(err.text, "'worker1' did not come"))
        t->why = "the missing one is not named";
    return NULL;
}

static void life_names_who_did_not_come_to_a_barrier(void **state)
{
    struct together t[3];
    pthread_t thread[3];
    struct cluster c;
    tenrec_error err;

    (void)state;
    cluster_open(&c, 3, NULL, functions_register);
    for (size_t i = 0; i < 3; i += 2) {
        t[i] = (struct together){ .w = c.worker[i] };
        assert_int_equal(pthread_create(&thread[i], NULL, late_barrier, &t[i]), 0);
    }
    for (size_t i = 0; i < 3; i += 2) {
        pthread_join(thread[i], NULL);
        if (t[i].why)
            fail_msg("worker %zu: %s", i, t[i].why);
    }
    /* The late one is told at once, and the next barrier is in step again. */
    assert_int_equal(tenrec_barrier(c.worker[1], NULL, 0, CLUSTER_LONG_MS, &err), TENREC_ETIMEDOUT);
    cluster_close(&c, TENREC_GRACEFUL);
}

static void *long_barrier(void *arg)
{
    struct together *t = arg;
    tenrec_error err;

    if (tenrec_barrier(t->w, NULL, 0, CLUSTER_LONG_MS, &err) != TENREC_OK)
        t->why = "the first barrier failed";
    return NULL;
}

static bool barriers_open(struct tenrec_worker *w)
{
    bool open;

    pthread_mutex_lock(&w->gathers.lock);
    open = w->gathers.n_open > 0;
    pthread_mutex_unlock(&w->gathers.lock);
    return open;
}

/* worker1 makes a second barrier while a thread of it waits in the first. */
static void life_completes_a_barrier_when_a_later_one_has_failed(void **state)
{
    struct together t = { .rank = 1 };
    pthread_t thread;
    struct cluster c;
    tenrec_error err;

    (void)state;
    cluster_open(&c, 2, NULL, functions_register);
    t.w = c.worker[1];
    assert_int_equal(pthread_create(&thread, NULL, long_barrier, &t), 0);
    for (int i = 0; i < CLUSTER_LONG_MS && !barriers_open(c.worker[0]); i++)
        poll(NULL, 0, 1);
    assert_int_equal(tenrec_barrier(c.worker[1], NULL, 0, 200, &err), TENREC_ETIMEDOUT);
    assert_int_equal(tenrec_barrier(c.worker[0], NULL, 0, CLUSTER_LONG_MS, &err), TENREC_OK);
    pthread_join(thread, NULL);
    if (t.why)
        fail_msg("%s", t.why);
    assert_int_equal(tenrec_barrier(c.worker[0], NULL, 0, CLUSTER_LONG_MS, &err), TENREC_ETIMEDOUT);
    cluster_close(&c, TENREC_GRACEFUL);
}

static void *lone_barrier(void *arg)
{
    struct together *t = arg;
    tenrec_error err;

    if (tenrec_barrier(t->w, NULL, 0, CLUSTER_LONG_MS, &err) != TENREC_EPEER_LOST)
        t->why = "no lost peer";
    else if (!strstr(err.text, "'worker1' was lost"))
        t->why = "the lost one is not named";
    return NULL;
}

static void life_fails_a_barrier_when_one_who_has_not_come_is_lost(void **state)
{
    struct together t = { .rank = 0 };
    pthread_t thread;
    struct cluster c;
    tenrec_error err;

    (void)state;
    cluster_open(&c, 2, NULL, functions_register);
    /* The leader notices on a connection of its own. */
    assert_int_equal(tenrec_rpc_sync(c.worker[0], "worker1", "noop", NULL, 0, NULL, NULL, &err),
                     TENREC_OK);
    t.w = c.worker[0];
    assert_int_equal(pthread_create(&thread, NULL, lone_barrier, &t), 0);
    for (int i = 0; i < CLUSTER_LONG_MS && !barriers_open(c.worker[0]); i++)
        poll(NULL, 0, 1);
    tenrec_worker_drop(c.worker[1]);
    pthread_join(thread, NULL);
    if (t.why)
        fail_msg("%s", t.why);
    tenrec_worker_drop(c.worker[0]);
}

static void life_refuses_a_set_without_oneself(void **state)
{
    static const char *const names[] = { "worker1" }, *twice[] = { "worker0", "worker0" };
    static const char *const none[] = { NULL };
    struct cluster c;
    tenrec_error err;

    (void)state;
    cluster_open(&c, 2, NULL, functions_register);
    assert_int_equal(tenrec_barrier(c.worker[0], names, 1, 100, &err), TENREC_EINVAL);
    assert_int_equal(tenrec_barrier(c.worker[0], twice, 2, 100, &err), TENREC_EINVAL);
    assert_int_equal(tenrec_barrier(c.worker[0], NULL, 0, -1, &err), TENREC_EINVAL);
    assert_int_equal(tenrec_barrier(c.worker[0], none, 1, 100, &err), TENREC_EINVAL);
    cluster_close(&c, TENREC_GRACEFUL);
}

/* What a peer writes down as the set: seven names, but six ends of line. */
static void life_refuses_a_gather_whose_set_is_malformed(void **state)
{
    struct tenrec_value item[] = {
        tenrec_text("worker0\nworker0\nworker0\nworker0\nworker0\nworker0\nworker0"), tenrec_int(0),
        tenrec_int(1000), tenrec_nil()
    };
    struct tenrec_value array = tenrec_array(item, 4);
    struct call_spec spec = { .function = "all_gather", .deadline_ns = UINT64_MAX };
    struct tenrec_future *f = NULL;
    struct tenrec_msg *msg = NULL;
    struct cluster c;
    tenrec_error err;

    (void)state;
    cluster_open(&c, 2, NULL, functions_register);
    assert_int_equal(codec_write_value(&array, TENREC_MSG_GATHER, &msg, &err), TENREC_OK);
    assert_int_equal(worker_enter(c.worker[1], &err), TENREC_OK);
    assert_int_equal(call_send(c.worker[1], &spec, msg, &f, &err), TENREC_OK);
    worker_leave(c.worker[1]);
    assert_int_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), TENREC_EINVAL);
    tenrec_future_drop(f);
    cluster_close(&c, TENREC_GRACEFUL);
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

    if (tenrec_barrier(t->w, NULL, 0, CLUSTER_LONG_MS, &err) != TENREC_OK)
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

static void life_is_in_step_again_when_the_same_workers_start_again(void **state)
{
    struct cluster c;
    tenrec_error err;

    (void)state;
    cluster_open(&c, 2, NULL, functions_register);
    /* Only one of them counts this one. */
    assert_int_equal(tenrec_barrier(c.worker[1], NULL, 0, 50, &err), TENREC_ETIMEDOUT);
    both(&c, again);
    both(&c, barrier);
    cluster_close(&c, TENREC_GRACEFUL);
}

static void life_does_not_start_again_while_a_function_still_runs(void **state)
{
    struct tenrec_future *f = NULL;
    struct cluster c;
    tenrec_error err;

    (void)state;
    cluster_open(&c, 2, NULL, functions_register);
    functions_close_gate();
    assert_int_equal(tenrec_rpc_async(c.worker[0], "worker1", "wait_gate", NULL, 0, NULL, &f, &err),
                     TENREC_OK);
    for (int i = 0; i < CLUSTER_LONG_MS && functions_waiting() == 0; i++)
        poll(NULL, 0, 1);
    assert_int_equal(tenrec_shutdown(c.worker[1], TENREC_IMMEDIATE, 20, &err), TENREC_ETIMEDOUT);
    assert_int_equal(tenrec_init_rpc(c.worker[1], &err), TENREC_EBUSY);
    assert_non_null(strstr(err.text, "wait_gate"));
    assert_false(tenrec_worker_running(c.worker[1]));
    functions_open_gate();
    tenrec_future_drop(f);
    tenrec_worker_drop(c.worker[1]);
    tenrec_worker_drop(c.worker[0]);
}

static void drop_worker(struct tenrec_future *f, void *arg)
{
    (void)f;
    tenrec_worker_drop(arg);
}

static void life_goes_on_when_a_callback_drops_the_worker(void **state)
{
    struct tenrec_future *f = NULL;
    struct cluster c;
    tenrec_error err;

    (void)state;
    cluster_open(&c, 2, NULL, functions_register);
    assert_int_equal(tenrec_rpc_async(c.worker[0], "worker1", "noop", NULL, 0, NULL, &f, &err),
                     TENREC_OK);
    assert_int_equal(tenrec_future_add_callback(f, drop_worker, c.worker[0], &err), TENREC_OK);
    assert_int_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), TENREC_OK);
    assert_true(tenrec_worker_running(c.worker[0]));
    tenrec_future_drop(f);
    cluster_close(&c, TENREC_GRACEFUL);
}

/* Waits that end while their worker goes: nobody looks back at it. */
static void *wait_and_leave(void *arg)
{
    struct tenrec_future *f = arg;

    tenrec_future_wait(f, CLUSTER_LONG_MS, NULL);
    tenrec_future_drop(f);
    return NULL;
}

static void life_ends_under_threads_that_wait(void **state)
{
    pthread_t thread[8];
    struct cluster c;
    tenrec_error err;

    (void)state;
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(life_works_again_when_workers_are_made_anew),
        cmocka_unit_test(life_refuses_calls_when_not_running),
        cmocka_unit_test(life_fails_pending_calls_when_shut_down_at_once),
        cmocka_unit_test(life_ends_when_every_follow_up_call_has_ended),
        cmocka_unit_test(life_ends_when_every_one_way_call_has_ended),
        cmocka_unit_test(life_ends_although_one_way_calls_were_lost),
        cmocka_unit_test(life_bounds_a_shutdown_when_calls_have_no_limit),
        cmocka_unit_test(life_names_the_missing_when_a_graceful_shutdown_times_out),
        cmocka_unit_test(life_tells_when_a_peer_is_lost),
        cmocka_unit_test(life_tells_when_a_caller_is_lost),
        cmocka_unit_test(life_tells_once_when_both_directions_break),
        cmocka_unit_test(life_fails_a_pending_call_when_its_peer_is_lost),
        cmocka_unit_test(life_gathers_from_a_set_of_workers),
        cmocka_unit_test(life_names_who_did_not_come_to_a_barrier),
        cmocka_unit_test(life_completes_a_barrier_when_a_later_one_has_failed),
        cmocka_unit_test(life_fails_a_barrier_when_one_who_has_not_come_is_lost),
        cmocka_unit_test(life_refuses_a_set_without_oneself),
        cmocka_unit_test(life_refuses_a_gather_whose_set_is_malformed),
        cmocka_unit_test(life_is_in_step_again_when_the_same_workers_start_again),
        cmocka_unit_test(life_does_not_start_again_while_a_function_still_runs),
        cmocka_unit_test(life_goes_on_when_a_callback_drops_the_worker),
        cmocka_unit_test(life_ends_under_threads_that_wait),
    };

    if (argc > 1)
        cluster_use(argv[1]);
    return cmocka_run_group_tests_name("life", tests, NULL, NULL);
}
