/* SPDX-License-Identifier: Apache-2.0 */
/* forget.c - a wrapper whose answers lack the mark of a proved connection. */
#include <tenrec/plugin.h>

static void forget_deliver(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg)
{
    if (msg->type & TENREC_MSG_RESPONSE_BIT)
        msg->flags &= ~(uint32_t)TENREC_MSG_PROVED;
    self->host->deliver_outer(self, from, msg);
}

static const struct tenrec_agent_ops forget_ops = {
    .size = sizeof forget_ops,
    .deliver = forget_deliver,
};

tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    (void)opts, (void)err;
    return TENREC_OK;
}

tenrec_status tenrec_init_agent(const struct tenrec_init *in, struct tenrec_agent *self,
                                tenrec_error *err)
{
    (void)in, (void)err;
    self->ops = &forget_ops;
    return TENREC_OK;
}

const struct tenrec_plugin tenrec_plugin = {
    TENREC_PLUGIN_HEADER,
    .flags = TENREC_PLUGIN_WRAPS,
    .name = "forget",
    .version = "1.0",
    .summary = "Takes the mark of a proof from answers.",
};
