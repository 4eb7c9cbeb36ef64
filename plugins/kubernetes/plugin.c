/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c - kubernetes, a store in the API of the cluster in which the workers run. */
#include "kubernetes.h"

#define OPTION_TEXT(name, member, help_)                                                           \
    {                                                                                              \
        .key = name, .type = TENREC_OPT_STRING,                                                    \
        .offset = offsetof(struct kubernetes_options, member), .def = "", .help = help_            \
    }

static const struct tenrec_option options[] = {
    OPTION_TEXT("namespace", name_space, "Namespace of the ConfigMaps; by default the pod's."),
    OPTION_TEXT("token_file", token_file,
                "File with the token of a service account, read for each request; by default the "
                "pod's."),
    OPTION_TEXT("ca_file", ca_file,
                "PEM file of the authorities that may sign the server's certificate; by default "
                "the pod's, else the system's."),
    { .key = "tls",
      .type = TENREC_OPT_BOOL,
      .offset = offsetof(struct kubernetes_options, tls),
      .def = "true",
      .help = "TLS and a token; plain HTTP without it, for `kubectl proxy` on this host." },
    { .key = "lease",
      .type = TENREC_OPT_DURATION,
      .offset = offsetof(struct kubernetes_options, lease_ms),
      .def = "10m",
      .min = 1000,
      .max = 0, /* none */
      .help = "Time until the keys expire once no process has the store open; the same in all "
              "processes." },
};

const struct tenrec_plugin tenrec_plugin = {
    TENREC_STORE_PLUGIN_HEADER,
    TENREC_PLUGIN_OPTIONS(options, struct kubernetes_options),
    .name = "kubernetes",
    .version = "1.0",
    .summary = "Keeps the store in ConfigMaps of a cluster: kubernetes:///name in a pod, "
               "kubernetes://host:port/name elsewhere.",
};

tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    (void)opts, (void)err;
    return TENREC_OK;
}

tenrec_status tenrec_init_store(const struct tenrec_store_init *in,
                                struct tenrec_plugin_store *self, tenrec_error *err)
{
    return kubernetes_open(in, self, err);
}
