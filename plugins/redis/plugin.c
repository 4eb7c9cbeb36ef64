/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c - redis, a store that no worker hosts, so any worker may leave first. */
#include "store.h"

static const struct tenrec_option options[] = {
    STORE_LOGIN_OPTIONS(struct redis_options, "rediss://"),
    { .key = "database",
      .type = TENREC_OPT_INT,
      .offset = offsetof(struct redis_options, database),
      .def = "0",
      .min = 0,
      .max = 65535,
      .help = "Number of the database in the server." },
    { .key = "lease",
      .type = TENREC_OPT_DURATION,
      .offset = offsetof(struct redis_options, lease_ms),
      .def = "10m",
      .min = 100,
      .max = 0, /* none */
      .help = "Time until the keys expire once no process has the store open; the same in all "
              "processes." },
};

static const struct tenrec_address_check address_check = {
    { TENREC_EXTENSION_ADDRESS, sizeof(struct tenrec_address_check), NULL },
    redis_store_check,
};

const struct tenrec_plugin tenrec_plugin = {
    TENREC_STORE_PLUGIN_HEADER,
    TENREC_PLUGIN_OPTIONS(options, struct redis_options),
    .extensions = &address_check.extension,
    .flags = TENREC_PLUGIN_TLS | TENREC_PLUGIN_SETUID,
    .name = "redis",
    .version = "1.0",
    .summary = "Keeps the store in a Redis server: redis://[user:password@]host[:port][/prefix], "
               "or rediss:// for TLS.",
};

tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    const struct redis_options *o = opts;

    return login_check(&o->login, err);
}

tenrec_status tenrec_init_store(const struct tenrec_store_init *in,
                                struct tenrec_plugin_store *self, tenrec_error *err)
{
    return redis_store_open(in, self, err);
}
