/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that tells of one transport when it is asked, and then crashes. */
#include <stdlib.h>
#include <tenrec/plugin.h>

static void crash(const void *options, tenrec_sink_fn *sink, void *arg)
{
    (void)options;
    sink(arg, "transport.one", "viable");
    abort();
}

static const struct tenrec_probe probe = {
    { TENREC_EXTENSION_PROBE, sizeof(struct tenrec_probe), NULL },
    crash,
};

tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    (void)opts, (void)err;
    return TENREC_OK;
}

tenrec_status tenrec_init_agent(const struct tenrec_init *in, struct tenrec_agent *self,
                                tenrec_error *err)
{
    (void)in, (void)self;
    return tenrec_fail(err, TENREC_EUNSUPPORTED, "makes no agent");
}

const struct tenrec_plugin tenrec_plugin = {
    TENREC_PLUGIN_HEADER,
    .name = "bad_probe",
    .version = "1",
    .summary = "Crashes when it is asked what works here.",
    .extensions = &probe.extension,
};
