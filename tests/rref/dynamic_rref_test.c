/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_rref_test.c - references and gathers in a group that changes, on the
 * backend named in argv. */
#include "../support/functions.h"
#include "../support/party.h"
#include "../testing.h"
#include "rref_support.h"

#include "../support/together.h"
#include "rpc/future/worker.h"

#include <pthread.h>
#include <stdatomic.h>

static void begin(void)
{
    party_begin();
}

TEST_WITH(dynamic_references_work_with_a_later_joiner, begin, NULL)
{
    struct tenrec_worker *a = party_join(-1, NULL, rref_functions);
    struct tenrec_worker *b = party_join(-1, NULL, rref_functions);
    struct tenrec_rref *r = remote_int(a, "worker1", 41);
    struct tenrec_value arg = tenrec_value_rref(r);

    assert_int_equal(int_of(r), 41);
    wait_owners_and_forks(b, 1, 1);
    /* Passed on to a third one, which did not exist when the value was made. */
    {
        struct tenrec_worker *c = party_join(-1, NULL, rref_functions);
        assert_int_equal(call_int(a, "worker2", "to_here", &arg, 1), 41);
        party_leave(c);
    }
    tenrec_rref_drop(r);
    wait_owners_and_forks(b, 0, 0);
    party_leave(b);
    party_leave(a);
}

TEST_WITH(dynamic_references_to_a_dead_owner_fail, begin, NULL)
{
    struct tenrec_worker *a = party_join(-1, NULL, rref_functions);
    struct tenrec_worker *b = party_join(-1, NULL, rref_functions);
    struct tenrec_rref *r = remote_int(a, "worker1", 7), *fresh;
    struct tenrec_worker *again;
    struct tenrec_value *v = NULL;
    tenrec_error err;

    assert_int_equal(int_of(r), 7);
    party_die(b);
    party_await(a, 1);
    assert_int_equal(tenrec_rref_to_here(r, NULL, &v, &err), TENREC_EPEER_LOST);
    /* The next one of that name and id has nothing to do with them. */
    again = party_join(1, NULL, rref_functions);
    assert_int_equal(tenrec_rref_to_here(r, NULL, &v, &err), TENREC_EPEER_LOST);
    fresh = remote_int(a, "worker1", 8);
    assert_int_equal(int_of(fresh), 8);
    tenrec_rref_drop(fresh);
    tenrec_rref_drop(r);
    party_clear_away(b);
    party_leave(again);
    party_leave(a);
}

static atomic_size_t released;

static void on_released(struct tenrec_worker *w, tenrec_peer lost, size_t n_forks, size_t n_freed,
                        void *arg)
{
    (void)w, (void)lost, (void)n_freed, (void)arg;
    atomic_fetch_add(&released, n_forks);
}

TEST_WITH(dynamic_references_of_a_dead_worker_are_released, begin, NULL)
{
    struct tenrec_worker *a = party_join(-1, NULL, rref_functions);
    struct tenrec_worker *b = party_join(-1, NULL, rref_functions);
    struct tenrec_rref *r = remote_int(b, "worker0", 7);

    tenrec_worker_set_rrefs_released_callback(a, on_released, NULL);
    assert_int_equal(int_of(r), 7);
    wait_owners_and_forks(a, 1, 1);
    party_die(b);
    party_await(a, 1);
    wait_owners_and_forks(a, 0, 0);
    assert_int_equal(atomic_exchange(&released, 0), 1);
    party_clear_away(b);
    tenrec_rref_drop(r);
    party_leave(a);
}

/* Only a connection broke: the member lives, and so do its references. */
TEST_WITH(dynamic_references_survive_a_broken_connection, begin, NULL)
{
    struct tenrec_worker *a = party_join(-1, NULL, rref_functions);
    struct tenrec_worker *b = party_join(-1, NULL, rref_functions);
    struct tenrec_rref *r = remote_int(b, "worker0", 7);
    tenrec_error err;

    assert_int_equal(int_of(r), 7);
    wait_owners_and_forks(a, 1, 1);
    wait_flushed(b);
    expect_ok(chain_disconnect(b->chain, 0, &err), err);
    assert_int_equal(int_of(r), 7);
    assert_int_equal(counts_of(a).num_forks, 1);
    tenrec_rref_drop(r);
    wait_owners_and_forks(a, 0, 0);
    party_leave(b);
    party_leave(a);
}

TEST_WITH(dynamic_leaver_releases_its_references, begin, NULL)
{
    struct tenrec_worker *a = party_join(-1, NULL, rref_functions);
    struct tenrec_worker *b = party_join(-1, NULL, rref_functions);
    struct tenrec_rref *theirs = remote_int(b, "worker0", 7), *mine = remote_int(a, "worker1", 8);
    struct tenrec_value *v = NULL;
    tenrec_error err;

    assert_int_equal(int_of(theirs), 7);
    assert_int_equal(int_of(mine), 8);
    expect_ok(tenrec_shutdown(b, TENREC_GRACEFUL, CLUSTER_LONG_MS, &err), err);
    assert_int_equal(counts_of(a).num_owner_rrefs, 0);
    assert_int_equal(tenrec_rref_to_here(mine, NULL, &v, &err), TENREC_EPEER_LOST);
    assert_non_null(strstr(err.text, "has left the group"));
    tenrec_rref_drop(theirs);
    tenrec_rref_drop(mine);
    tenrec_worker_drop(b);
    party_leave(a);
}

/* ---- gathers ------------------------------------------------------------------------ */

static void *gather(void *arg)
{
    struct together *t = arg;
    struct tenrec_value mine = tenrec_value_int(party_id(t->w)), *all = NULL;
    tenrec_error err;

    for (int i = 0; i < t->rounds && !t->why; i++) {
        if (tenrec_worker_all_gather(t->w, &mine, t->names, t->n, CLUSTER_LONG_MS, &all, &err) !=
            TENREC_OK)
            t->why = "gather failed";
        else if (all->n != t->rank)
            t->why = "wrong number";
        tenrec_value_drop(all);
        all = NULL;
    }
    return NULL;
}

/* All of `w` at once, `rounds` times. */
static void gather_all(struct tenrec_worker **w, size_t n, int rounds)
{
    struct together t[CLUSTER_MAX];
    pthread_t thread[CLUSTER_MAX];

    for (size_t i = 0; i < n; i++) {
        t[i] = (struct together){ .w = w[i], .rank = n, .rounds = rounds };
        assert_int_equal(pthread_create(&thread[i], NULL, gather, &t[i]), 0);
    }
    for (size_t i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    for (size_t i = 0; i < n; i++)
        if (t[i].why)
            fail_msg("worker %zu: %s", i, t[i].why);
}

TEST_WITH(dynamic_gathers_are_of_present_members, begin, NULL)
{
    struct tenrec_worker *w[3];

    w[0] = party_join(-1, NULL, functions_register);
    gather_all(w, 1, 2);
    w[1] = party_join(-1, NULL, functions_register);
    gather_all(w, 2, 3);
    w[2] = party_join(-1, NULL, functions_register);
    gather_all(w, 3, 2);
    party_leave(w[1]);
    /* A new life under the old name: it has not counted the gathers of the old one. */
    w[1] = party_join(1, NULL, functions_register);
    gather_all(w, 3, 2);
    for (int i = 2; i >= 0; i--)
        party_leave(w[i]);
}

static void *barrier_that_fails(void *arg)
{
    struct together *t = arg;
    tenrec_error err;

    if (tenrec_worker_barrier(t->w, t->names, t->n, CLUSTER_LONG_MS, &err) == TENREC_OK)
        t->why = "no error";
    else if (!strstr(err.text, "worker2"))
        t->why = "who died is not named";
    return NULL;
}

TEST_WITH(dynamic_gathers_fail_for_all_when_a_member_dies, begin, NULL)
{
    static const char *const names[] = { "worker0", "worker1", "worker2" };
    struct tenrec_worker *w[3];
    struct together t[2];
    pthread_t thread[2];

    for (int i = 0; i < 3; i++)
        w[i] = party_join(-1, NULL, functions_register);
    gather_all(w, 3, 1); /* all are connected to the leader */
    for (size_t i = 0; i < 2; i++) {
        t[i] = (struct together){ .w = w[i], .names = names, .n = 3 };
        assert_int_equal(pthread_create(&thread[i], NULL, barrier_that_fails, &t[i]), 0);
    }
    party_die(w[2]);
    for (size_t i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
        if (t[i].why)
            fail_msg("worker %zu: %s", i, t[i].why);
    }
    party_await(w[0], 2);
    party_await(w[1], 2);
    gather_all(w, 2, 2);
    party_clear_away(w[2]);
    party_leave(w[1]);
    party_leave(w[0]);
}

TEST_MAIN(cluster_use(argv[1]), NULL, NULL)
