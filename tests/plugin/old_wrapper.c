/* SPDX-License-Identifier: Apache-2.0 */
/* A wrapper built before deliver and all that comes after it existed. */
#include <stddef.h>
#include <tenrec/plugin.h>

static void old_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                     struct tenrec_done done)
{
    self->host->send_inner(self, to, msg, done);
}

static const struct tenrec_agent_ops old_ops = {
    .size = offsetof(struct tenrec_agent_ops, deliver),
    .send = old_send,
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
    self->ops = &old_ops;
    return TENREC_OK;
}

/* Its description ends before what was added to 1.0, too. */
const struct tenrec_plugin tenrec_plugin = {
    .magic = TENREC_PLUGIN_MAGIC,
    .abi_major = TENREC_ABI_MAJOR,
    .size = offsetof(struct tenrec_plugin, reserved2),
    .kind = TENREC_PLUGIN_BACKEND,
    .flags = TENREC_PLUGIN_WRAPS,
    .name = "old_wrapper",
    .version = "0",
    .summary = "Passes all on.",
};
