/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c - etcd, a store in the servers that keep the state of a cluster. */
#include "etcd.h"

static const struct tenrec_option options[] = {
    STORE_LOGIN_OPTIONS(struct etcd_options, "etcds://"),
    { .key = "lease",
      .type = TENREC_OPT_DURATION,
      .offset = offsetof(struct etcd_options, lease_ms),
      .def = "10m",
      .min = 1000,
      .max = 0, /* none */
      .help = "Time until the keys expire once no process has the store open; the same in all "
              "processes." },
};

static const struct tenrec_address_check address_check = {
    { TENREC_EXTENSION_ADDRESS, sizeof(struct tenrec_address_check), NULL },
    etcd_store_check,
};

const struct tenrec_plugin tenrec_plugin = {
    TENREC_STORE_PLUGIN_HEADER,
    TENREC_PLUGIN_OPTIONS(options, struct etcd_options),
    .extensions = &address_check.extension,
    .flags = TENREC_PLUGIN_TLS,
    .name = "etcd",
    .version = "1.0",
    .summary =
        "Keeps the store in etcd: etcd://[user:password@]host[:port][,host[:port]...][/prefix], "
        "or etcds:// for TLS.",
};

tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    const struct etcd_options *o = opts;

    return login_check(&o->login, err);
}

tenrec_status tenrec_init_store(const struct tenrec_store_init *in,
                                struct tenrec_plugin_store *self, tenrec_error *err)
{
    return etcd_store_open(in, self, err);
}
