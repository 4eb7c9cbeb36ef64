/* SPDX-License-Identifier: Apache-2.0 */
/* References while messages fail, are duplicated and overtake each other; the
 * backend in argv is a faulty one. */
#include "../support/functions.h"
#include "../testing.h"
#include "rref_support.h"

#include <stdio.h>

static struct cluster c;
static char option[2][256];

static void open_faulty(const char *name, const char *value, const char *more)
{
    const char *extra[4] = { "worker.rref_retry_gap=2ms" };

    snprintf(option[0], sizeof option[0], "backends.%s.options.%s=%s", cluster_backend(), name,
             value);
    extra[1] = option[0];
    if (more) {
        snprintf(option[1], sizeof option[1], "backends.%s.options.%s", cluster_backend(), more);
        extra[2] = option[1];
    }
    cluster_open(&c, 3, extra, rref_functions);
}

static void close_all(void)
{
    for (size_t i = 0; i < c.n; i++)
        tenrec_worker_set_rref_leak_check(c.worker[i], true);
    cluster_close(&c, TENREC_GRACEFUL);
    assert_int_equal(tables_alive(), 0);
}

#define CONTROL "RREF_FORK_REQUEST, RREF_CHILD_ACCEPT, RREF_USER_DELETE"

/* A user shares with a user and with the owner, an owner with a user, all
 * through lists, and everything is released. */
static void share_and_drop(int64_t i)
{
    struct tenrec_rref *r = remote_int(c.worker[0], "worker1", i), *own = new_int(c.worker[0], i);
    struct tenrec_value item[] = { tenrec_value_rref(r), tenrec_value_rref(own) };
    struct tenrec_value list = tenrec_value_array(item, 2), *v = NULL;
    tenrec_error err;

    assert_int_equal(call_int(c.worker[0], "worker2", "to_here", &item[0], 1), i);
    assert_int_equal(call_int(c.worker[0], "worker1", "twice", &item[0], 1), 2 * i);
    expect_ok(tenrec_rpc_sync(c.worker[0], "worker2", "value", &list, 1, NULL, &v, &err), err);
    assert_int_equal(int_of(v->u.array[0].u.rref), i);
    tenrec_rref_drop(own);
    tenrec_rref_drop(r);
    assert_int_equal(int_of(v->u.array[1].u.rref), i);
    tenrec_value_drop(v);
}

static void all_is_let_go_of(void)
{
    for (size_t i = 0; i < c.n; i++)
        wait_owners_and_forks(c.worker[i], 0, 0);
    for (size_t i = 0; i < c.n; i++)
        wait_flushed(c.worker[i]);
}

static void control_fails_three_times(void)
{
    open_faulty("messages_to_fail", "[" CONTROL "]", "num_fail_sends=3");
}

TEST_WITH(references_work_when_control_messages_fail_three_times, control_fails_three_times,
          close_all)
{
    for (int64_t i = 0; i < 5; i++)
        share_and_drop(i);
    all_is_let_go_of();
}

static void delete_never_arrives(void)
{
    open_faulty("messages_to_fail", "[RREF_USER_DELETE]", "num_fail_sends=100");
}

TEST_WITH(shutdown_reports_a_leak_when_deletes_never_arrive, delete_never_arrives, NULL)
{
    struct tenrec_rref *r = remote_int(c.worker[0], "worker1", 1);
    tenrec_error err;

    assert_int_equal(int_of(r), 1);
    tenrec_rref_drop(r);
    wait_flushed(c.worker[0]); /* it was given up */
    wait_owners_and_forks(c.worker[1], 1, 1);
    tenrec_worker_set_rref_leak_check(c.worker[1], true);
    assert_int_equal(tenrec_shutdown(c.worker[1], TENREC_IMMEDIATE, CLUSTER_LONG_MS, &err),
                     TENREC_EBUSY);
    assert_non_null(strstr(err.text, "'worker0' still refers to RRef("));
    for (size_t i = 0; i < c.n; i++)
        tenrec_worker_drop(c.worker[i]);
}

static void creation_fails(void)
{
    open_faulty("messages_to_fail", "[REMOTE_CALL]", "num_fail_sends=1");
}

/* The failure state is each reference's own, however many fail. */
TEST_WITH(every_failed_creation_is_told_to_its_own_reference, creation_fails, close_all)
{
    const struct tenrec_value one = tenrec_value_int(1);
    struct tenrec_value *v = NULL;
    struct tenrec_rref *r = NULL;
    tenrec_error err;

    for (int i = 0; i < 6; i++) {
        const char *to = i % 2 ? "worker1" : "worker0";
        expect_ok(tenrec_remote(c.worker[0], to, "value", &one, 1, NULL, &r, &err), err);
        assert_int_equal(tenrec_rref_to_here(r, NULL, &v, &err), TENREC_EINJECTED);
        assert_non_null(strstr(err.text, "RRef creation"));
        tenrec_rref_drop(r);
    }
    all_is_let_go_of();
}

static void everything_comes_twice(void)
{
    open_faulty("rules", "[{ do: duplicate, on: [REMOTE_CALL, RREF_FETCH_CALL, " CONTROL "] }]",
                NULL);
}

TEST_WITH(references_work_when_messages_come_twice, everything_comes_twice, close_all)
{
    for (int64_t i = 0; i < 20; i++)
        share_and_drop(i);
    all_is_let_go_of();
}

static void everything_is_reordered(void)
{
    open_faulty("rules", "[{ do: reorder, on: [REQUEST, RESPONSE], probability: 0.5, by: 5ms }]",
                "seed=7");
}

TEST_WITH(references_work_when_messages_overtake_each_other, everything_is_reordered, close_all)
{
    for (int64_t i = 0; i < 20; i++)
        share_and_drop(i);
    all_is_let_go_of();
}

static void some_control_is_reported_failed(void)
{
    open_faulty("rules", "[{ do: fail_in_flight, on: [" CONTROL "], probability: 0.1 }]", "seed=3");
}

TEST_WITH(references_work_when_sends_are_reported_failed, some_control_is_reported_failed,
          close_all)
{
    for (int64_t i = 0; i < 10; i++)
        share_and_drop(i);
    all_is_let_go_of();
}

static void calls_leave_late(void)
{
    open_faulty("rules", "[{ do: delay, on: [CALL], by: 200ms }]", NULL);
}

/* The loss of the callee came before the fork was made: no word of it comes any more. */
TEST_WITH(fork_of_a_call_that_timed_out_ends_when_its_request_cannot_be_sent, calls_leave_late,
          NULL)
{
    struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = 1 };
    struct tenrec_rref *r = new_int(c.worker[0], 7);
    struct tenrec_value arg = tenrec_value_rref(r), *v = NULL;
    tenrec_error err;

    tenrec_worker_drop(c.worker[2]);
    assert_int_equal(tenrec_rpc_sync(c.worker[0], "worker2", "to_here", &arg, 1, &o, &v, &err),
                     TENREC_ETIMEDOUT);
    wait_owners_and_forks(c.worker[0], 0, 0);
    tenrec_rref_drop(r);
    for (size_t i = 0; i < 2; i++)
        tenrec_worker_drop(c.worker[i]);
}

TEST_MAIN(cluster_use(argv[1]), NULL, NULL)
