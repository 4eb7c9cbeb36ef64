/* SPDX-License-Identifier: Apache-2.0 */
/* announce_test.c - news of a dynamic group reach all members along a tree, also past members that
 * died or stopped, on the backend named in argv. */
#include "../support/functions.h"
#include "../support/party.h"
#include "../testing.h"
#include "core/base/clock.h"
#include "rpc/future/worker.h"
#include "rpc/monitor/monitor_inside.h"
#include "rpc/worker/worker.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

/* Members of five blocks of 32 and two of 1024. 0 is the lowest; 32 and 1024 lead others. */
static const int ids[] = { 0, 1, 32, 33, 34, 64, 1024, 1025, 1056, 1057 };
enum { MEMBERS = sizeof ids / sizeof *ids, LOWEST = 0, LEADER = 2, BELOW = 3, FAR = 8 };

static struct tenrec_worker *w[MEMBERS];
static bool dead[MEMBERS];

static void join_with(const char *const *more)
{
    tenrec_error err;

    party_begin();
    for (int i = 0; i < MEMBERS; i++) {
        w[i] = party_worker(ids[i], NULL, more, functions_register);
        assert_status(tenrec_init_rpc(w[i], &err), &err);
        dead[i] = false;
    }
}

static void join_all(void)
{
    join_with(NULL);
}

/* Its answers do not arrive while a leader waits until others take it for dead. */
static void join_all_less_patient(void)
{
    static const char *const quick[] = { "worker.heartbeat_misses=15", NULL };

    join_with(quick);
}

static void leave_all(void)
{
    for (int i = 0; i < MEMBERS; i++)
        if (w[i] && dead[i])
            party_clear_away(w[i]);
    for (int i = 0; i < MEMBERS; i++)
        if (w[i] && !dead[i])
            party_leave(w[i]);
}

static void die(int i)
{
    party_die(w[i]);
    dead[i] = true;
}

static bool knows(struct tenrec_worker *one, const char *name)
{
    struct tenrec_worker_info who;
    tenrec_error err;

    return tenrec_get_worker_info(one, name, &who, &err) == TENREC_OK;
}

/* Without any wait. */
static void assert_all_know(const char *name, bool expected)
{
    for (int i = 0; i < MEMBERS; i++)
        if (!dead[i] && knows(w[i], name) != expected)
            fail_msg("worker%d: %s is %sknown", ids[i], name, expected ? "not " : "");
}

static struct tenrec_worker *join_known(int id)
{
    struct tenrec_worker *one = party_join(id, NULL, functions_register);

    assert_all_know(one->self.name, true);
    return one;
}

static void leave_unknown(struct tenrec_worker *one)
{
    char name[32];

    snprintf(name, sizeof name, "%s", one->self.name);
    party_leave(one);
    assert_all_know(name, false);
}

TEST_WITH(announce_reaches_all_before_a_join_or_leave_returns, join_all, leave_all)
{
    static const int comers[] = { 2, 35, 1026, 2048, 31 };

    for (size_t i = 0; i < sizeof comers / sizeof *comers; i++)
        leave_unknown(join_known(comers[i]));
}

TEST_WITH(announce_goes_past_a_leader_that_died, join_all, leave_all)
{
    struct tenrec_worker *one;

    die(LEADER);
    one = join_known(35);
    leave_unknown(one);
    die(6);
    one = join_known(1026);
    leave_unknown(one);
}

TEST_WITH(announce_goes_past_the_lowest_member_that_died, join_all, leave_all)
{
    struct tenrec_worker *one;

    die(LOWEST);
    one = join_known(35);
    leave_unknown(one);
}

/* Changes that are forgotten, or made from another view, are read in the store. */
TEST_WITH(announce_of_changes_that_do_not_connect_reaches_all, join_all, leave_all)
{
    struct tenrec_worker *one;

    for (int i = 0; i < MEMBERS; i++) {
        pthread_mutex_lock(&group_of(w[i])->monitor->lock);
        group_of(w[i])->monitor->log.n = 0;
        pthread_mutex_unlock(&group_of(w[i])->monitor->lock);
    }
    one = join_known(1058);
    pthread_mutex_lock(&group_of(w[LOWEST])->monitor->lock);
    for (size_t i = 0; i < group_of(w[LOWEST])->monitor->log.n; i++)
        group_of(w[LOWEST])->monitor->log.list[i].incarnation++;
    pthread_mutex_unlock(&group_of(w[LOWEST])->monitor->lock);
    leave_unknown(one);
}

/* ---- a member whose thread stands --------------------------------------------------- */

static atomic_bool gate, stands;
static atomic_bool ended; /* it has stood for too long */

static void stand(struct tenrec_worker *self, const struct tenrec_worker_info *who,
                  uint64_t version, void *arg)
{
    const uint64_t until_ns = clock_deadline_ms(CLUSTER_LONG_MS);

    (void)self, (void)who, (void)version, (void)arg;
    atomic_store(&stands, true);
    while (!atomic_load(&gate) && !atomic_load(&ended)) {
        sched_yield();
        if (clock_passed(until_ns))
            atomic_store(&ended, true);
    }
}

static void expect_to_stand(void)
{
    atomic_store(&gate, false);
    atomic_store(&stands, false);
    atomic_store(&ended, false);
}

TEST_WITH(announce_goes_past_a_leader_that_stands_still, join_all_less_patient, leave_all)
{
    const struct tenrec_member_callbacks c = { .size = sizeof c, .joined = stand };
    struct tenrec_worker *one;
    tenrec_error err;

    expect_to_stand();
    assert_status(tenrec_worker_set_member_callbacks(w[LEADER], &c, &err), &err);
    one = party_join(1058, NULL, functions_register);
    assert_true(atomic_load(&stands));
    assert_false(atomic_load(&ended));
    for (int i = 0; i < MEMBERS; i++)
        assert_true(knows(w[i], "worker1058"));
    atomic_store(&gate, true);
    assert_status(tenrec_worker_set_member_callbacks(w[LEADER], NULL, &err), &err);
    /* The leader was slow: until its late answer arrives, a leave does not wait for it. */
    party_leave(one);
    for (int i = 0; i < MEMBERS; i++)
        assert_becomes(!knows(w[i], "worker1058"));
}

/* ---- many leave while an inner member fails ------------------------------------------ */

static void stand_when_left(struct tenrec_worker *self, const struct tenrec_worker_info *who,
                            const tenrec_error *why, uint64_t version, void *arg)
{
    (void)why;
    stand(self, who, version, arg);
}

struct leaver {
    pthread_t thread;
    struct tenrec_worker *w;
    tenrec_error err;
    tenrec_status st;
};

static void *leave(void *arg)
{
    struct leaver *l = arg;

    l->st = tenrec_shutdown(l->w, TENREC_GRACEFUL, 2 * CLUSTER_LONG_MS, &l->err);
    return NULL;
}

/* All members above the leader leave; the leader has a part of their news, and answers nothing. */
static void leave_past_the_leader(bool dies)
{
    const struct tenrec_member_callbacks c = { .size = sizeof c, .left = stand_when_left };
    struct leaver l[MEMBERS];
    tenrec_error err;

    expect_to_stand();
    assert_status(tenrec_worker_set_member_callbacks(w[LEADER], &c, &err), &err);
    for (int i = BELOW; i < MEMBERS; i++) {
        l[i] = (struct leaver){ .w = w[i] };
        assert_int_equal(pthread_create(&l[i].thread, NULL, leave, &l[i]), 0);
    }
    assert_becomes(atomic_load(&stands));
    if (dies) {
        chain_shutdown(w[LEADER]->chain);
        atomic_store(&gate, true);
        monitor_stop(w[LEADER]);
        dead[LEADER] = true;
    }
    for (int i = BELOW; i < MEMBERS; i++) {
        pthread_join(l[i].thread, NULL);
        assert_status(l[i].st, &l[i].err);
    }
    assert_false(!dies && atomic_load(&ended));
    atomic_store(&gate, true);
    for (int i = BELOW; i < MEMBERS; i++) {
        char name[32];

        snprintf(name, sizeof name, "worker%d", ids[i]);
        for (int k = 0; k < LEADER; k++)
            assert_becomes(!knows(w[k], name));
        tenrec_worker_drop(w[i]);
        w[i] = NULL;
    }
}

TEST_WITH(announce_of_many_that_leave_goes_past_a_leader_that_dies_meanwhile, join_all_less_patient,
          leave_all)
{
    leave_past_the_leader(true);
}

TEST_WITH(announce_of_many_that_leave_goes_past_a_leader_that_stands_still, join_all_less_patient,
          leave_all)
{
    leave_past_the_leader(false);
}

/* ---- many at once -------------------------------------------------------------------- */

struct comer {
    int id;
    pthread_t thread;
    tenrec_error err;
    tenrec_status st;
};

static void *come_and_go(void *arg)
{
    struct comer *c = arg;
    struct tenrec_worker *one = party_worker(c->id, NULL, NULL, functions_register);

    c->st = tenrec_init_rpc(one, &c->err);
    for (int i = 0; i < MEMBERS && c->st == TENREC_OK; i++)
        if (!dead[i] && !knows(w[i], one->self.name))
            c->st = tenrec_fail(&c->err, TENREC_EGROUP, "'%s' is not known to worker%d",
                                one->self.name, ids[i]);
    if (c->st == TENREC_OK)
        c->st = tenrec_shutdown(one, TENREC_GRACEFUL, CLUSTER_LONG_MS, &c->err);
    tenrec_worker_drop(one);
    return NULL;
}

static void come_and_go_together(void)
{
    struct comer c[12];

    for (int i = 0; i < 12; i++) {
        c[i] = (struct comer){ .id = 40 + 97 * i };
        assert_int_equal(pthread_create(&c[i].thread, NULL, come_and_go, &c[i]), 0);
    }
    for (int i = 0; i < 12; i++)
        pthread_join(c[i].thread, NULL);
    for (int i = 0; i < 12; i++)
        assert_status(c[i].st, &c[i].err);
}

TEST_WITH(announce_reaches_all_while_many_come_and_go, join_all, leave_all)
{
    come_and_go_together();
}

TEST_WITH(announce_reaches_all_while_leaders_die, join_all, leave_all)
{
    die(LEADER);
    die(LOWEST);
    come_and_go_together();
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cluster_use(argv[1]);
    return testing_run(NULL, NULL);
}
