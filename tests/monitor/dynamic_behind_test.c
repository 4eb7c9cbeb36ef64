/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_behind_test.c - a member whose view is older than that of its callers, on the backend
 * named in argv. */
#include "../support/functions.h"
#include "../support/party.h"
#include "../testing.h"
#include "group/meeting/membership.h"
#include "group/membership/membership.h"
#include "rpc/monitor/monitor_inside.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* The member that reads no new views. */
static _Atomic(struct membership_list *) blind;

tenrec_status __real_membership_list_read(struct membership_list *r, uint64_t deadline_ns,
                                          struct membership_view *ret, tenrec_error *err);
tenrec_status __wrap_membership_list_read(struct membership_list *r, uint64_t deadline_ns,
                                          struct membership_view *ret, tenrec_error *err);
tenrec_status __wrap_membership_list_read(struct membership_list *r, uint64_t deadline_ns,
                                          struct membership_view *ret, tenrec_error *err)
{
    if (atomic_load(&blind) == r)
        return tenrec_fail(err, TENREC_EPEER_LOST, "no answer");
    return __real_membership_list_read(r, deadline_ns, ret, err);
}

/* worker0 leads all sets; worker1 has a newer view than worker0, in which worker2 is. */
static struct tenrec_worker *leader, *informed, *joiner;
static pthread_t joining;

static void *join_late(void *w)
{
    tenrec_error *err = calloc(1, sizeof *err);

    tenrec_init_rpc(w, err);
    return err;
}

static void assert_well(pthread_t t)
{
    void *err;

    assert_int_equal(pthread_join(t, &err), 0);
    assert_status(((tenrec_error *)err)->code, (tenrec_error *)err);
    free(err);
}

static void begin_behind(void)
{
    party_begin();
    leader = party_join(0, NULL, functions_register);
    informed = party_join(1, NULL, functions_register);
    party_await(leader, 2);
    atomic_store(&blind, membership_list_of(group_of(leader)->membership));
    joiner = party_worker(2, NULL, NULL, functions_register);
    assert_int_equal(pthread_create(&joining, NULL, join_late, joiner), 0);
    party_await(informed, 3);
}

static void catch_up(void)
{
    atomic_store(&blind, NULL);
    assert_well(joining);
    party_await(leader, 3);
}

static void leave_all(void)
{
    party_leave(joiner);
    party_leave(informed);
    party_leave(leader);
}

static bool asks_wait(struct tenrec_worker *w)
{
    bool some = false;

    pthread_mutex_lock(&group_of(w)->monitor->lock);
    for (const struct ask *a = group_of(w)->monitor->asks.first; a; a = a->next)
        some = some || a->from == 1;
    pthread_mutex_unlock(&group_of(w)->monitor->lock);
    return some;
}

static void *barrier_of_all(void *w)
{
    tenrec_error *err = calloc(1, sizeof *err);

    tenrec_worker_barrier(w, NULL, 0, CLUSTER_LONG_MS, err);
    return err;
}

TEST_WITH(dynamic_a_barrier_waits_until_its_leader_knows_all_members, begin_behind, leave_all)
{
    pthread_t early, late;
    tenrec_error err;

    assert_int_equal(pthread_create(&early, NULL, barrier_of_all, informed), 0);
    assert_becomes(asks_wait(leader));
    catch_up();
    assert_int_equal(pthread_create(&late, NULL, barrier_of_all, joiner), 0);
    assert_status(tenrec_worker_barrier(leader, NULL, 0, CLUSTER_LONG_MS, &err), &err);
    assert_well(early);
    assert_well(late);
}

TEST_WITH(dynamic_a_reference_waits_until_its_receiver_knows_the_owner, begin_behind, leave_all)
{
    struct tenrec_rref *r = NULL;
    struct tenrec_future *f = NULL;
    struct tenrec_value args[] = { tenrec_value_int(1), tenrec_value_int(2) }, arg;
    tenrec_error err;

    assert_status(tenrec_remote(informed, "worker2", "add", args, 2, NULL, &r, &err), &err);
    arg = tenrec_value_rref(r);
    assert_status(tenrec_rpc_async(informed, "worker0", "noop", &arg, 1, NULL, &f, &err), &err);
    assert_becomes(asks_wait(leader));
    catch_up();
    assert_status(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), &err);
    tenrec_future_drop(f);
    tenrec_rref_drop(r);
}

TEST_MAIN(cluster_use(argv[1]), NULL, NULL)
