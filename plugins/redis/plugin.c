/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c - redis, a store that no worker hosts, so any worker may leave first. */
#include "store.h"

static const struct tenrec_option options[] = {
    { .key = "user",
      .type = TENREC_OPT_STRING,
      .offset = offsetof(struct redis_options, user),
      .def = "",
      .help = "User to log in as, if the URL names no user; needs a password." },
    { .key = "password",
      .type = TENREC_OPT_STRING,
      .offset = offsetof(struct redis_options, password),
      .flags = TENREC_OPT_SECRET,
      .def = "",
      .help = "Password to log in with, if the URL has no password." },
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

const struct tenrec_plugin tenrec_plugin = {
    TENREC_STORE_PLUGIN_HEADER,
    TENREC_PLUGIN_OPTIONS(options, struct redis_options),
    .name = "redis",
    .version = "1.0",
    .summary = "Keeps the store in a Redis server: redis://[user:password@]host[:port][/prefix].",
};

tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    const struct redis_options *o = opts;

    if (*o->user && !*o->password)
        return tenrec_fail(err, TENREC_ECONFIG, "option 'user' is set, but no 'password'");
    return TENREC_OK;
}

tenrec_status tenrec_init_store(const struct tenrec_store_init *in,
                                struct tenrec_plugin_store *self, tenrec_error *err)
{
    return redis_store_open(in, self, err);
}
