/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_join_test.c - joining a dynamic group, its lock and its records in the
 * store, on the backend named in argv. */
#include "../support/functions.h"
#include "../support/party.h"
#include "../testing.h"
#include "core/base/clock.h"
#include "group/meeting/membership.h"
#include "group/membership/membership.h"
#include "rpc/future/worker.h"
#include "rpc/monitor/monitor_inside.h"
#include "rpc/worker/worker.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { STORE_REQUEST_MS = 5000 }; /* until a request that is not cut gives up */

static void begin(void)
{
    party_begin();
}

/* ---- admission -------------------------------------------------------------------- */

TEST_WITH(dynamic_a_name_that_is_used_is_refused_and_the_group_stays_open, begin, NULL)
{
    struct tenrec_worker *a = party_join(-1, "same", functions_register);
    struct tenrec_worker *b = party_worker(-1, "same", NULL, NULL);
    struct tenrec_worker *c = party_worker(0, "other", NULL, NULL);
    tenrec_error err;

    assert_int_equal(tenrec_init_rpc(b, &err), TENREC_EGROUP);
    assert_non_null(strstr(err.text, "name \"same\" is used by id 0"));
    assert_int_equal(tenrec_init_rpc(c, &err), TENREC_EGROUP);
    assert_non_null(strstr(err.text, "id 0 of group \"default\" is taken by worker \"same\""));
    tenrec_worker_drop(b);
    tenrec_worker_drop(c);
    b = party_join(-1, "third", functions_register);
    functions_must_call_add(a, "third");
    party_leave(b);
    party_leave(a);
}

TEST_WITH(dynamic_a_joiner_with_another_backend_is_refused_and_the_group_stays_open, begin, NULL)
{
    const char *const ours = cluster_backend();
    struct tenrec_worker *a = party_join(-1, NULL, functions_register), *b;
    tenrec_error err;

    cluster_use(strstr(ours, "inproc") ? "tensorpipe" : "inproc");
    b = party_worker(-1, NULL, NULL, NULL);
    assert_int_equal(tenrec_init_rpc(b, &err), TENREC_EGROUP);
    assert_text_has(err.text, "worker \"worker0\" (id 0) of group \"default\" uses the backend");
    assert_text_has(err.text, "\"inproc\"");
    assert_text_has(err.text, "\"tensorpipe\"");
    tenrec_worker_drop(b);
    cluster_use(ours);
    b = party_join(-1, NULL, functions_register);
    functions_must_call_add(a, "worker1");
    party_leave(b);
    party_leave(a);
}

static void put(const char *key, const char *text)
{
    tenrec_error err;

    if (tenrec_store_set(party_store(), key, text, strlen(text), CLUSTER_LONG_MS, &err) !=
        TENREC_OK)
        fail_msg("%s", err.text);
}

/* A key that was never written holds nothing, either. */
static void assert_says(const char *key, const char *text)
{
    tenrec_error err;
    void *now = NULL;
    bool there;

    if (tenrec_store_check(party_store(), &key, 1, CLUSTER_LONG_MS, &there, &err) != TENREC_OK)
        fail_msg("%s", err.text);
    if (!there)
        return;
    if (tenrec_store_get(party_store(), key, CLUSTER_LONG_MS, &now, NULL, &err) != TENREC_OK)
        fail_msg("%s", err.text);
    assert_string_equal(now, text);
    free(now);
}

static void assert_lock_is_free(void)
{
    assert_says("tenrec/default/lock", "free");
    assert_says("rpc_prefix_0/RpcGroupManagementToken", "");
}

TEST_WITH(dynamic_a_join_that_fails_leaves_the_group_open, begin, NULL)
{
    static const struct {
        const char *key;
        tenrec_status st;
    } spoiled[] = { { "tenrec/default/view", TENREC_EPROTOCOL },
                    { "tenrec/default/incarnations", TENREC_EINVAL } };
    struct tenrec_worker *a = party_worker(-1, NULL, NULL, functions_register);
    tenrec_error err;

    for (size_t i = 0; i < 2; i++) {
        put(spoiled[i].key, "of no sense");
        assert_int_equal(tenrec_init_rpc(a, &err), spoiled[i].st);
        assert_lock_is_free();
        assert_int_equal(
            tenrec_store_delete(party_store(), spoiled[i].key, CLUSTER_LONG_MS, NULL, &err),
            TENREC_OK);
    }
    assert_int_equal(tenrec_init_rpc(a, &err), TENREC_OK);
    assert_lock_is_free();
    party_leave(a);
}

TEST_WITH(dynamic_joiner_that_waits_for_the_lock_names_its_holder, begin, NULL)
{
    static const char *const brief[] = { "worker.init_timeout=50ms", NULL };
    struct tenrec_worker *a = party_worker(-1, NULL, brief, functions_register);
    tenrec_error err;

    put("tenrec/default/lock", "00000000deadbeef 100000 ghost");
    assert_int_equal(tenrec_init_rpc(a, &err), TENREC_ETIMEDOUT);
    assert_non_null(strstr(err.text, "'ghost' holds the lock of the group"));
    tenrec_worker_drop(a);
}

TEST_WITH(dynamic_the_lock_of_a_dead_holder_is_taken_over, begin, NULL)
{
    const uint64_t since = clock_now_ns();
    struct tenrec_worker *a;

    put("tenrec/default/lock", "00000000deadbeef 200 ghost");
    a = party_join(-1, NULL, functions_register);
    assert_true(clock_now_ns() - since >= 200000000u);
    party_leave(a);
}

/* A worker of torch.distributed.rpc that joins, or died when it did. */
TEST_WITH(dynamic_joiner_that_waits_for_torch_reports_the_wait, begin, NULL)
{
    static const char *const brief[] = { "worker.init_timeout=50ms", NULL };
    struct tenrec_worker *a = party_worker(-1, NULL, brief, functions_register);
    tenrec_error err;

    put("rpc_prefix_0/RpcGroupManagementToken", "Token_for_theirs_join");
    assert_int_equal(tenrec_init_rpc(a, &err), TENREC_ETIMEDOUT);
    assert_non_null(strstr(err.text, "worker of torch holds the lock"));
    put("rpc_prefix_0/RpcGroupManagementToken", "");
    assert_int_equal(tenrec_init_rpc(a, &err), TENREC_OK);
    party_leave(a);
}

static void count_outages(void *arg, enum tenrec_log_level level, const char *part,
                          const char *text)
{
    (void)level, (void)part;
    if (strstr(text, "members can neither join nor be removed"))
        atomic_fetch_add((atomic_int *)arg, 1);
}

/* Longer than one poll of the store: the member waits for the lock again, and the store answers. */
TEST_WITH(dynamic_dead_member_is_removed_after_a_slow_joiner, begin, NULL)
{
    struct tenrec_worker *a = party_join(-1, NULL, functions_register);
    struct tenrec_worker *b = party_join(-1, NULL, functions_register);
    atomic_int outages = 0;

    tenrec_log_set_callback(count_outages, &outages);
    put("tenrec/default/lock", "00000000deadbeef 3000 slow");
    party_die(b);
    party_await(a, 1);
    assert_int_equal(atomic_load(&outages), 0);
    party_clear_away(b);
    party_leave(a);
    tenrec_log_set_callback(NULL, NULL);
}

static void poll_the_store(struct tenrec_worker *w)
{
    pthread_mutex_lock(&group_of(w)->monitor->lock);
    group_of(w)->monitor->poll = true;
    monitor_wake(group_of(w)->monitor);
    pthread_mutex_unlock(&group_of(w)->monitor->lock);
}

/* No second notification follows: the worker itself retries. */
TEST_WITH(dynamic_malformed_record_is_reported_and_followed_when_mended, begin, NULL)
{
    /* 40 s until the worker buries the ghost, which has no process. */
    static const char *const slow[] = { "worker.heartbeat=1s", NULL };
    struct tenrec_worker *a = party_worker(-1, NULL, slow, functions_register);
    atomic_int outages = 0;
    void *record = NULL;
    size_t len = 0;
    struct membership_list ghost;
    struct membership_view v;
    tenrec_error err;

    assert_status(tenrec_init_rpc(a, &err), &err);
    assert_int_equal(membership_list_open(party_store(), "default", "", 500, &ghost, &err),
                     TENREC_OK);
    assert_int_equal(
        membership_list_reserve(&ghost, 7, "ghost", clock_deadline_ms(CLUSTER_LONG_MS), &err),
        TENREC_OK);
    assert_int_equal(
        membership_list_join(&ghost, "nowhere", NULL, clock_deadline_ms(CLUSTER_LONG_MS), &v, &err),
        TENREC_OK);
    membership_view_finish(&v);
    assert_int_equal(tenrec_store_get(party_store(), "tenrec/default/member/2", CLUSTER_LONG_MS,
                                      &record, &len, &err),
                     TENREC_OK);
    put("tenrec/default/member/2", "of no sense");
    tenrec_log_set_callback(count_outages, &outages);
    poll_the_store(a);
    assert_becomes(atomic_load(&outages) > 0);
    assert_int_equal(tenrec_store_set(party_store(), "tenrec/default/member/2", record, len,
                                      CLUSTER_LONG_MS, &err),
                     TENREC_OK);
    free(record);
    party_await(a, 2);
    assert_int_equal(atomic_load(&outages), 1);
    tenrec_log_set_callback(NULL, NULL);
    assert_int_equal(membership_list_leave(&ghost, clock_deadline_ms(CLUSTER_LONG_MS), &v, &err),
                     TENREC_OK);
    membership_view_finish(&v);
    poll_the_store(a);
    party_await(a, 1);
    membership_list_close(&ghost);
    party_leave(a);
}

/* ---- many in one view ---------------------------------------------------------------- */

struct departures {
    atomic_int left, died;
};

static void count_departures(struct tenrec_worker *w, const struct tenrec_worker_info *who,
                             const tenrec_error *why, uint64_t version, void *arg)
{
    struct departures *d = arg;

    (void)w, (void)who, (void)version;
    atomic_fetch_add(why->code == TENREC_OK ? &d->left : &d->died, 1);
}

static void join_ghost(struct membership_list *ghost)
{
    const uint64_t until_ns = clock_deadline_ms(CLUSTER_LONG_MS);
    struct membership_view v;
    tenrec_error err;

    assert_status(membership_list_open(party_store(), "default", "", 500, ghost, &err), &err);
    assert_status(membership_list_reserve(ghost, -1, "ghost{rank}", until_ns, &err), &err);
    assert_status(membership_list_join(ghost, "nowhere", NULL, until_ns, &v, &err), &err);
    membership_view_finish(&v);
}

/* As the holder of the lock does it for all that ask. */
static void remove_ghosts(struct membership_list *ghost, size_t n)
{
    struct membership_view v;
    struct store_value packed;
    tenrec_error err;

    assert_status(
        membership_list_list(ghost->store, clock_deadline_ms(CLUSTER_LONG_MS), &v, NULL, &err),
        &err);
    for (size_t i = 0; i < n; i++)
        assert_true(
            membership_view_remove(&v, ghost[i].id, ghost[i].incarnation, false, ghost[i].id));
    v.version++;
    membership_view_pack(&v, &packed);
    assert_non_null(packed.data);
    assert_int_equal(tenrec_store_set(party_store(), "tenrec/default/view", packed.data, packed.len,
                                      CLUSTER_LONG_MS, &err),
                     TENREC_OK);
    free(packed.data);
    membership_view_finish(&v);
}

/* None of them has announced it to the members, or that news was lost. */
TEST_WITH(dynamic_many_that_leave_in_one_view_are_no_deaths, begin, NULL)
{
    enum { GHOSTS = 100 };
    static const char *const slow[] = { "worker.heartbeat=1s", NULL };
    struct departures d = { .left = 0 };
    const struct tenrec_member_callbacks c = { .size = sizeof c,
                                               .left = count_departures,
                                               .arg = &d };
    struct tenrec_worker *a = party_worker(-1, NULL, slow, functions_register);
    struct membership_list ghost[GHOSTS];
    tenrec_error err;

    assert_status(tenrec_worker_set_member_callbacks(a, &c, &err), &err);
    assert_status(tenrec_init_rpc(a, &err), &err);
    for (int i = 0; i < GHOSTS; i++)
        join_ghost(&ghost[i]);
    poll_the_store(a);
    party_await(a, 1 + GHOSTS);
    remove_ghosts(ghost, GHOSTS);
    poll_the_store(a);
    assert_becomes(atomic_load(&d.left) + atomic_load(&d.died) == GHOSTS);
    assert_int_equal(atomic_load(&d.died), 0);
    for (int i = 0; i < GHOSTS; i++)
        membership_list_close(&ghost[i]);
    party_leave(a);
}

/* Another member has removed the worker, as it asked, and so many since that the list does not
 * remember how it left. */
TEST_WITH(dynamic_worker_that_leaves_takes_no_later_list_for_a_verdict, begin, NULL)
{
    struct tenrec_worker *a = party_join(-1, NULL, functions_register);
    struct monitor *m = group_of(a)->monitor;
    struct tenrec_store *store = membership_list_of(group_of(a)->membership)->store;
    struct membership_view v;
    bool expelled;
    tenrec_error err;

    pthread_mutex_lock(&m->lock);
    m->departs = true;
    pthread_mutex_unlock(&m->lock);
    assert_status(membership_list_list(store, clock_deadline_ms(CLUSTER_LONG_MS), &v, NULL, &err),
                  &err);
    assert_true(membership_view_remove(&v, party_id(a), m->incarnation, false, party_id(a)));
    v.n_gone = 0;
    v.version += 2;
    assert_status(monitor_apply(m, &v, &err), &err); /* as its thread does with news */
    pthread_mutex_lock(&m->lock);
    expelled = m->expelled;
    pthread_mutex_unlock(&m->lock);
    assert_false(expelled);
    assert_status(tenrec_shutdown(a, TENREC_IMMEDIATE, CLUSTER_LONG_MS, &err), &err);
    tenrec_worker_drop(a);
}

/* The next join of "slow" is followed by its end. */
static atomic_bool take_out;

/* Between its entry in the list and its first read of the members. */
tenrec_status __real_membership_list_records(struct membership_list *r,
                                             const struct membership_view_entry *e, size_t n,
                                             uint64_t deadline_ns, struct member *ret,
                                             tenrec_error *err);
tenrec_status __wrap_membership_list_records(struct membership_list *r,
                                             const struct membership_view_entry *e, size_t n,
                                             uint64_t deadline_ns, struct member *ret,
                                             tenrec_error *err);
tenrec_status __wrap_membership_list_records(struct membership_list *r,
                                             const struct membership_view_entry *e, size_t n,
                                             uint64_t deadline_ns, struct member *ret,
                                             tenrec_error *err)
{
    struct membership_list other;
    struct membership_view v;

    if (strcmp(r->name, "slow") == 0 && r->joined && atomic_exchange(&take_out, false)) {
        assert_int_equal(membership_list_open(party_store(), "default", "", 500, &other, err),
                         TENREC_OK);
        assert_int_equal(membership_list_remove(&other,
                                                &(struct membership_life){ r->id, r->incarnation },
                                                1, true, deadline_ns, &v, err),
                         TENREC_OK);
        membership_view_finish(&v);
        membership_list_close(&other);
    }
    return __real_membership_list_records(r, e, n, deadline_ns, ret, err);
}

TEST_WITH(dynamic_joiner_that_is_removed_gets_an_error_and_may_join_again, begin, NULL)
{
    struct tenrec_worker *a = party_join(-1, NULL, functions_register);
    struct tenrec_worker *b = party_worker(-1, "slow", NULL, functions_register);
    tenrec_error err;

    atomic_store(&take_out, true);
    assert_int_equal(tenrec_init_rpc(b, &err), TENREC_EGROUP);
    assert_false(atomic_load(&take_out));
    assert_non_null(strstr(err.text, "worker 'slow' (id 1) was removed from group \"default\" "
                                     "while it joined"));
    assert_lock_is_free();
    if (tenrec_init_rpc(b, &err) != TENREC_OK)
        fail_msg("%s", err.text);
    assert_int_equal(party_id(b), 1);
    functions_must_call_add(a, "slow");
    party_leave(b);
    party_leave(a);
}

/* ---- ending ---------------------------------------------------------------------------- */

/* The next look makes two requests of a store that answers none: each ends when it is cut. */
static atomic_bool hang, hangs;
static atomic_uint cuts, requests_cut;

void __real_store_cut(struct tenrec_store *s);
void __wrap_store_cut(struct tenrec_store *s);
void __wrap_store_cut(struct tenrec_store *s)
{
    atomic_fetch_add(&cuts, 1);
    __real_store_cut(s);
}

static void request_that_hangs(void)
{
    const uint64_t until_ns = clock_deadline_ms(STORE_REQUEST_MS);
    const unsigned before = atomic_load(&cuts);

    atomic_store(&hangs, true);
    while (atomic_load(&cuts) == before && !clock_passed(until_ns))
        sched_yield();
    atomic_fetch_add(&requests_cut, atomic_load(&cuts) != before);
}

tenrec_status __real_membership_list_read(struct membership_list *r, uint64_t deadline_ns,
                                          struct membership_view *ret, tenrec_error *err);
tenrec_status __wrap_membership_list_read(struct membership_list *r, uint64_t deadline_ns,
                                          struct membership_view *ret, tenrec_error *err);
tenrec_status __wrap_membership_list_read(struct membership_list *r, uint64_t deadline_ns,
                                          struct membership_view *ret, tenrec_error *err)
{
    if (!atomic_exchange(&hang, false))
        return __real_membership_list_read(r, deadline_ns, ret, err);
    request_that_hangs();
    request_that_hangs();
    return tenrec_fail(err, TENREC_EPEER_LOST, "no answer");
}

TEST_WITH(dynamic_a_shutdown_cuts_each_request_that_a_hung_store_holds, begin, NULL)
{
    struct tenrec_worker *a = party_join(-1, NULL, functions_register);
    tenrec_error err;

    atomic_store(&hang, true);
    poll_the_store(a);
    assert_becomes(atomic_load(&hangs));
    assert_status(tenrec_shutdown(a, TENREC_IMMEDIATE, CLUSTER_LONG_MS, &err), &err);
    assert_int_equal(atomic_load(&requests_cut), 2);
    tenrec_worker_drop(a);
}

/* ---- mixing ---------------------------------------------------------------------------- */

TEST_WITH(dynamic_and_static_workers_do_not_mix, begin, NULL)
{
    static const char *const fixed[] = { "worker.world_size=1", NULL };
    struct tenrec_worker *a = party_join(-1, NULL, functions_register);
    struct tenrec_worker *b = party_worker(0, NULL, fixed, functions_register);
    struct tenrec_worker *c = party_worker(-1, NULL, NULL, functions_register);
    tenrec_error err;

    assert_int_equal(tenrec_init_rpc(b, &err), TENREC_EGROUP);
    assert_non_null(strstr(err.text, "mixes static and dynamic"));
    party_leave(a);
    /* No member is left: the group may change its kind. */
    assert_int_equal(tenrec_init_rpc(b, &err), TENREC_OK);
    assert_int_equal(tenrec_init_rpc(c, &err), TENREC_EGROUP);
    assert_non_null(strstr(err.text, "mixes static and dynamic"));
    party_leave(b);
    assert_int_equal(tenrec_init_rpc(c, &err), TENREC_OK);
    party_leave(c);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cluster_use(argv[1]);
    return testing_run(NULL, NULL);
}
