/* SPDX-License-Identifier: Apache-2.0 */
/* gather_test.c - barrier and all_gather, on the backend named in argv. */
#include "../support/cluster.h"
#include "../support/functions.h"
#include "../support/together.h"
#include "../testing.h"
#include "core/base/clock.h"
#include "rpc/call/call.h"
#include "rpc/call/calls.h"
#include "rpc/future/worker.h"
#include "rpc/gather/gather.h"
#include "rpc/gather/gather_set.h"
#include "rpc/value/codec.h"
#include "rpc/worker/worker.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

static void *gather(void *arg)
{
    struct together *t = arg;
    struct tenrec_value mine = tenrec_value_int((int64_t)t->rank), *all = NULL;
    tenrec_error err;

    for (int i = 0; i < t->rounds && !t->why; i++) {
        if (tenrec_worker_all_gather(t->w, &mine, t->names, t->n, CLUSTER_LONG_MS, &all, &err) !=
            TENREC_OK)
            t->why = "gather failed";
        else if (all->n != t->n || !tenrec_value_find(all, "worker2") ||
                 tenrec_value_find(all, "worker2")->u.integer != 2)
            t->why = "wrong result";
        else
            tenrec_value_drop(all);
        if (tenrec_worker_barrier(t->w, t->names, t->n, CLUSTER_LONG_MS, &err) != TENREC_OK)
            t->why = "barrier failed";
    }
    return NULL;
}

TEST(gather_returns_the_values_of_a_set_of_workers)
{
    static const char *const names[] = { "worker3", "worker1", "worker2" };
    struct together t[4];
    pthread_t thread[4];
    struct cluster c;

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

static bool barriers_open(struct tenrec_worker *w)
{
    bool open;

    pthread_mutex_lock(&gathers_of(w)->lock);
    open = gathers_of(w)->n_open > 0;
    pthread_mutex_unlock(&gathers_of(w)->lock);
    return open;
}

static bool barriers_failed(struct tenrec_worker *w)
{
    bool failed;

    pthread_mutex_lock(&gathers_of(w)->lock);
    failed = gathers_of(w)->sets && gathers_of(w)->sets->n_failed > 0;
    pthread_mutex_unlock(&gathers_of(w)->lock);
    return failed;
}

static void *late_barrier(void *arg)
{
    struct together *t = arg;
    tenrec_error err;

    /* The first limit counts, that of the leader here: the other hears in time. */
    if (tenrec_worker_barrier(t->w, NULL, 0, t->rank == 0 ? 300 : CLUSTER_LONG_MS, &err) !=
        TENREC_ETIMEDOUT)
        t->why = "no timeout";
    else if (!strstr(err.text, "'worker1' did not join"))
        t->why = "the missing one is not named";
    return NULL;
}

TEST(gather_names_members_that_miss_a_barrier)
{
    struct together t[3];
    pthread_t thread[3];
    struct cluster c;
    tenrec_error err;

    cluster_open(&c, 3, NULL, functions_register);
    /* The leader last: it must miss one only. */
    for (int i = 2; i >= 0; i -= 2) {
        t[i] = (struct together){ .w = c.worker[i], .rank = (size_t)i };
        assert_int_equal(pthread_create(&thread[i], NULL, late_barrier, &t[i]), 0);
        assert_becomes(i == 0 || barriers_open(c.worker[0]));
    }
    for (size_t i = 0; i < 3; i += 2) {
        pthread_join(thread[i], NULL);
        if (t[i].why)
            fail_msg("worker %zu: %s", i, t[i].why);
    }
    /* The late member gets the error at once, and the next barrier is in step again. */
    assert_int_equal(tenrec_worker_barrier(c.worker[1], NULL, 0, CLUSTER_LONG_MS, &err),
                     TENREC_ETIMEDOUT);
    cluster_close(&c, TENREC_GRACEFUL);
}

/* The leader's wait has ended, and the loop fails the gather before the leader looks again. */
static atomic_bool loop_was_first;

tenrec_status __real_tenrec_future_wait(struct tenrec_future *f, int64_t ms, tenrec_error *err);
tenrec_status __wrap_tenrec_future_wait(struct tenrec_future *f, int64_t ms, tenrec_error *err);
tenrec_status __wrap_tenrec_future_wait(struct tenrec_future *f, int64_t ms, tenrec_error *err)
{
    const bool first = atomic_exchange(&loop_was_first, false);
    tenrec_status st = __real_tenrec_future_wait(f, first ? 1 : ms, err);

    if (first)
        assert_becomes(tenrec_future_done(f));
    return st;
}

TEST(gather_names_the_missing_when_the_loop_fails_it_first)
{
    struct cluster c;
    tenrec_error err;

    cluster_open(&c, 2, NULL, functions_register);
    atomic_store(&loop_was_first, true);
    assert_int_equal(tenrec_worker_barrier(c.worker[0], NULL, 0, 100, &err), TENREC_ETIMEDOUT);
    assert_false(atomic_load(&loop_was_first));
    assert_non_null(strstr(err.text, "'worker1' did not join"));
    for (size_t i = 0; i < 2; i++)
        tenrec_worker_drop(c.worker[i]);
}

static void *long_barrier(void *arg)
{
    struct together *t = arg;
    tenrec_error err;

    if (tenrec_worker_barrier(t->w, NULL, 0, CLUSTER_LONG_MS, &err) != TENREC_OK)
        t->why = "the first barrier failed";
    return NULL;
}

/* worker1 makes a second barrier while a thread of it waits in the first. */
TEST(gather_completes_a_barrier_when_a_later_barrier_has_failed)
{
    struct together t = { .rank = 1 };
    pthread_t thread;
    struct cluster c;
    tenrec_error err;

    cluster_open(&c, 2, NULL, functions_register);
    t.w = c.worker[1];
    assert_int_equal(pthread_create(&thread, NULL, long_barrier, &t), 0);
    assert_becomes(barriers_open(c.worker[0]));
    assert_int_equal(tenrec_worker_barrier(c.worker[1], NULL, 0, 200, &err), TENREC_ETIMEDOUT);
    assert_becomes(barriers_failed(c.worker[0])); /* the leader may learn of the failure later */
    assert_int_equal(tenrec_worker_barrier(c.worker[0], NULL, 0, CLUSTER_LONG_MS, &err), TENREC_OK);
    pthread_join(thread, NULL);
    if (t.why)
        fail_msg("%s", t.why);
    assert_int_equal(tenrec_worker_barrier(c.worker[0], NULL, 0, CLUSTER_LONG_MS, &err),
                     TENREC_ETIMEDOUT);
    cluster_close(&c, TENREC_GRACEFUL);
}

static void *lone_barrier(void *arg)
{
    struct together *t = arg;
    tenrec_error err;

    if (tenrec_worker_barrier(t->w, NULL, 0, CLUSTER_LONG_MS, &err) != TENREC_EPEER_LOST)
        t->why = "no lost peer";
    else if (!strstr(err.text, "'worker1' was lost"))
        t->why = "the lost one is not named";
    return NULL;
}

TEST(gather_fails_a_barrier_when_a_missing_member_is_lost)
{
    struct together t = { .rank = 0 };
    pthread_t thread;
    struct cluster c;
    tenrec_error err;

    cluster_open(&c, 2, NULL, functions_register);
    /* The leader notices on a connection of its own. */
    assert_int_equal(tenrec_rpc_sync(c.worker[0], "worker1", "noop", NULL, 0, NULL, NULL, &err),
                     TENREC_OK);
    t.w = c.worker[0];
    assert_int_equal(pthread_create(&thread, NULL, lone_barrier, &t), 0);
    assert_becomes(barriers_open(c.worker[0]));
    tenrec_worker_drop(c.worker[1]);
    pthread_join(thread, NULL);
    if (t.why)
        fail_msg("%s", t.why);
    tenrec_worker_drop(c.worker[0]);
}

/* worker1 is gone before worker0, the leader, comes to the barrier. */
static void be_left_alone(bool connected)
{
    struct cluster c;
    tenrec_error err;

    cluster_open(&c, 2, NULL, functions_register);
    if (connected)
        functions_must_call_add(c.worker[0], "worker1");
    tenrec_worker_drop(c.worker[1]);
    assert_int_equal(tenrec_worker_barrier(c.worker[0], NULL, 0, CLUSTER_LONG_MS, &err),
                     TENREC_EPEER_LOST);
    assert_text_has(err.text, "'worker1' was lost");
    tenrec_worker_drop(c.worker[0]);
}

TEST(gather_names_a_member_that_was_lost_before_the_gather)
{
    be_left_alone(true);
}

TEST(gather_names_a_lost_member_that_was_never_connected)
{
    be_left_alone(false);
}

static void wait_out_barrier(struct tenrec_worker *w, int64_t ms)
{
    const uint64_t since_ns = clock_now_ns();
    tenrec_error err;

    assert_int_equal(tenrec_worker_barrier(w, NULL, 0, ms, &err), TENREC_ETIMEDOUT);
    assert_true(clock_now_ns() - since_ns >= (uint64_t)ms * 1000000u);
}

/* The leader, and then one that follows: a gather that failed for one has failed for all. */
TEST(gather_ends_no_earlier_than_its_limit)
{
    struct cluster c;

    for (size_t who = 0; who < 2; who++) {
        cluster_open(&c, 2, NULL, functions_register);
        for (int64_t ms = 50; ms <= 200; ms *= 2)
            wait_out_barrier(c.worker[who], ms);
        for (size_t i = 0; i < 2; i++)
            tenrec_worker_drop(c.worker[i]);
    }
}

TEST(gather_refuses_a_set_without_oneself)
{
    static const char *const names[] = { "worker1" }, *twice[] = { "worker0", "worker0" };
    static const char *const none[] = { NULL };
    struct cluster c;
    tenrec_error err;

    cluster_open(&c, 2, NULL, functions_register);
    assert_int_equal(tenrec_worker_barrier(c.worker[0], names, 1, 100, &err), TENREC_EINVAL);
    assert_int_equal(tenrec_worker_barrier(c.worker[0], twice, 2, 100, &err), TENREC_EINVAL);
    assert_int_equal(tenrec_worker_barrier(c.worker[0], NULL, 0, -1, &err), TENREC_EINVAL);
    assert_int_equal(tenrec_worker_barrier(c.worker[0], none, 1, 100, &err), TENREC_EINVAL);
    assert_string_equal(err.text, "barrier: name 0 of the set is NULL");
    assert_int_equal(tenrec_worker_all_gather(c.worker[0], NULL, none, 1, 100, NULL, &err),
                     TENREC_EINVAL);
    assert_string_equal(err.text, "gather: name 0 of the set is NULL");
    cluster_close(&c, TENREC_GRACEFUL);
}

/* The set as a peer writes it: seven names, but six ends of line. */
TEST(gather_refuses_a_gather_whose_set_is_malformed)
{
    struct tenrec_value item[] = {
        tenrec_value_text("worker0\nworker0\nworker0\nworker0\nworker0\nworker0\nworker0"),
        tenrec_value_int(0), tenrec_value_int(1000), tenrec_value_nil()
    };
    struct tenrec_value array = tenrec_value_array(item, 4);
    struct call_spec spec = { .function = "all_gather", .deadline_ns = UINT64_MAX };
    struct tenrec_future *f = NULL;
    struct tenrec_msg *msg = NULL;
    struct cluster c;
    tenrec_error err;

    cluster_open(&c, 2, NULL, functions_register);
    assert_int_equal(codec_write_value(&array, TENREC_MSG_GATHER, &msg, &err), TENREC_OK);
    assert_int_equal(worker_enter(c.worker[1], &err), TENREC_OK);
    assert_int_equal(call_send(c.worker[1], &spec, msg, &f, &err), TENREC_OK);
    worker_leave(c.worker[1]);
    assert_int_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), TENREC_EINVAL);
    tenrec_future_drop(f);
    cluster_close(&c, TENREC_GRACEFUL);
}

/* ---- trees of two children: 1 and 2 below 0, 3 and 4 below 1, 5 and 6 below 2 ------------------
 */

enum { TREE = 7 };

static void tree_open(struct cluster *c)
{
    cluster_open(c, TREE, NULL, functions_register);
    for (size_t i = 0; i < TREE; i++)
        gathers_of(c->worker[i])->degree = 2;
}

/* Runs `run` for all members but one (TREE: for all). */
static void tree_start(struct cluster *c, struct together *t, pthread_t *thread, size_t but,
                       void *(*run)(void *), const char *const *names)
{
    for (size_t i = 0; i < TREE; i++) {
        t[i] = (struct together){ c->worker[i], i, names, TREE, 5, NULL };
        if (i != but)
            assert_int_equal(pthread_create(&thread[i], NULL, run, &t[i]), 0);
    }
}

static void tree_finish(const struct together *t, const pthread_t *thread, size_t but)
{
    for (size_t i = 0; i < TREE; i++)
        if (i != but)
            pthread_join(thread[i], NULL);
    for (size_t i = 0; i < TREE; i++)
        if (i != but && t[i].why)
            fail_msg("worker %zu: %s", i, t[i].why);
}

/* All members of a new group do it together. */
static void tree_run(void *(*run)(void *), const char *const *names)
{
    struct together t[TREE];
    pthread_t thread[TREE];
    struct cluster c;

    tree_open(&c);
    tree_start(&c, t, thread, TREE, run, names);
    tree_finish(t, thread, TREE);
    cluster_close(&c, TENREC_GRACEFUL);
}

TEST(gather_collects_the_values_of_a_tree)
{
    static const char *const names[] = { "worker6", "worker5", "worker4", "worker3",
                                         "worker2", "worker1", "worker0" };
    const char *const *sets[] = { NULL, names };
    struct together t[TREE];
    pthread_t thread[TREE];
    struct cluster c;

    tree_open(&c);
    for (size_t i = 0; i < 2; i++) {
        tree_start(&c, t, thread, TREE, gather, sets[i]);
        tree_finish(t, thread, TREE);
    }
    cluster_close(&c, TENREC_GRACEFUL);
}

/* Some are sent in a message, some beside it. */
static void *gather_tensors(void *arg)
{
    struct together *t = arg;
    const int64_t n = t->rank % 2 ? 3 : 1 << 18;
    struct tenrec_value mine, *all = NULL;
    struct tenrec_tensor *tensor;
    tenrec_error err;

    if (tenrec_tensor_new(TENREC_FLOAT32, 1, &n, &tensor, &err) != TENREC_OK) {
        t->why = "no tensor";
        return NULL;
    }
    for (int64_t i = 0; i < n; i++)
        ((float *)tenrec_tensor_desc(tensor)->data)[i] = (float)t->rank;
    mine = tenrec_value_tensor(tensor);
    if (tenrec_worker_all_gather(t->w, &mine, t->names, t->n, CLUSTER_LONG_MS, &all, &err) !=
        TENREC_OK)
        t->why = "gather failed";
    for (size_t k = 0; all && k < TREE; k++) {
        const char name[] = { 'w', 'o', 'r', 'k', 'e', 'r', (char)('0' + k), '\0' };
        const struct tenrec_value *v = tenrec_value_find(all, name);
        size_t count = 0;
        void *data;

        if (!v || v->type != TENREC_VALUE_TENSOR ||
            tenrec_tensor_expect(v->u.tensor, TENREC_FLOAT32, 1, &data, &count, &err) !=
                TENREC_OK ||
            count != (k % 2 ? 3 : 1 << 18) || ((float *)data)[0] != (float)k ||
            ((float *)data)[count - 1] != (float)k)
            t->why = "wrong tensor";
    }
    tenrec_value_drop(all);
    tenrec_tensor_drop(tensor);
    return NULL;
}

TEST(gather_collects_the_tensors_of_a_tree)
{
    tree_run(gather_tensors, NULL);
}

/* All names are as good as none. */
static void *barrier_by_names_or_none(void *arg)
{
    struct together *t = arg;
    tenrec_error err;

    if (tenrec_worker_barrier(t->w, t->rank % 2 ? t->names : NULL, TREE, CLUSTER_LONG_MS, &err) !=
        TENREC_OK)
        t->why = "the barrier failed";
    return NULL;
}

TEST(gather_of_all_names_meets_that_of_the_group)
{
    static const char *const names[] = { "worker6", "worker5", "worker4", "worker3",
                                         "worker2", "worker1", "worker0" };

    tree_run(barrier_by_names_or_none, names);
}

static void *barrier_without_worker1(void *arg)
{
    struct together *t = arg;
    tenrec_error err;

    if (tenrec_worker_barrier(t->w, NULL, 0, CLUSTER_LONG_MS, &err) == TENREC_OK)
        t->why = "the barrier succeeded";
    else if (err.code == TENREC_ETIMEDOUT)
        t->why = "only the limit ended the barrier";
    else if (!strstr(err.text, "'worker1'") && strcmp(err.worker_name, "worker1") != 0)
        t->why = "the lost one is not named";
    return NULL;
}

TEST(gather_fails_for_all_when_an_inner_member_of_the_tree_is_lost)
{
    struct together t[TREE];
    pthread_t thread[TREE];
    struct cluster c;

    tree_open(&c);
    tree_start(&c, t, thread, 1, barrier_without_worker1, NULL);
    assert_becomes(barriers_open(c.worker[0]) && barriers_open(c.worker[1]));
    tenrec_worker_drop(c.worker[1]);
    tree_finish(t, thread, 1);
    for (size_t i = 0; i < TREE; i++)
        if (i != 1)
            tenrec_worker_drop(c.worker[i]);
}

static void *barrier_without_worker3(void *arg)
{
    struct together *t = arg;
    tenrec_error err;

    if (tenrec_worker_barrier(t->w, NULL, 0, 1000, &err) != TENREC_ETIMEDOUT)
        t->why = "no timeout";
    else if (t->rank == 1 && !strstr(err.text, "'worker3'")) /* its parent */
        t->why = "the missing one is not named";
    return NULL;
}

TEST(gather_names_a_missing_leaf_of_the_tree_and_stays_in_step)
{
    struct together t[TREE];
    pthread_t thread[TREE];
    struct cluster c;
    tenrec_error err;

    tree_open(&c);
    tree_start(&c, t, thread, 3, barrier_without_worker3, NULL);
    tree_finish(t, thread, 3);
    assert_int_equal(tenrec_worker_barrier(c.worker[3], NULL, 0, CLUSTER_LONG_MS, &err),
                     TENREC_ETIMEDOUT);
    tree_start(&c, t, thread, TREE, gather, NULL);
    tree_finish(t, thread, TREE);
    cluster_close(&c, TENREC_GRACEFUL);
}

TEST_MAIN(cluster_use(argv[1]), NULL, NULL)
