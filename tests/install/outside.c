/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin outside of the tree: an agent of one member that sends nothing. */
#include <tenrec/plugin.h>

struct outside_options {
    int64_t limit;
};

static const struct tenrec_option options[] = {
    { .key = "limit",
      .type = TENREC_OPT_INT,
      .offset = offsetof(struct outside_options, limit),
      .def = "3",
      .min = 1,
      .max = 10,
      .help = "how much of nothing it does" },
};

const struct tenrec_plugin tenrec_plugin = {
    TENREC_PLUGIN_HEADER,
    .name = "outside",
    .version = "1",
    .summary = "a plugin that was built outside of the tree",
    TENREC_PLUGIN_OPTIONS(options, struct outside_options),
};

static void outside_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                         struct tenrec_done done)
{
    (void)self;
    msg->release(msg);
    tenrec_done_fail(done, TENREC_EUNSUPPORTED, "nothing goes to %d from here", to);
}

tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    const struct outside_options *o = opts;

    return o->limit > 0 ? TENREC_OK : tenrec_fail(err, TENREC_ECONFIG, "limit is not positive");
}

tenrec_status tenrec_init_agent(const struct tenrec_init *in, struct tenrec_agent *self,
                                tenrec_error *err)
{
    static const struct tenrec_agent_ops ops = { .size = sizeof ops, .send = outside_send };

    (void)in;
    (void)err;
    self->ops = &ops;
    return TENREC_OK;
}
