/* SPDX-License-Identifier: Apache-2.0 */
/* A wrapper that cannot start: what runs inside it must be stopped again. */
#include <tenrec/plugin.h>

static tenrec_status no_start(struct tenrec_agent *self, const struct tenrec_member *member,
                              uint32_t n, tenrec_error *err)
{
    (void)self, (void)member, (void)n;
    return tenrec_fail(err, TENREC_ECONNECT, "the licence server does not answer");
}

static const struct tenrec_agent_ops ops = { .size = sizeof ops, .start = no_start };

tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    (void)opts, (void)err;
    return TENREC_OK;
}

tenrec_status tenrec_init_agent(const struct tenrec_init *in, struct tenrec_agent *self,
                                tenrec_error *err)
{
    (void)in, (void)err;
    self->ops = &ops;
    return TENREC_OK;
}

const struct tenrec_plugin tenrec_plugin = {
    TENREC_PLUGIN_HEADER,       .flags = TENREC_PLUGIN_WRAPS | TENREC_PLUGIN_UNLOADABLE,
    .name = "bad_start",        .version = "1",
    .summary = "Cannot start.",
};
