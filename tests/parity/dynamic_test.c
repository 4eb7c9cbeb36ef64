/* dynamic_test.c - groups that change: group TP-E of docs/parity.md. */
#include "parity.h"

#include "functions.h"

/* A worker of a dynamic group; of a static one of `world` when that is not 0. */
static tenrec_status make(const struct tenrec_test *t, bool with_rank, int32_t world,
                          struct tenrec_worker **ret, tenrec_error *err)
{
    struct tenrec_config *config = NULL;
    char url[512];
    tenrec_status st = tenrec_test_make_config(t, &config, err);

    if (world > 0)
        snprintf(url, sizeof url, "%s?rank=%d&world_size=%d", t->init_method, t->rank, world);
    else if (with_rank)
        snprintf(url, sizeof url, "%s?rank=%d", t->init_method, t->rank);
    else
        snprintf(url, sizeof url, "%s", t->init_method);
    if (st == TENREC_OK)
        st = tenrec_config_set(config, "init_method", url, err);
    if (st == TENREC_OK)
        st = tenrec_worker_new(config, ret, err);
    if (st == TENREC_OK)
        st = functions_setup(*ret, t->rank, NULL, err);
    tenrec_config_drop(config);
    return st;
}

static struct tenrec_process_group *meet(const struct tenrec_test *t)
{
    struct tenrec_process_group *pg = NULL;
    tenrec_error err;

    assert_status(tenrec_test_initialize_pg(t->init_method, t->rank, t->world_size, &pg, &err),
                  &err);
    return pg;
}

static void barrier(struct tenrec_process_group *pg)
{
    tenrec_error err;

    assert_status(tenrec_process_group_barrier(pg, tenrec_test_ms(LONG_MS), &err), &err);
}

static void add_at(struct tenrec_worker *w, const char *to)
{
    const struct tenrec_value args[] = { tenrec_int(1), tenrec_int(1) };
    struct tenrec_value *sum = NULL;
    tenrec_error err;

    assert_status(tenrec_rpc_sync(w, to, "add", args, 2, NULL, &sum, &err), &err);
    assert_int_equal(take_int(sum), 2);
}

static void leave(struct tenrec_worker *w)
{
    tenrec_error err;

    assert_status(tenrec_shutdown(w, TENREC_GRACEFUL, tenrec_test_ms(LONG_MS), &err), &err);
    tenrec_worker_drop(w);
}

/* test_dynamic_rpc_init_rpc */
static tenrec_status workers_without_a_world_size_come_and_go(const struct tenrec_test *t,
                                                              tenrec_error *err)
{
    struct tenrec_worker *w = NULL;

    assert_status(make(t, true, 0, &w, err), err);
    assert_status(tenrec_init_rpc(w, err), err);
    leave(w);
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
        add_at(w, "worker0");
    }
    barrier(pg);
    leave(w);
    tenrec_process_group_drop(pg);
    return TENREC_OK;
}

/* test_dynamic_rpc_existing_rank_can_communicate_with_new_rank */
static tenrec_status first_worker_calls_new_ones(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_process_group *pg = meet(t);
    struct tenrec_worker *w = NULL;
    char name[32];

    assert_status(make(t, true, 0, &w, err), err);
    if (t->rank == 0)
        assert_status(tenrec_init_rpc(w, err), err);
    barrier(pg);
    if (t->rank != 0)
        assert_status(tenrec_init_rpc(w, err), err);
    barrier(pg);
    for (int32_t i = 1; t->rank == 0 && i < t->world_size; i++) {
        snprintf(name, sizeof name, "worker%d", i);
        add_at(w, name);
    }
    barrier(pg);
    leave(w);
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
    for (int32_t i = 0; i < t->world_size; i++) {
        char name[32];
        snprintf(name, sizeof name, "worker%d", i);
        add_at(w, name);
    }
    barrier(pg);
    leave(w);
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
        leave(w);
    else
        tenrec_worker_drop(w);
    tenrec_process_group_drop(pg);
    return TENREC_OK;
}

int main(int argc, char **argv)
{
    const struct parity_case cases[] = {
#define CASE(body)                                                                                 \
    {                                                                                              \
        .name = "parity_" #body, body,                                                             \
        {                                                                                          \
            .flags = TENREC_TEST_NO_RPC                                                            \
        }                                                                                          \
    }
        CASE(workers_without_a_world_size_come_and_go),
        CASE(new_workers_call_the_first),
        CASE(first_worker_calls_new_ones),
        CASE(workers_without_a_rank_get_the_lowest_free_id),
        CASE(static_and_dynamic_workers_do_not_mix),
    };

    return parity_run(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
