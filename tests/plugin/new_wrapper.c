/* SPDX-License-Identifier: Apache-2.0 */
/* new_wrapper.c - a wrapper of a later minor: its structs are longer than this core's, it has flags
 * and extensions that this core does not know. What the core does not know cannot be read. */
#include "page_end.h"

#include <stdlib.h>
#include <tenrec/plugin.h>

#define LATER 64 /* bytes that a later minor has appended to a struct */

struct new_options {
    bool strange;
};

/* ---- extensions ------------------------------------------------------------------------------ */

/* None is this core's, so it reads no more than the head. */
static const struct tenrec_extension private_one = { TENREC_EXTENSION_PRIVATE + 7, 4096, NULL };
PAGE_END_OBJECT PAGE_END_STRUCT(struct tenrec_extension) unknown = {
    .object = { TENREC_EXTENSION_PRIVATE - 1, sizeof(struct tenrec_extension) + LATER,
                &private_one }
};
PAGE_END_PROTECT(unknown)

/* ---- the agent ------------------------------------------------------------------------------- */

static void new_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                     struct tenrec_done done)
{
    self->host->send_inner(self, to, msg, done);
}

static void new_deliver(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg)
{
    self->host->deliver_outer(self, from, msg);
}

static void new_debug_info(struct tenrec_agent *self, tenrec_sink_fn *sink, void *arg)
{
    (void)self;
    sink(arg, "era", "later");
}

PAGE_END_OBJECT PAGE_END_STRUCT(struct tenrec_agent_ops) ops = {
    .object = { .size = sizeof(struct tenrec_agent_ops) + LATER,
                .reserved = ~0u,
                .extensions = &unknown.object,
                .send = new_send,
                .deliver = new_deliver,
                .debug_info = new_debug_info }
};
PAGE_END_PROTECT(ops)

/* ---- the description ---------------------------------------------------------------------------
 */

PAGE_END_OBJECT PAGE_END_STRUCT(struct tenrec_option) option = { .object = {
                                                                     .key = "strange",
                                                                     .type = TENREC_OPT_BOOL,
                                                                     .flags = 1u << 31,
                                                                     .def = "true",
                                                                     .help = "Is set." } };
PAGE_END_PROTECT(option)

PAGE_END_OBJECT PAGE_END_STRUCT(struct tenrec_plugin) new_description = {
    .object = { .magic = TENREC_PLUGIN_MAGIC,
                .abi_major = TENREC_ABI_MAJOR,
                .abi_minor = TENREC_ABI_MINOR + 5,
                .size = sizeof(struct tenrec_plugin) + LATER,
                .kind = TENREC_PLUGIN_BACKEND,
                .flags = TENREC_PLUGIN_WRAPS | 1u << 30,
                .name = "new_wrapper",
                .version = "9",
                .summary = "Passes all on, in the manner of a later minor.",
                .options = &option.object,
                .n_options = 1,
                .option_size = sizeof(struct tenrec_option) + LATER,
                .options_size = sizeof(struct new_options),
                .extensions = &unknown.object }
};
PAGE_END_PROTECT(new_description)
PAGE_END_EXPORT(new_description, 112)
_Static_assert(sizeof(struct tenrec_plugin) == 112, "as PAGE_END_EXPORT says");

tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    if (!((const struct new_options *)opts)->strange)
        return tenrec_fail(err, TENREC_ECONFIG, "the option has not its default");
    return TENREC_OK;
}

tenrec_status tenrec_init_agent(const struct tenrec_init *in, struct tenrec_agent *self,
                                tenrec_error *err)
{
    const tenrec_status st = TENREC_REQUIRES(self->host, hold, err);

    (void)in;
    self->ops = &ops.object;
    return st;
}
