/* SPDX-License-Identifier: Apache-2.0 */
/* debug_info_test.c - the debug info of a worker, local and remote, on the
 * backend named in argv. */

#include "../support/basic_functions.h"
#include "../support/cluster.h"
#include "../support/debug_info.h"
#include "../support/functions.h"
#include "../testing.h"
#include "observe/profiler/profiler.h"

#include <stdlib.h>

static struct cluster two;

static void open_two(void)
{
    static const char *const extra[] = { "worker.num_worker_threads=2", "worker.group=lookers",
                                         NULL };

    cluster_open(&two, 2, extra, functions_register);
}

static void close_two(void)
{
    functions_open_gate();
    cluster_close(&two, TENREC_GRACEFUL);
}

/* Debug info of `to` (NULL: its own) as worker0 reads it. */
static struct tenrec_value *read_info(const char *to)
{
    struct tenrec_value *map = NULL;
    tenrec_error err;

    assert_status(
        tenrec_worker_inspect(two.worker[0], to, TENREC_INSPECT_DEBUG_INFO, NULL, &map, &err),
        &err);
    assert_int_equal(map->type, TENREC_VALUE_MAP);
    return map;
}

static int64_t number(const struct tenrec_value *map, const char *key)
{
    const struct tenrec_value *v = tenrec_value_find(map, key);

    if (!v || v->type != TENREC_VALUE_INT)
        fail_msg("'%s' is no number of the debug info", key);
    return v->u.integer;
}

static const char *text(const struct tenrec_value *map, const char *key)
{
    const struct tenrec_value *v = tenrec_value_find(map, key);

    if (!v || v->type != TENREC_VALUE_TEXT)
        fail_msg("'%s' is no text of the debug info", key);
    return v->u.text;
}

static int64_t number_of(const char *to, const char *key)
{
    struct tenrec_value *map = read_info(to);
    int64_t n = number(map, key);

    tenrec_value_drop(map);
    return n;
}

/* ---- in this process -------------------------------------------------------- */

#define KEYS_MAX 16384

static void add_key(void *arg, const char *key, const char *value)
{
    char *all = arg;
    size_t len = strlen(all);

    (void)value;
    assert_true(len + strlen(key) + 2 < KEYS_MAX);
    snprintf(all + len, KEYS_MAX - len, "%s\n", key);
}

/* Programs compare two looks; whether a connection was made in between is luck. */
TEST(debug_info_has_the_same_keys_before_and_after_connections)
{
    static char before[KEYS_MAX], after[KEYS_MAX];
    tenrec_error err;

    debug_info_each(two.worker[0], add_key, before);
    tenrec_value_drop(read_info("worker1"));
    assert_status(
        tenrec_rpc_sync(two.worker[1], "worker0", "tenrec.ping", NULL, 0, NULL, NULL, &err), &err);
    debug_info_each(two.worker[0], add_key, after);
    assert_string_equal(after, before);
}

TEST(debug_info_has_the_names_of_torch)
{
    static const char *const key[] = {
        "agent.thread_pool_size",    "agent.num_idle_threads",          "agent.client_active_calls",
        "agent.server_active_calls", "agent.server_active_async_calls",
    };
    struct tenrec_value *map = read_info(NULL);

    for (size_t i = 0; i < sizeof key / sizeof key[0]; i++)
        number(map, key[i]);
    assert_int_equal(number(map, "agent.thread_pool_size"), 2);
    tenrec_value_drop(map);
}

TEST(debug_info_counts_references)
{
    static const char *const key[] = {
        "rref.num_owner_rrefs",     "rref.num_pending_users",    "rref.num_forks",
        "rref.num_pending_futures", "rref.num_pending_children", "rref.num_pending_owners",
        "rref.num_confirmed_users", "rref.num_tombstones",
    };
    struct tenrec_value *map = read_info("worker1");

    for (size_t i = 0; i < sizeof key / sizeof key[0]; i++)
        assert_int_equal(number(map, key[i]), 0);
    tenrec_value_drop(map);
}

TEST(debug_info_tells_group_store_and_backend)
{
    struct tenrec_value *map = read_info(NULL);

    assert_string_equal(text(map, "worker.name"), "worker0");
    assert_int_equal(number(map, "worker.id"), 0);
    assert_string_equal(text(map, "worker.backend"), cluster_backend());
    assert_string_equal(text(map, "group.name"), "lookers");
    assert_int_equal(number(map, "group.size"), 2);
    assert_text_has(text(map, "store.name"), "store");
    tenrec_value_drop(map);
}

TEST(debug_info_tells_the_build_of_every_plugin)
{
    struct tenrec_value *map = read_info(NULL);

    assert_string_equal(text(map, "library.version"), tenrec_version_text());
    assert_true(strlen(text(map, "library.build_id")) >= 16);
    if (strcmp(cluster_backend(), "faulty_tensorpipe") == 0) {
        assert_string_equal(text(map, "plugin.faulty.version"), "1.1");
        assert_text_has(text(map, "plugin.faulty.path"), "/faulty.so");
        assert_true(strlen(text(map, "plugin.tensorpipe.build_id")) >= 16);
    }
    tenrec_value_drop(map);
}

TEST(debug_info_has_every_agent_of_the_chain_by_its_name)
{
    struct tenrec_value *map = read_info(NULL);
    bool faulty = false, wire = false;

    for (uint64_t i = 0; i < map->n; i++) {
        const char *key = map->u.map[i].key;
        faulty |= strncmp(key, "faulty_tensorpipe.", 18) == 0;
        wire |= strncmp(key, "tensorpipe.", 11) == 0 || strncmp(key, "inproc.", 7) == 0;
    }
    assert_true(wire);
    assert_int_equal(faulty, strcmp(cluster_backend(), "faulty_tensorpipe") == 0);
    tenrec_value_drop(map);
}

TEST(debug_info_has_each_key_once)
{
    struct tenrec_value *map = read_info(NULL);

    for (uint64_t i = 0; i < map->n; i++)
        for (uint64_t k = 0; k < i; k++)
            if (strcmp(map->u.map[i].key, map->u.map[k].key) == 0)
                fail_msg("'%s' comes twice", map->u.map[i].key);
    tenrec_value_drop(map);
}

struct seen {
    const struct tenrec_value *map;
    uint64_t n;
};

static void is_in_the_map(void *arg, const char *key, const char *value)
{
    struct seen *s = arg;
    const struct tenrec_value *v = tenrec_value_find(s->map, key);

    (void)value;
    if (!v)
        fail_msg("'%s' is not in the map", key);
    s->n++;
}

TEST(debug_info_is_the_same_for_a_visitor)
{
    struct tenrec_value *map = read_info(NULL);
    struct seen seen = { map, 0 };

    debug_info_list(two.worker[0], is_in_the_map, &seen);
    assert_int_equal(seen.n, map->n);
    tenrec_value_drop(map);
}

TEST(inspect_needs_a_place_for_the_result_and_an_inspection_that_exists)
{
    const enum tenrec_inspection after = (enum tenrec_inspection)(TENREC_INSPECT_DUMP + 1);
    struct tenrec_value *map;
    tenrec_error err;

    assert_int_equal(
        tenrec_worker_inspect(two.worker[0], NULL, TENREC_INSPECT_DEBUG_INFO, NULL, NULL, NULL),
        TENREC_EINVAL);
    assert_int_equal(tenrec_worker_inspect(two.worker[0], NULL, after, NULL, &map, &err),
                     TENREC_EINVAL);
    assert_null(map);
    assert_string_equal(err.text, "inspect: unknown inspection 3, expected a TENREC_INSPECT_*");
}

TEST(debug_info_sets_a_backend_apart_that_has_the_name_of_a_part)
{
    static const char *const extra[] = { "backends.pool.plugin=inproc", "backend=pool", NULL };
    struct cluster one;
    struct tenrec_value *map;
    tenrec_error err;

    cluster_open(&one, 1, extra, NULL);
    assert_status(
        tenrec_worker_inspect(one.worker[0], NULL, TENREC_INSPECT_DEBUG_INFO, NULL, &map, &err),
        &err);
    assert_non_null(tenrec_value_find(map, "backend.pool.sent"));
    assert_null(tenrec_value_find(map, "pool.sent"));
    tenrec_value_drop(map);
    cluster_close(&one, TENREC_GRACEFUL);
}

TEST(debug_info_has_the_calls_only_when_the_worker_does_not_run)
{
    struct tenrec_config *config = NULL;
    struct tenrec_worker *w = NULL;
    struct tenrec_value *map = NULL;
    tenrec_error err;

    assert_status(tenrec_config_parse("backend: inproc\nbackends: { inproc: { plugin: inproc } }\n",
                                      "c.yaml", &config, &err),
                  &err);
    assert_status(tenrec_worker_new(config, &w, &err), &err);
    assert_status(tenrec_worker_inspect(w, NULL, TENREC_INSPECT_DEBUG_INFO, NULL, &map, &err),
                  &err);
    assert_int_equal(number(map, "calls.made"), 0);
    assert_null(tenrec_value_find(map, "worker.name"));
    tenrec_value_drop(map);
    tenrec_worker_drop(w);
    tenrec_config_drop(config);
}

/* ---- of another worker ------------------------------------------------------ */

TEST(debug_info_of_another_worker_comes_by_a_call)
{
    struct tenrec_value *map = read_info("worker1");

    assert_string_equal(text(map, "worker.name"), "worker1");
    assert_int_equal(number(map, "worker.id"), 1);
    /* The one that asks. */
    assert_true(number(map, "agent.server_active_calls") >= 1);
    tenrec_value_drop(map);
}

TEST(debug_info_comes_when_the_pool_is_full_of_blocked_functions)
{
    struct tenrec_future *f[2];
    tenrec_error err;

    functions_close_gate();
    for (int i = 0; i < 2; i++)
        assert_status(
            tenrec_rpc_async(two.worker[0], "worker1", "wait_long", NULL, 0, NULL, &f[i], &err),
            &err);
    assert_becomes(functions_waiting() == 2);
    assert_int_equal(number_of("worker1", "agent.num_idle_threads"), 0);
    assert_int_equal(number_of("worker1", "agent.server_active_calls"), 3);
    assert_int_equal(number_of(NULL, "agent.client_active_calls"), 2);
    functions_open_gate();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tenrec_future_wait(f[i], CLUSTER_LONG_MS, &err), TENREC_OK);
        tenrec_future_drop(f[i]);
    }
}

TEST(debug_info_of_an_unknown_worker_names_the_nearest_worker)
{
    struct tenrec_value *map = NULL;
    tenrec_error err;

    assert_int_equal(
        tenrec_worker_inspect(two.worker[0], "worker", TENREC_INSPECT_DEBUG_INFO, NULL, &map, &err),
        TENREC_EPEER_UNKNOWN);
    assert_text_has(err.text, "worker0");
}

TEST(a_function_may_not_have_the_prefix_of_tenrecs_functions)
{
    tenrec_error err;

    assert_int_equal(tenrec_worker_register_function(two.worker[0], "tenrec.mine", basic_noop, NULL,
                                                     TENREC_POOL, &err),
                     TENREC_EINVAL);
    assert_text_has(err.text, "'tenrec.mine'");
    functions_offer(two.worker[0], "tenrecs", basic_noop, TENREC_POOL);
}

TEST_MAIN(cluster_use(argv[1]), open_two, close_two)
