/* SPDX-License-Identifier: Apache-2.0 */
/* outside.c - a third party's plugin: compiled by a bare cc with the public headers, without
 * the flags of this build. */
#include <tenrec/plugin.h>

static void drop(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                 struct tenrec_done done)
{
    (void)self;
    msg->release(msg);
    tenrec_done_fail(done, TENREC_EPEER_UNKNOWN, "nobody is called %d here", to);
}

static const struct tenrec_agent_ops ops = { .size = sizeof ops, .send = drop };

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
    TENREC_PLUGIN_HEADER,
    .name = "outside",
    .version = "7",
    .summary = "Reaches nobody.",
};
