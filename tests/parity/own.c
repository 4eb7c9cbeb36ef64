/* SPDX-License-Identifier: Apache-2.0 */
#include "own.h"

tenrec_status own_worker(const struct tenrec_test *t, tenrec_test_setup_fn *setup, const char *key,
                         const char *value, struct tenrec_worker **ret, tenrec_error *err)
{
    struct tenrec_config *config = NULL;
    tenrec_status st = tenrec_test_make_config(t, &config, err);

    if (st == TENREC_OK && key)
        st = tenrec_config_set(config, key, value, err);
    if (st == TENREC_OK)
        st = tenrec_worker_new(config, ret, err);
    if (st == TENREC_OK)
        st = setup(*ret, t->rank, NULL, err);
    tenrec_config_drop(config);
    return st;
}

struct tenrec_process_group *meet(const struct tenrec_test *t)
{
    struct tenrec_process_group *pg = NULL;
    tenrec_error err;

    assert_status(tenrec_test_initialize_pg(t->init_method, t->rank, t->world_size, &pg, &err),
                  &err);
    return pg;
}

void barrier(struct tenrec_process_group *pg)
{
    tenrec_error err;

    assert_status(tenrec_process_group_barrier(pg, tenrec_test_stretch_ms(LONG_MS), &err), &err);
}

static void add(struct tenrec_worker *w, const char *to, int64_t x)
{
    const struct tenrec_value args[] = { tenrec_value_int(x), tenrec_value_int(1) };
    struct tenrec_value *sum = NULL;
    tenrec_error err;

    assert_status(tenrec_rpc_sync(w, to, "add", args, 2, NULL, &sum, &err), &err);
    assert_int_equal(take_int(sum), x + 1);
}

void add_next(const struct tenrec_test *t, struct tenrec_worker *w)
{
    add(w, next_worker(t, 1), t->rank);
}

void add_there(struct tenrec_worker *w, const char *to)
{
    add(w, to, 1);
}

void leave(struct tenrec_worker *w)
{
    tenrec_error err;

    assert_status(tenrec_shutdown(w, TENREC_GRACEFUL, tenrec_test_stretch_ms(LONG_MS), &err), &err);
}

void leave_and_drop(struct tenrec_worker *w)
{
    leave(w);
    tenrec_worker_drop(w);
}
