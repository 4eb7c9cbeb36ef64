/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_test.c - groups that change: group TP-E of docs/internals/parity.md. */
#include "own.h"
#include "parity_functions.h"

/* A worker of a dynamic group; of a static one of `world` when that is not 0. */
static tenrec_status make(const struct tenrec_test *t, bool with_rank, int32_t world,
                          struct tenrec_worker **ret, tenrec_error *err)
{
    char url[512];

    if (world > 0)
        snprintf(url, sizeof url, "%s?rank=%d&world_size=%d", t->init_method, t->rank, world);
    else if (with_rank)
        snprintf(url, sizeof url, "%s?rank=%d", t->init_method, t->rank);
    else
        snprintf(url, sizeof url, "%s", t->init_method);
    return own_worker(t, functions_setup, "init_method", url, ret, err);
}

/* Calls all from worker `first` on. */
static void add_to_all(const struct tenrec_test *t, struct tenrec_worker *w, int32_t first)
{
    char name[TENREC_NAME_MAX + 1];

    for (int32_t i = first; i < t->world_size; i++)
        add_there(w, tenrec_test_worker_name(i, name));
}

/* test_dynamic_rpc_init_rpc */
static tenrec_status workers_without_a_world_size_come_and_go(const struct tenrec_test *t,
                                                              tenrec_error *err)
{
    struct tenrec_worker *w = NULL;

    assert_status(make(t, true, 0, &w, err), err);
    assert_status(tenrec_init_rpc(w, err), err);
    leave_and_drop(w);
    return TENREC_OK;
}

/* test_dynamic_rpc_new_rank_can_communicated_with_existing_rank */
static tenrec_status new_workers_call_the_first(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_process_group *pg = meet(t);
    struct tenrec_worker *w = NULL;

    assert_status(make(t, true, 0, &w, err), err);
    if (t->rank == 0)
        assert_status(tenrec_init_rpc(w, err), err);
    barrier(pg);
    if (t->rank != 0) {
        assert_status(tenrec_init_rpc(w, err), err);
        add_there(w, "worker0");
    }
    barrier(pg);
    leave_and_drop(w);
    tenrec_process_group_drop(pg);
    return TENREC_OK;
}

/* test_dynamic_rpc_existing_rank_can_communicate_with_new_rank */
static tenrec_status first_worker_calls_new_ones(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_process_group *pg = meet(t);
    struct tenrec_worker *w = NULL;

    assert_status(make(t, true, 0, &w, err), err);
    if (t->rank == 0)
        assert_status(tenrec_init_rpc(w, err), err);
    barrier(pg);
    if (t->rank != 0)
        assert_status(tenrec_init_rpc(w, err), err);
    barrier(pg);
    if (t->rank == 0)
        add_to_all(t, w, 1);
    barrier(pg);
    leave_and_drop(w);
    tenrec_process_group_drop(pg);
    return TENREC_OK;
}

/* test_dynamic_rpc_init_rpc_without_rank: refused there; here an id is found. */
static tenrec_status workers_without_a_rank_get_the_lowest_free_id(const struct tenrec_test *t,
                                                                   tenrec_error *err)
{
    struct tenrec_process_group *pg = meet(t);
    struct tenrec_worker *w = NULL;
    struct tenrec_worker_info me;

    assert_status(make(t, false, 0, &w, err), err);
    assert_status(tenrec_init_rpc(w, err), err);
    barrier(pg);
    assert_status(tenrec_get_worker_info(w, NULL, &me, err), err);
    assert_in_range(me.id, 0, t->world_size - 1);
    add_to_all(t, w, 0);
    barrier(pg);
    leave_and_drop(w);
    tenrec_process_group_drop(pg);
    return TENREC_OK;
}

/* test_dynamic_and_static_init_rpc_together */
static tenrec_status static_and_dynamic_workers_do_not_mix(const struct tenrec_test *t,
                                                           tenrec_error *err)
{
    struct tenrec_process_group *pg = meet(t);
    const bool last = t->rank == t->world_size - 1;
    struct tenrec_worker *w = NULL;

    assert_status(make(t, true, last ? 0 : t->world_size - 1, &w, err), err);
    if (!last)
        assert_status(tenrec_init_rpc(w, err), err);
    barrier(pg);
    if (last) {
        assert_int_equal(tenrec_init_rpc(w, err), TENREC_EGROUP);
        assert_text_has(err->text, "mixes static and dynamic workers");
    }
    barrier(pg);
    if (!last)
        leave_and_drop(w);
    else
        tenrec_worker_drop(w);
    tenrec_process_group_drop(pg);
    return TENREC_OK;
}

int main(int argc, char **argv)
{
    const struct parity_case cases[] = {
#define CASE(body) PARITY(body, .flags = TENREC_TEST_NO_RPC)
        CASE(workers_without_a_world_size_come_and_go),
        CASE(new_workers_call_the_first),
        CASE(first_worker_calls_new_ones),
        CASE(workers_without_a_rank_get_the_lowest_free_id),
        CASE(static_and_dynamic_workers_do_not_mix),
    };

    return parity_run(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
