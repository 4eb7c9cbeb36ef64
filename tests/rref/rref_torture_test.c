/* SPDX-License-Identifier: Apache-2.0 */
/* rref_torture_test.c - references while each allocation and each send fails
 * once.
 *
 * Each step ends with the error or with its result, and when all is dropped no
 * reference is left. */
#include "../support/functions.h"
#include "../support/torture.h"
#include "../testing.h"
#include "rref_support.h"

static struct cluster c;

static const char *const settings[] = { "worker.rref_retry_gap=1ms", "worker.rpc_timeout=150ms",
                                        NULL };

static void open_three(void)
{
    torture_register();
    cluster_open(&c, 3, settings, rref_functions);
}

static void close_three(void)
{
    for (size_t i = 0; i < c.n; i++)
        tenrec_worker_set_rref_leak_check(c.worker[i], true);
    cluster_close(&c, TENREC_GRACEFUL);
    assert_int_equal(tables_alive(), 0);
}

static tenrec_status add(const char *to)
{
    const struct tenrec_value args[] = { tenrec_value_int(2), tenrec_value_int(40) };

    return tenrec_rpc_sync(c.worker[0], to, "add", args, 2, NULL, NULL, NULL);
}

/* A connection that had no memory even to say so is broken, until the backend
 * has put it away. */
static void expect_all_is_let_go_of(void)
{
    assert_becomes(add("worker1") == TENREC_OK);
    assert_becomes(add("worker2") == TENREC_OK);
    for (size_t i = 0; i < c.n; i++)
        wait_flushed(c.worker[i]);
    for (size_t i = 0; i < c.n; i++)
        wait_owners_and_forks(c.worker[i], 0, 0);
    assert_becomes(tables_alive() == 0);
}

/* ---- the steps; each returns what it ended with -------------------------------- */

static tenrec_status make(const char *to, struct tenrec_rref **ret, tenrec_error *err)
{
    const struct tenrec_value n = tenrec_value_int(4);

    return tenrec_remote(c.worker[0], to, "table", &n, 1, NULL, ret, err);
}

static tenrec_status bring_here(struct tenrec_rref *r, tenrec_error *err)
{
    struct tenrec_value *v = NULL;
    tenrec_status st = tenrec_rref_to_here(r, NULL, &v, err);

    tenrec_value_drop(v);
    return st;
}

static tenrec_status look_up(struct tenrec_rref *r, tenrec_error *err)
{
    const struct tenrec_value i = tenrec_value_int(3);
    struct tenrec_value *v = NULL;
    tenrec_status st = tenrec_rref_rpc_sync(r, "lookup", &i, 1, NULL, &v, err);

    if (st == TENREC_OK)
        assert_int_equal(v->u.integer, 3);
    tenrec_value_drop(v);
    return st;
}

/* There as an argument in a list, and back in the result. */
static tenrec_status pass(struct tenrec_rref *r, const char *to, tenrec_error *err)
{
    const struct tenrec_value item = tenrec_value_rref(r);
    const struct tenrec_value list = tenrec_value_array(&item, 1);
    struct tenrec_value *v = NULL;
    tenrec_status st = tenrec_rpc_sync(c.worker[0], to, "value", &list, 1, NULL, &v, err);

    tenrec_value_drop(v);
    return st;
}

static tenrec_status make_and_fetch(void *to, tenrec_error *err)
{
    struct tenrec_rref *r = NULL;
    tenrec_status st;

    torture_on();
    st = make(to, &r, err);
    if (st == TENREC_OK)
        st = bring_here(r, err);
    if (st == TENREC_OK)
        st = look_up(r, err);
    tenrec_rref_drop(r);
    wait_flushed(c.worker[0]);
    torture_off();
    expect_all_is_let_go_of();
    return st;
}

static tenrec_status make_and_share(void *to, tenrec_error *err)
{
    struct tenrec_rref *r = NULL;
    tenrec_status st;

    torture_on();
    st = make(to, &r, err);
    if (st == TENREC_OK)
        st = pass(r, "worker2", err);
    if (st == TENREC_OK)
        st = pass(r, "worker1", err);
    tenrec_rref_drop(r);
    torture_off();
    expect_all_is_let_go_of();
    return st;
}

static tenrec_status make_local(void *arg, tenrec_error *err)
{
    const struct tenrec_value text = tenrec_value_text("a value");
    struct tenrec_rref *r = NULL;
    tenrec_status st;

    (void)arg;
    torture_on();
    st = tenrec_rref_new(c.worker[0], &text, &r, err);
    if (st == TENREC_OK)
        st = bring_here(r, err);
    if (st == TENREC_OK)
        st = pass(r, "worker1", err);
    tenrec_rref_drop(r);
    torture_off();
    expect_all_is_let_go_of();
    return st;
}

static void torture_all(enum torture_kind kind)
{
    static char *const to[] = { "worker1", "worker0" };

    for (size_t i = 0; i < 2; i++) {
        assert_true(torture(kind, 1, make_and_fetch, to[i]) > 0);
        assert_true(torture(kind, 1, make_and_share, to[i]) > 0);
    }
    assert_true(torture(kind, 1, make_local, NULL) > 0);
}

TEST(references_are_released_when_any_allocation_fails)
{
    torture_all(TORTURE_ALLOCATIONS);
}

TEST(references_are_released_when_any_send_fails)
{
    torture_all(TORTURE_SENDS);
}

TEST(references_are_released_when_any_message_is_reported_failed)
{
    torture_all(TORTURE_REPORTS);
}

/* A fork on its way in a message that is lost, on a connection that lives,
 * stays until the end of the session: not so what is only made and fetched. */
TEST(references_are_released_when_any_message_is_lost)
{
    assert_true(torture(TORTURE_ARRIVALS, 1, make_and_fetch, "worker1") > 0);
}

TEST_MAIN(cluster_use(argv[1]), open_three, close_three)
