/* SPDX-License-Identifier: Apache-2.0 */
/* life_test.c - meeting, leaving and losing: groups G14 and G15 of
 * docs/internals/parity.md. */
#include "own.h"
#include "parity_functions.h"

#include <pthread.h>

/* ---- G14: together ----------------------------------------------------------------------------
 */

/* test_all_gather */
static tenrec_status gather_has_what_each_gave(const struct tenrec_test *t, tenrec_error *err)
{
    const struct tenrec_value mine = tenrec_value_int(t->rank);
    struct tenrec_value *all = NULL;
    char name[TENREC_NAME_MAX + 1];

    assert_status(tenrec_worker_all_gather(t->worker, &mine, NULL, 0,
                                           tenrec_test_stretch_ms(LONG_MS), &all, err),
                  err);
    assert_int_equal(all->n, t->world_size);
    for (int32_t i = 0; i < t->world_size; i++)
        assert_int_equal(tenrec_value_find(all, tenrec_test_worker_name(i, name))->u.integer, i);
    tenrec_value_drop(all);
    return TENREC_OK;
}

/* test_all_gather_timeout: a member is late; leader and followers name it */
static tenrec_status gather_times_out_when_one_is_late(const struct tenrec_test *t,
                                                       tenrec_error *err)
{
    struct tenrec_process_group *pg = meet(t);
    const struct tenrec_value mine = tenrec_value_int(t->rank);
    struct tenrec_value *all = NULL;

    if (t->rank != 2) {
        /* The first limit counts, that of the leader here: the others hear in time. */
        const int64_t ms = t->rank == 0 ? 100 : tenrec_test_stretch_ms(LONG_MS);
        assert_int_equal(tenrec_worker_all_gather(t->worker, &mine, NULL, 0, ms, &all, err),
                         TENREC_ETIMEDOUT);
        if (t->rank == 0) /* the others may run out of time before it tells them */
            assert_text_has(err->text, "worker2");
        assert_null(all);
    }
    barrier(pg);
    tenrec_process_group_drop(pg);
    return TENREC_OK;
}

/* Counts on the first of `names` between two barriers. */
static void count_between(const struct tenrec_test *t, const char *const *names, size_t n,
                          bool alone)
{
    char name[TENREC_NAME_MAX + 1];
    int32_t leader = 0;
    tenrec_error err;

    while (strcmp(tenrec_test_worker_name(leader, name), names[0]) != 0)
        leader++;
    assert_status(tenrec_worker_barrier(t->worker, names, n, tenrec_test_stretch_ms(LONG_MS), &err),
                  &err);
    tenrec_value_drop(ask(t, names[0], "count", NULL, 0));
    assert_status(tenrec_worker_barrier(t->worker, names, n, tenrec_test_stretch_ms(LONG_MS), &err),
                  &err);
    if (alone)
        assert_int_equal(count_of(leader), n);
}

static const char *const all_names[] = { "worker0", "worker1", "worker2", "worker3" };
static const char *const even_names[] = { "worker0", "worker2" };
static const char *const odd_names[] = { "worker1", "worker3" };

/* test_rpc_barrier_all */
static tenrec_status barrier_of_all(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    count_between(t, all_names, 4, true);
    return TENREC_OK;
}

/* test_rpc_barrier_subset */
static tenrec_status barrier_of_two_sets(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    count_between(t, t->rank % 2 ? odd_names : even_names, 2, true);
    return TENREC_OK;
}

/* test_rpc_barrier_partial_subset */
static tenrec_status barrier_of_some(const struct tenrec_test *t, tenrec_error *err)
{
    const char *me = t->name;

    (void)err;
    if (t->rank % 2)
        count_between(t, odd_names, 2, true);
    else
        count_between(t, &me, 1, true);
    return TENREC_OK;
}

static void *count_in_thread(void *arg)
{
    const struct tenrec_test *t = arg;
    tenrec_error err;

    for (int i = 0; i < 2; i++)
        if (tenrec_worker_barrier(t->worker, all_names, 4, tenrec_test_stretch_ms(LONG_MS), &err) !=
            TENREC_OK)
            return arg;
    return NULL;
}

/* test_rpc_barrier_multithreaded */
static tenrec_status barrier_of_many_threads(const struct tenrec_test *t, tenrec_error *err)
{
    pthread_t thread[3];
    void *failed;

    (void)err;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, count_in_thread, (void *)(uintptr_t)t),
                         0);
    for (int i = 0; i < 3; i++) {
        pthread_join(thread[i], &failed);
        assert_null(failed);
    }
    return TENREC_OK;
}

/* worker0 drives worker1, then worker2; the others have nothing to do. */
static void uneven_workload(const struct tenrec_test *t)
{
    struct tenrec_tensor *ones = filled(100, 1);
    const struct tenrec_value arg = tenrec_value_tensor(ones);
    struct tenrec_future *f[30];

    for (int phase = 1; phase <= 2 && t->rank == 0; phase++) {
        for (int i = 0; i < 30; i++)
            f[i] = ask_async(t, next_worker(t, phase), "heavy", &arg, 1);
        for (int i = 0; i < 30; i++) {
            assert_int_equal(future_int(f[i]), 0);
            tenrec_future_drop(f[i]);
        }
    }
    tenrec_tensor_drop(ones);
}

/* test_graceful_shutdown_with_uneven_workload */
static tenrec_status graceful_shutdown_waits_for_an_uneven_workload(const struct tenrec_test *t,
                                                                    tenrec_error *err)
{
    (void)err;
    uneven_workload(t);
    leave(t->worker); /* the idle ones long before worker0 */
    return TENREC_OK;
}

/* test_wait_all_workers_dense, test_wait_all_workers_twice_dense */
static tenrec_status barrier_waits_for_an_uneven_workload(const struct tenrec_test *t,
                                                          tenrec_error *err)
{
    struct tenrec_process_group *pg = meet(t);

    uneven_workload(t);
    for (int i = 0; i < 2; i++)
        assert_status(
            tenrec_worker_barrier(t->worker, NULL, 0, tenrec_test_stretch_ms(LONG_MS), err), err);
    barrier(pg);
    assert_status(
        tenrec_shutdown(t->worker, TENREC_IMMEDIATE, tenrec_test_stretch_ms(LONG_MS), err), err);
    tenrec_process_group_drop(pg);
    return TENREC_OK;
}

/* test_wait_all_workers_timeout */
static tenrec_status graceful_shutdown_times_out_when_one_does_not_come(const struct tenrec_test *t,
                                                                        tenrec_error *err)
{
    struct tenrec_process_group *pg = meet(t);

    if (t->rank != 0) {
        assert_int_equal(tenrec_shutdown(t->worker, TENREC_GRACEFUL, 100, err), TENREC_ETIMEDOUT);
        assert_false(tenrec_worker_running(t->worker));
    }
    barrier(pg);
    tenrec_process_group_drop(pg);
    return TENREC_OK;
}

/* test_shutdown_followed_by_rpc */
static tenrec_status calls_are_refused_after_the_shutdown(const struct tenrec_test *t,
                                                          tenrec_error *err)
{
    add_next(t, t->worker);
    leave(t->worker);
    ask_fails(t, next_worker(t, 1), "add", TENREC_TIMEOUT_DEFAULT, TENREC_ESHUTDOWN, err);
    return TENREC_OK;
}

/* test_multi_layer_nested_async_rpc: the body ends at once, and so does each
 * function; the shutdown waits for the whole chain */
static tenrec_status graceful_shutdown_waits_for_chains_of_calls(const struct tenrec_test *t,
                                                                 tenrec_error *err)
{
    const struct tenrec_value ttl = tenrec_value_int(19);

    (void)err;
    tenrec_future_drop(ask_async(t, next_worker(t, 1), "layers", &ttl, 1));
    leave(t->worker);
    assert_int_equal(layers_run(), 20 * t->world_size);
    return TENREC_OK;
}

/* test_local_shutdown */
static tenrec_status immediate_shutdown_waits_for_nobody(const struct tenrec_test *t,
                                                         tenrec_error *err)
{
    assert_status(
        tenrec_shutdown(t->worker, TENREC_IMMEDIATE, tenrec_test_stretch_ms(LONG_MS), err), err);
    return TENREC_OK;
}

/* test_local_shutdown_with_rpc */
static tenrec_status immediate_shutdown_after_calls(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_process_group *pg = meet(t);

    add_next(t, t->worker);
    barrier(pg);
    assert_status(
        tenrec_shutdown(t->worker, TENREC_IMMEDIATE, tenrec_test_stretch_ms(LONG_MS), err), err);
    tenrec_process_group_drop(pg);
    return TENREC_OK;
}

/* test_shutdown_errors: the followers leave in a wrong way; the leader hears of
 * it within its limit */
static tenrec_status graceful_shutdown_fails_when_others_just_leave(const struct tenrec_test *t,
                                                                    tenrec_error *err)
{
    struct tenrec_process_group *pg = meet(t);

    if (t->rank != 0) {
        assert_status(
            tenrec_shutdown(t->worker, TENREC_IMMEDIATE, tenrec_test_stretch_ms(LONG_MS), err),
            err);
        barrier(pg);
    } else {
        barrier(pg);
        assert_int_not_equal(tenrec_shutdown(t->worker, TENREC_GRACEFUL, 200, err), TENREC_OK);
        assert_text_has(err->text, "(\"worker");
    }
    tenrec_process_group_drop(pg);
    return TENREC_OK;
}

/* ---- G15: losses -------------------------------------------------------------------------------
 */

/* test_handle_send_exceptions: in processes, and the callee is killed */
static tenrec_status calls_to_one_that_is_gone_fail(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_future *f;
    tenrec_error why;

    assert_status(tenrec_worker_barrier(t->worker, NULL, 0, tenrec_test_stretch_ms(LONG_MS), err),
                  err);
    if (t->rank == 2)
        tenrec_test_die(t);
    if (t->rank != 1)
        return TENREC_OK;
    assert_status(tenrec_test_wait_until_node_failure(t->worker, 2, TENREC_OK, LONG_MS, &why, err),
                  err);
    f = ask_async(t, "worker2", "noop", NULL, 0);
    tenrec_future_wait(f, tenrec_test_stretch_ms(LONG_MS), err);
    assert_true(err->code == TENREC_EPEER_LOST || err->code == TENREC_ECONNECT);
    assert_string_equal(err->worker_name, "worker2");
    tenrec_future_drop(f);
    return TENREC_OK;
}

/* test_deadlock: worker1's call is answered while the others wait for it in the
 * start of a process group */
static tenrec_status callee_answers_while_it_waits_elsewhere(const struct tenrec_test *t,
                                                             tenrec_error *err)
{
    struct tenrec_process_group *pg;

    (void)err;
    if (t->rank == 1)
        add_next(t, t->worker);
    pg = meet(t);
    barrier(pg);
    tenrec_process_group_drop(pg);
    return TENREC_OK;
}

int main(int argc, char **argv)
{
    static const struct parity_case cases[] = {
        PARITY(gather_has_what_each_gave),
        PARITY(gather_times_out_when_one_is_late, .flags = TENREC_TEST_UNCLEAN),
        PARITY(barrier_of_all),
        PARITY(barrier_of_two_sets),
        PARITY(barrier_of_some),
        PARITY(barrier_of_many_threads),
        PARITY(graceful_shutdown_waits_for_an_uneven_workload),
        PARITY(barrier_waits_for_an_uneven_workload),
        PARITY(graceful_shutdown_times_out_when_one_does_not_come, .flags = TENREC_TEST_UNCLEAN),
        PARITY(calls_are_refused_after_the_shutdown),
        PARITY(graceful_shutdown_waits_for_chains_of_calls),
        PARITY(immediate_shutdown_waits_for_nobody),
        PARITY(immediate_shutdown_after_calls),
        PARITY(graceful_shutdown_fails_when_others_just_leave),
        PARITY(calls_to_one_that_is_gone_fail, .mode = TENREC_TEST_PROCESSES),
        PARITY(callee_answers_while_it_waits_elsewhere),
    };

    return parity_run(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
