/* SPDX-License-Identifier: Apache-2.0 */
/* loss_test.c - lost workers, on the backend named in argv. */
#include "../support/cluster.h"
#include "../support/functions.h"
#include "../testing.h"

#include <stdatomic.h>

static void peer_lost(struct tenrec_worker *w, tenrec_peer id, const tenrec_error *why, void *arg)
{
    (void)w, (void)why;
    atomic_store((atomic_int *)arg, id);
}

TEST(loss_tells_when_a_peer_is_lost)
{
    atomic_int lost = -1;
    struct cluster c;
    tenrec_error err;

    cluster_open(&c, 2, NULL, functions_register);
    tenrec_worker_set_peer_lost_callback(c.worker[0], peer_lost, &lost);
    assert_int_equal(tenrec_rpc_sync(c.worker[0], "worker1", "noop", NULL, 0, NULL, NULL, &err),
                     TENREC_OK);
    tenrec_worker_drop(c.worker[1]);
    assert_becomes(atomic_load(&lost) >= 0);
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
    assert_becomes(atomic_load(n) >= want);
    assert_int_equal(atomic_load(n), want);
}

TEST(loss_tells_when_a_caller_is_lost)
{
    atomic_int lost = 0;
    struct cluster c;

    cluster_open(&c, 2, NULL, functions_register);
    tenrec_worker_set_peer_lost_callback(c.worker[0], count_lost, &lost);
    call(&c, 1, "worker0");
    tenrec_worker_drop(c.worker[1]);
    await_count(&lost, 1);
    tenrec_worker_drop(c.worker[0]);
}

/* worker2 is lost after worker1, and its loss is reported after that of worker1: three
 * reports would mean that one came twice. */
TEST(loss_tells_once_when_both_directions_break)
{
    atomic_int lost = 0;
    struct cluster c;

    cluster_open(&c, 3, NULL, functions_register);
    tenrec_worker_set_peer_lost_callback(c.worker[0], count_lost, &lost);
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

TEST(loss_fails_a_pending_call_when_its_peer_is_lost)
{
    struct tenrec_future *f = NULL;
    struct cluster c;
    tenrec_error err;

    cluster_open(&c, 2, NULL, functions_register);
    f = functions_hold(c.worker[0], "worker1");
    assert_int_equal(tenrec_shutdown(c.worker[1], TENREC_IMMEDIATE, 20, &err), TENREC_ETIMEDOUT);
    assert_non_null(strstr(err.text, "wait_gate"));
    assert_int_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), TENREC_EPEER_LOST);
    functions_open_gate();
    tenrec_future_drop(f);
    tenrec_worker_drop(c.worker[1]);
    tenrec_worker_drop(c.worker[0]);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cluster_use(argv[1]);
    return testing_run(NULL, NULL);
}
