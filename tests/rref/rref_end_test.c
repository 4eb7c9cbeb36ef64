/* SPDX-License-Identifier: Apache-2.0 */
/* References when workers are lost, sends fail, and sessions end. */
#include "../support/functions.h"
#include "rref_support.h"

#include "../testing.h"

#include <pthread.h>
#include <stdatomic.h>

static struct cluster c;

static const char *const quick[] = { "worker.rref_retry_gap=5ms", NULL };

static void open_three(void)
{
    cluster_open(&c, 3, quick, rref_functions);
}

/* A control message that is repeated is not over before the test is. */
static void open_three_patient(void)
{
    const char *const patient[] = { "worker.rref_retry_gap=60s", NULL };

    cluster_open(&c, 3, patient, rref_functions);
}

/* Ends the remaining workers: tests may have ended some already. */
static void close_rest(void)
{
    for (size_t i = 0; i < c.n; i++)
        tenrec_worker_drop(c.worker[i]);
    assert_int_equal(tables_alive(), 0);
}

static void end_worker(size_t i)
{
    tenrec_worker_drop(c.worker[i]);
    c.worker[i] = NULL;
}

/* ---- lost workers ------------------------------------------------------------- */

struct released {
    atomic_int times;
    _Atomic size_t forks, freed;
    atomic_int peer;
};

static void count_released(struct tenrec_worker *w, tenrec_peer lost, size_t forks, size_t freed,
                           void *arg)
{
    struct released *r = arg;

    (void)w;
    atomic_store(&r->peer, lost);
    atomic_fetch_add(&r->forks, forks);
    atomic_fetch_add(&r->freed, freed);
    atomic_fetch_add(&r->times, 1);
}

TEST_WITH(forks_of_a_lost_worker_are_released, open_three, close_rest)
{
    struct released told = { .times = 0 };
    struct tenrec_rref *r = new_int(c.worker[0], 1), *s = new_int(c.worker[0], 2);
    struct tenrec_value arg = tenrec_value_rref(r);
    struct tenrec_rref *made;

    tenrec_worker_set_rrefs_released_callback(c.worker[0], count_released, &told);
    call_int(c.worker[0], "worker1", "keep", &arg, 1);
    call_int(c.worker[0], "worker2", "keep", &arg, 1);
    made = remote_int(c.worker[2], "worker0", 3);
    wait_owners_and_forks(c.worker[0], 2, 3);
    end_worker(2);
    wait_owners_and_forks(c.worker[0], 1, 1);
    assert_becomes(atomic_load(&told.times) >= 1);
    assert_int_equal(atomic_load(&told.peer), 2);
    assert_int_equal(atomic_load(&told.forks), 2);
    assert_int_equal(atomic_load(&told.freed), 1);
    tenrec_rref_drop(made);
    tenrec_rref_drop(r);
    tenrec_rref_drop(s);
    rref_release_kept(); /* also what the lost worker kept, in this process */
    wait_owners_and_forks(c.worker[0], 0, 0);
}

/* A send may fail before the backend reports that no process listens. */
static void assert_lost(tenrec_status st)
{
    assert_true(st == TENREC_EPEER_LOST || st == TENREC_ECONNECT);
}

TEST_WITH(rref_fails_at_once_when_its_owner_is_lost, open_three, close_rest)
{
    struct tenrec_rref *r = remote_int(c.worker[0], "worker1", 1), *pending = NULL;
    struct tenrec_value *v = NULL, arg;
    struct tenrec_future *f = NULL;
    tenrec_error err;

    assert_int_equal(int_of(r), 1);
    functions_close_gate();
    expect_ok(tenrec_remote(c.worker[0], "worker1", "wait_gate", NULL, 0, NULL, &pending, &err),
              err);
    expect_ok(tenrec_rref_to_here_async(pending, NULL, &f, &err), err);
    assert_becomes(functions_waiting() >= 1);
    functions_open_gate();
    end_worker(1);
    assert_becomes(!tenrec_rref_confirmed_by_owner(r));
    assert_lost(tenrec_rref_to_here(r, NULL, &v, &err));
    assert_string_equal(err.worker_name, "worker1");
    assert_lost(tenrec_rref_rpc_sync(r, "value", NULL, 0, NULL, NULL, &err));
    arg = tenrec_value_rref(r);
    assert_lost(tenrec_rpc_sync(c.worker[0], "worker2", "value", &arg, 1, NULL, NULL, &err));
    tenrec_future_wait(f, CLUSTER_LONG_MS, &err);
    assert_true(tenrec_future_done(f));
    tenrec_future_drop(f);
    tenrec_rref_drop(pending);
    tenrec_rref_drop(r);
    wait_flushed(c.worker[0]);
}

TEST_WITH(parent_is_released_when_its_child_goes_to_a_lost_worker, open_three, close_rest)
{
    struct tenrec_rref *r = remote_int(c.worker[0], "worker1", 1);
    struct tenrec_value arg = tenrec_value_rref(r);
    struct tenrec_future *f = NULL;
    tenrec_error err;

    end_worker(2);
    if (tenrec_rpc_async(c.worker[0], "worker2", "value", &arg, 1, NULL, &f, &err) == TENREC_OK) {
        assert_int_not_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), TENREC_OK);
        tenrec_future_drop(f);
    }
    tenrec_rref_drop(r);
    wait_owners_and_forks(c.worker[1], 0, 0);
    wait_flushed(c.worker[0]);
}

/* ---- late messages -------------------------------------------------------------- */

TEST_WITH(rref_of_an_answer_without_a_waiter_is_released, open_three, close_rest)
{
    struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = 20 };
    struct tenrec_value arg[1];
    struct tenrec_rref *gate = NULL;
    tenrec_error err;

    /* The function waits behind a value that is not made yet. */
    functions_close_gate();
    expect_ok(tenrec_remote(c.worker[0], "worker1", "wait_long", NULL, 0, NULL, &gate, &err), err);
    arg[0] = tenrec_value_rref(gate);
    assert_int_equal(tenrec_rpc_sync(c.worker[0], "worker1", "value", arg, 1, &o, NULL, &err),
                     TENREC_ETIMEDOUT);
    functions_open_gate();
    tenrec_rref_drop(gate);
    wait_owners_and_forks(c.worker[1], 0, 0);
    wait_flushed(c.worker[0]);
}

TEST_WITH(creation_that_was_deleted_before_leaves_nothing, open_three, close_rest)
{
    struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = 10 };
    /* Long enough for the calls below, and what wait_flushed then waits for. */
    const struct tenrec_call_options brief = { .size = sizeof brief,
                                               .timeout_ms = 2000 * (int64_t)testing_slow() };
    const struct tenrec_value four = tenrec_value_int(4);
    struct tenrec_rref *r = NULL, *gate = NULL;
    struct tenrec_value arg[2];
    tenrec_error err;

    functions_close_gate();
    expect_ok(tenrec_remote(c.worker[0], "worker1", "wait_long", NULL, 0, &brief, &gate, &err),
              err);
    arg[0] = tenrec_value_rref(gate);
    for (int i = 0; i < 20; i++) {
        expect_ok(tenrec_remote(c.worker[0], "worker1", i % 2 ? "table" : "value",
                                i % 2 ? &four : arg, 1, &o, &r, &err),
                  err);
        tenrec_rref_drop(r);
    }
    wait_flushed(c.worker[0]);
    functions_open_gate();
    tenrec_rref_drop(gate);
    wait_owners_and_forks(c.worker[1], 0, 0);
    assert_becomes(tables_alive() == 0);
}

TEST_WITH(control_messages_to_a_dead_worker_end_at_once, open_three_patient, close_rest)
{
    const struct tenrec_value four = tenrec_value_int(4);
    struct tenrec_rref *r = NULL;
    tenrec_error err;

    call_int(c.worker[0], "worker1", "value", &four, 1);
    end_worker(1);
    for (int i = 0; i < 20; i++) {
        expect_ok(tenrec_remote(c.worker[0], "worker1", "value", &four, 1, NULL, &r, &err), err);
        assert_int_not_equal(tenrec_rref_to_here(r, NULL, NULL, &err), TENREC_OK);
        tenrec_rref_drop(r);
    }
    assert_becomes(counts_of(c.worker[0]).num_pending_futures == 0);
}

/* ---- the end of a session ---------------------------------------------------------- */

TEST_WITH(shutdown_releases_references_that_the_program_still_has, open_three, close_rest)
{
    struct tenrec_rref *r = remote_int(c.worker[0], "worker1", 1), *own = new_int(c.worker[0], 2);
    struct tenrec_value arg = tenrec_value_rref(own), *v = NULL;
    const struct tenrec_value *local = NULL;
    const struct tenrec_value four = tenrec_value_int(4);
    struct tenrec_rref *table = NULL;
    tenrec_error err;

    expect_ok(tenrec_remote(c.worker[2], "worker1", "table", &four, 1, NULL, &table, &err), err);
    call_int(c.worker[0], "worker2", "keep", &arg, 1);
    assert_int_equal(int_of(r), 1);
    cluster_close(&c, TENREC_GRACEFUL);
    assert_int_equal(tables_alive(), 0);
    assert_int_equal(tenrec_rref_to_here(r, NULL, &v, &err), TENREC_ENOTFOUND);
    assert_int_equal(tenrec_rref_rpc_sync(own, "value", NULL, 0, NULL, NULL, &err),
                     TENREC_ESHUTDOWN);
    expect_ok(tenrec_rref_local_value(own, 1000, &local, &err), err);
    assert_int_equal(local->u.integer, 2);
    assert_string_equal(tenrec_rref_owner_name(r), "worker1");
    tenrec_rref_drop(r);
    tenrec_rref_drop(own);
    tenrec_rref_drop(table);
    rref_release_kept();
}

TEST_WITH(shutdown_names_leaked_references_when_asked, open_three, close_rest)
{
    struct tenrec_rref *own = new_int(c.worker[0], 2);
    struct tenrec_value arg = tenrec_value_rref(own);
    tenrec_error err;

    tenrec_worker_set_rref_leak_check(c.worker[0], true);
    call_int(c.worker[0], "worker1", "keep", &arg, 1);
    assert_int_equal(tenrec_shutdown(c.worker[0], TENREC_IMMEDIATE, CLUSTER_LONG_MS, &err),
                     TENREC_EBUSY);
    assert_non_null(strstr(err.text, "'worker1' still refers to RRef("));
    tenrec_rref_drop(own);
    rref_release_kept();
}

TEST_WITH(shutdown_says_where_a_leak_was_made, open_three, close_rest)
{
    struct tenrec_rref *own = NULL;
    const struct tenrec_value v = tenrec_value_int(1);
    tenrec_error err;

    tenrec_worker_set_rref_leak_check(c.worker[0], true);
    tenrec_rref_set_origin("rref_end_test.c", 250);
    expect_ok(tenrec_rref_new(c.worker[0], &v, &own, &err), err);
    assert_int_equal(tenrec_shutdown(c.worker[0], TENREC_IMMEDIATE, CLUSTER_LONG_MS, &err),
                     TENREC_EBUSY);
    assert_non_null(strstr(err.text, "made at rref_end_test.c:250, was not dropped"));
    tenrec_rref_drop(own);
}

static void *init_again(void *arg)
{
    tenrec_error err;

    expect_ok(tenrec_init_rpc(arg, &err), err);
    return NULL;
}

static void *shut_down(void *arg)
{
    tenrec_error err;

    expect_ok(tenrec_shutdown(arg, TENREC_GRACEFUL, CLUSTER_LONG_MS, &err), err);
    return NULL;
}

static void all(void *(*fn)(void *))
{
    pthread_t thread[3];

    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, fn, c.worker[i]), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
}

TEST_WITH(references_work_in_a_second_session, open_three, close_rest)
{
    struct tenrec_rref *old = remote_int(c.worker[0], "worker1", 1), *r;
    struct tenrec_value arg, *v = NULL;
    tenrec_error err;

    assert_int_equal(int_of(old), 1);
    all(shut_down);
    all(init_again);
    assert_int_not_equal(tenrec_rref_to_here(old, NULL, &v, &err), TENREC_OK);
    arg = tenrec_value_rref(old);
    assert_int_not_equal(
        tenrec_rpc_sync(c.worker[0], "worker2", "value", &arg, 1, NULL, NULL, &err), TENREC_OK);
    r = remote_int(c.worker[0], "worker1", 2);
    assert_int_equal(int_of(r), 2);
    wait_owners_and_forks(c.worker[1], 1, 1);
    tenrec_rref_drop(old);
    tenrec_rref_drop(r);
    wait_owners_and_forks(c.worker[1], 0, 0);
    all(shut_down);
}

TEST_WITH(shutdown_ends_at_once_when_a_user_is_gone, open_three, close_rest)
{
    struct tenrec_rref *r = new_int(c.worker[0], 1);
    struct tenrec_value arg = tenrec_value_rref(r);
    tenrec_error err;

    call_int(c.worker[0], "worker1", "keep", &arg, 1);
    end_worker(1);
    wait_owners_and_forks(c.worker[0], 0, 0);
    assert_int_equal(tenrec_shutdown(c.worker[0], TENREC_GRACEFUL, CLUSTER_LONG_MS, &err),
                     TENREC_EPEER_LOST);
    tenrec_rref_drop(r);
    rref_release_kept();
}

TEST_MAIN(cluster_use(argv[1]), NULL, NULL)
