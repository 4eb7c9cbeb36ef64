/* SPDX-License-Identifier: Apache-2.0 */
/* start_test.c - starting with names, backends and options: groups G2 and TP-A of
 * docs/internals/parity.md. */
#include <tenrec/backend.h>
#include <tenrec/store.h>

#include "../support/debug_info.h"
#include "own.h"
#include "parity_functions.h"

#include <stdatomic.h>

static tenrec_status make(const struct tenrec_test *t, const char *key, const char *value,
                          struct tenrec_worker **ret, tenrec_error *err)
{
    return own_worker(t, functions_setup, key, value, ret, err);
}

/* ---- G2: init ------------------------------------------------------------------------- */

static void name_is_refused_by_all(const struct tenrec_test *t, const char *name, const char *text)
{
    struct tenrec_worker *w = NULL;
    tenrec_error err;

    assert_status(make(t, "worker.name", name, &w, &err), &err);
    assert_int_equal(tenrec_init_rpc(w, &err), TENREC_EGROUP);
    assert_text_has(err.text, text);
    tenrec_worker_drop(w);
}

/* A backend of the program: a wrapper that lets everything through. */
static atomic_int constructed, inited;

static tenrec_status construct_own(void *opts, tenrec_error *err)
{
    (void)opts, (void)err;
    atomic_fetch_add(&constructed, 1);
    return TENREC_OK;
}

static tenrec_status init_own(const struct tenrec_init *in, struct tenrec_agent *self,
                              tenrec_error *err)
{
    static const struct tenrec_agent_ops ops = { .size = sizeof ops };

    (void)in, (void)err;
    self->ops = &ops;
    atomic_fetch_add(&inited, 1);
    return TENREC_OK;
}

static const struct tenrec_plugin own_plugin = { TENREC_PLUGIN_HEADER, .name = "own",
                                                 .version = "1", .flags = TENREC_PLUGIN_WRAPS,
                                                 .summary = "of this program" };

/* test_register_rpc_backend_and_set_and_start_rpc_backend */
static tenrec_status backend_of_the_program_is_registered_and_started(const struct tenrec_test *t,
                                                                      tenrec_error *err)
{
    struct tenrec_process_group *pg = meet(t);
    struct tenrec_worker *w = NULL;

    if (t->rank == 0) {
        assert_false(tenrec_backend_registered("own"));
        assert_status(tenrec_register_backend(&own_plugin, construct_own, init_own, err), err);
        assert_true(tenrec_backend_registered("own"));
        assert_int_equal(tenrec_register_backend(&own_plugin, construct_own, init_own, err),
                         TENREC_EEXIST);
    }
    barrier(pg);
    assert_status(make(t, NULL, NULL, &w, err), err);
    assert_status(tenrec_init_rpc(w, err), err);
    add_next(t, w);
    barrier(pg);
    assert_true(atomic_load(&constructed) >= t->world_size);
    assert_int_equal(atomic_load(&inited), t->world_size);
    leave(w);
    tenrec_worker_drop(w);
    barrier(pg);
    if (t->rank == 0)
        assert_status(tenrec_plugin_unload("own", err), err);
    tenrec_process_group_drop(pg);
    return TENREC_OK;
}

/* test_duplicate_name */
static tenrec_status init_fails_when_all_have_one_name(const struct tenrec_test *t,
                                                       tenrec_error *err)
{
    (void)err;
    name_is_refused_by_all(t, "duplicate_name", "duplicate_name");
    return TENREC_OK;
}

/* test_duplicate_name_2 */
static tenrec_status init_fails_when_two_have_one_name(const struct tenrec_test *t,
                                                       tenrec_error *err)
{
    char name[TENREC_NAME_MAX + 1];

    (void)err;
    name_is_refused_by_all(t, tenrec_test_worker_name(t->rank % (t->world_size - 1), name),
                           "worker0");
    return TENREC_OK;
}

/* test_reinit */
static tenrec_status init_is_refused_when_the_worker_runs(const struct tenrec_test *t,
                                                          tenrec_error *err)
{
    assert_int_equal(tenrec_init_rpc(t->worker, err), TENREC_EBUSY);
    add_next(t, t->worker);
    return TENREC_OK;
}

/* test_world_size_one: alone, under a name of its own */
static tenrec_status worker_is_alone_in_its_world(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_tensor *ones = filled(2, 1);
    const struct tenrec_value args[] = { tenrec_value_tensor(ones), tenrec_value_tensor(ones) };
    struct tenrec_future *f;

    (void)err;
    assert_string_equal(t->name, "me");
    assert_filled(ask(t, "me", "add", args, 2), 2, 2);
    f = ask_async(t, "me", "add", args, 2);
    wait_ok(f);
    assert_true(is_filled(tenrec_future_value(f), 2, 2));
    tenrec_future_drop(f);
    tenrec_tensor_drop(ones);
    return TENREC_OK;
}

/* test_invalid_names */
static tenrec_status names_are_checked(const struct tenrec_test *t, tenrec_error *err)
{
    char long_name[501];
    const char *const names[] = { "abc*", "' '", "''", long_name };
    struct tenrec_worker *w = NULL;

    memset(long_name, 'a', 500);
    long_name[500] = '\0';
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(make(t, "worker.name", names[i], &w, err), TENREC_ECONFIG);
        assert_text_has(err->text, "worker.name");
        assert_null(w);
    }
    return TENREC_OK;
}

/* test_init_pg_then_rpc */
static tenrec_status process_group_and_then_calls(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_process_group *pg = meet(t);
    struct tenrec_worker *w = NULL;

    barrier(pg);
    assert_status(make(t, NULL, NULL, &w, err), err);
    assert_status(tenrec_init_rpc(w, err), err);
    add_next(t, w);
    barrier(pg);
    leave(w);
    tenrec_worker_drop(w);
    tenrec_process_group_drop(pg);
    return TENREC_OK;
}

/* test_init_rpc_then_pg */
static tenrec_status calls_and_then_a_process_group(const struct tenrec_test *t, tenrec_error *err)
{
    struct tenrec_process_group *pg = meet(t);

    (void)err;
    add_next(t, t->worker);
    barrier(pg);
    tenrec_process_group_drop(pg);
    return TENREC_OK;
}

/* test_init_rpc_twice */
static tenrec_status worker_starts_again_after_its_shutdown(const struct tenrec_test *t,
                                                            tenrec_error *err)
{
    struct tenrec_process_group *pg = meet(t);

    leave(t->worker);
    barrier(pg);
    assert_status(tenrec_init_rpc(t->worker, err), err);
    add_next(t, t->worker);
    tenrec_process_group_drop(pg);
    return TENREC_OK;
}

/* test_wrong_types, test_cannot_infer_backend_from_options,
 * test_mismatched_type_for_options: what the configuration cannot mean is refused
 * before anything starts, and said with its place */
static tenrec_status wrong_configurations_are_refused(const struct tenrec_test *t,
                                                      tenrec_error *err)
{
    static const struct {
        const char *key, *value, *text;
    } wrong[] = {
        { "backend", "TENSORPIPE", "TENSORPIPE" },
        { "backend", "[tensorpipe]", "backend" },
        { "backends.tensorpipe.options", "5", "options" },
        { "backends.tensorpipe.options", "{ no_such_option: 1 }", "no_such_option" },
        { "backends.tensorpipe.options", "{ channels: {} }", "channels" },
        { "worker.num_worker_threads", "many", "num_worker_threads" },
        { "worker.rpc_timeout", "-1s", "rpc_timeout" },
    };
    struct tenrec_worker *w = NULL;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (make(t, wrong[i].key, wrong[i].value, &w, err) != TENREC_ECONFIG)
            fail_msg("%s=%s: %s", wrong[i].key, wrong[i].value, err->text);
        assert_text_has(err->text, wrong[i].text);
        assert_null(w);
    }
    return TENREC_OK;
}

/* ---- TP-A: options ----------------------------------------------------------------------- */

struct wanted {
    const char *key;
    char value[64];
};

static void take(void *arg, const char *key, const char *value)
{
    struct wanted *w = arg;

    if (strcmp(key, w->key) == 0)
        snprintf(w->value, sizeof w->value, "%s", value);
}

static void tells(struct tenrec_worker *w, const char *key, const char *value)
{
    struct wanted wanted = { .key = key };

    debug_info_each(w, take, &wanted);
    assert_string_equal(wanted.value, value);
}

/* test_infer_backend_from_options: nothing names one */
static tenrec_status backend_is_tensorpipe_when_none_is_named(const struct tenrec_test *t,
                                                              tenrec_error *err)
{
    struct tenrec_config *config = NULL;
    struct tenrec_worker *w = NULL;
    char url[512];

    snprintf(url, sizeof url, "%s?rank=%d&world_size=%d", t->init_method, t->rank, t->world_size);
    assert_status(tenrec_config_parse("worker: { name: 'worker{rank}' }", NULL, &config, err), err);
    assert_status(tenrec_config_set(config, "init_method", url, err), err);
    assert_status(tenrec_worker_new(config, &w, err), err);
    tenrec_config_drop(config);
    assert_status(tenrec_init_rpc(w, err), err);
    tells(w, "worker.backend", "tensorpipe");
    leave(w);
    tenrec_worker_drop(w);
    return TENREC_OK;
}

/* test_set_and_get_num_worker_threads */
static tenrec_status pool_has_the_threads_of_the_options(const struct tenrec_test *t,
                                                         tenrec_error *err)
{
    (void)err;
    tells(t->worker, "agent.thread_pool_size", "27");
    return TENREC_OK;
}

/* test_tensorpipe_set_default_timeout */
static tenrec_status timeout_is_that_of_the_options(const struct tenrec_test *t, tenrec_error *err)
{
    (void)err;
    assert_int_equal(tenrec_worker_get_rpc_timeout(t->worker), 100000);
    return TENREC_OK;
}

int main(int argc, char **argv)
{
    static const char *const called_me[] = { "worker.name=me", NULL };
    static const char *const timeout[] = { "worker.rpc_timeout=100s", NULL };
    static const char *const own[] = { "backends.own.plugin=own", "backends.own.wraps=tensorpipe",
                                       NULL };
    const struct parity_case cases[] = {
        PARITY(backend_of_the_program_is_registered_and_started, .flags = TENREC_TEST_NO_RPC,
               .backend = "own", .settings = own),
        PARITY(init_fails_when_all_have_one_name, .flags = TENREC_TEST_NO_RPC),
        PARITY(init_fails_when_two_have_one_name, .flags = TENREC_TEST_NO_RPC),
        PARITY(init_is_refused_when_the_worker_runs),
        PARITY(worker_is_alone_in_its_world, .world_size = 1, .settings = called_me),
        PARITY(names_are_checked, .flags = TENREC_TEST_NO_RPC),
        PARITY(process_group_and_then_calls, .flags = TENREC_TEST_NO_RPC),
        PARITY(calls_and_then_a_process_group),
        PARITY(worker_starts_again_after_its_shutdown),
        PARITY(wrong_configurations_are_refused, .flags = TENREC_TEST_NO_RPC),
        PARITY(backend_is_tensorpipe_when_none_is_named, .flags = TENREC_TEST_NO_RPC),
        PARITY(pool_has_the_threads_of_the_options, .num_worker_threads = 27),
        PARITY(timeout_is_that_of_the_options, .settings = timeout),
    };

    return parity_run(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
