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
    { .key = "password_file",
      .type = TENREC_OPT_STRING,
      .offset = offsetof(struct redis_options, password_file),
      .def = "",
      .help = "File with the password, readable by its owner only, if the URL has none." },
    { .key = "ca_file",
      .type = TENREC_OPT_STRING,
      .offset = offsetof(struct redis_options, ca_file),
      .def = "",
      .help = "For rediss://: PEM file of the authorities that may sign the server's certificate; "
              "by default "
              "the system's." },
    { .key = "cert_file",
      .type = TENREC_OPT_STRING,
      .offset = offsetof(struct redis_options, cert_file),
      .def = "",
      .help = "For rediss://: PEM file of our certificate, if the server asks for one." },
    { .key = "key_file",
      .type = TENREC_OPT_STRING,
      .offset = offsetof(struct redis_options, key_file),
      .def = "",
      .help = "For rediss://: PEM file of the key of 'cert_file'." },
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
    .flags = TENREC_PLUGIN_TLS | TENREC_PLUGIN_SETUID,
    .name = "redis",
    .version = "1.0",
    .summary = "Keeps the store in a Redis server: redis://[user:password@]host[:port][/prefix], "
               "or rediss:// for TLS.",
};

tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    const struct redis_options *o = opts;

    if (*o->password && *o->password_file)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "options 'password' and 'password_file' exclude each other");
    if (*o->user && !*o->password && !*o->password_file)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "option 'user' is set, but no 'password' or 'password_file'");
    if (!*o->cert_file != !*o->key_file)
        return tenrec_fail(err, TENREC_ECONFIG, "option '%s' is set, but no '%s'",
                           *o->cert_file ? "cert_file" : "key_file",
                           *o->cert_file ? "key_file" : "cert_file");
    return TENREC_OK;
}

tenrec_status tenrec_init_store(const struct tenrec_store_init *in,
                                struct tenrec_plugin_store *self, tenrec_error *err)
{
    return redis_store_open(in, self, err);
}
