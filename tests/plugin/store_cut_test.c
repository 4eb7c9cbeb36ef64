/* SPDX-License-Identifier: Apache-2.0 */
/* store_cut_test.c SCHEME - a store plugin on the host table of each core since the first. */
#include "../testing.h"
#include "core/base/clock.h"
#include "group/store/store.h"
#include "short_table.h"

#include <tenrec/config.h>
#include <tenrec/log.h>

static const char *scheme, *url;

#define END(member)                                                                                \
    ((uint32_t)(offsetof(struct tenrec_store_host, member) +                                       \
                sizeof(((const struct tenrec_store_host *)NULL)->member)))
static const uint32_t ends[] = { END(log) };

static bool log_enabled(const void *self, enum tenrec_log_level level)
{
    (void)self, (void)level;
    return true;
}

TENREC_PRINTF(3, 4)
static void log_nothing(const void *self, enum tenrec_log_level level, const char *fmt, ...)
{
    (void)self, (void)level, (void)fmt;
}

static const struct tenrec_store_host whole = { .size = sizeof whole,
                                                .abi_major = TENREC_ABI_MAJOR,
                                                .abi_minor = 0,
                                                .log_enabled = log_enabled,
                                                .log = log_nothing };

static tenrec_status on_value(void *arg, uint32_t i, const void *data, size_t len,
                              tenrec_error *err)
{
    (void)i, (void)err;
    assert_int_equal(len, 5);
    memcpy(arg, data, len);
    return TENREC_OK;
}

static void run_on(const struct stores_choice *choice, uint32_t size)
{
    const uint64_t until = clock_deadline_ms(20000 * testing_slow());
    const struct tenrec_store_init in = {
        .size = sizeof in, .url = url, .options = choice->options, .deadline_ns = until
    };
    struct tenrec_store_host *host = short_table_new(&whole, size);
    struct tenrec_plugin_store store = { .host = host };
    const char *const keys[] = { "/cut" };
    bool missing[1] = { false };
    char value[6] = "";
    tenrec_error err;
    uint32_t n;

    assert_status(choice->init(&in, &store, &err), &err);
    assert_status(store.ops->set(&store, "/cut", "value", 5, until, &err), &err);
    assert_status(store.ops->get(&store, keys, 1, until, on_value, value, missing, &err), &err);
    assert_string_equal(value, "value");
    assert_status(store.ops->remove(&store, keys, 1, until, &n, &err), &err);
    store.ops->close(&store, until);
    short_table_drop(host);
}

TEST(store_works_on_each_host_of_the_past)
{
    struct stores_choice choice;
    struct tenrec_config *config; /* with the options of the environment */
    struct stores *stores;
    tenrec_error err;

    assert_int_equal(ends[sizeof ends / sizeof ends[0] - 1],
                     sizeof whole); /* a new one comes here */
    assert_status(tenrec_config_load(NULL, &config, &err), &err);
    assert_status(stores_load(config, scheme, &stores, &err), &err);
    tenrec_config_drop(config);
    assert_status(stores_find(stores, scheme, &choice, &err), &err);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        run_on(&choice, ends[i]);
    stores_drop(stores);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    scheme = argv[1];
    url = strcmp(scheme, "redis") == 0        ? getenv("TENREC_TEST_REDIS")
          : strcmp(scheme, "etcd") == 0       ? getenv("TENREC_TEST_ETCD")
          : strcmp(scheme, "kubernetes") == 0 ? getenv("TENREC_TEST_KUBERNETES")
                                              : "drawer://cut";
    return url ? testing_run(NULL, NULL) : 2;
}
