/* SPDX-License-Identifier: Apache-2.0 */
/* NAME.c - a wrapper that counts what passes. Each message goes on as it is. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenrec/plugin.h>

struct NAME_options {
    bool quiet;
};

struct NAME {
    const struct NAME_options *opt; /* borrows until destroy */
    atomic_ullong sent, delivered;
};

/* From the user to the wire. Takes `msg`; `done` is called once by what it wraps. */
static void NAME_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                      struct tenrec_done done)
{
    struct NAME *w = self->impl;

    atomic_fetch_add(&w->sent, 1);
    self->host->send_inner(self, to, msg, done);
}

/* From the wire to the user. Takes `msg`. */
static void NAME_deliver(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg)
{
    struct NAME *w = self->impl;

    atomic_fetch_add(&w->delivered, 1);
    self->host->deliver_outer(self, from, msg);
}

static void NAME_debug_info(struct tenrec_agent *self, tenrec_sink_fn *sink, void *arg)
{
    struct NAME *w = self->impl;
    char text[24];

    if (w->opt->quiet)
        return;
    snprintf(text, sizeof text, "%llu", atomic_load(&w->sent));
    sink(arg, "sent", text);
    snprintf(text, sizeof text, "%llu", atomic_load(&w->delivered));
    sink(arg, "delivered", text);
}

static void NAME_destroy(struct tenrec_agent *self)
{
    free(self->impl);
}

/* What is not here passes to the wrapped agent. */
static const struct tenrec_agent_ops NAME_ops = {
    .size = sizeof NAME_ops,
    .send = NAME_send,
    .deliver = NAME_deliver,
    .debug_info = NAME_debug_info,
    .destroy = NAME_destroy,
};

tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    (void)opts, (void)err; /* no rule spans several options */
    return TENREC_OK;
}

tenrec_status tenrec_init_agent(const struct tenrec_init *in, struct tenrec_agent *self,
                                tenrec_error *err)
{
    struct NAME *w = calloc(1, sizeof *w);

    if (!w)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the agent");
    w->opt = in->options;
    self->ops = &NAME_ops;
    self->impl = w;
    return TENREC_OK;
}

static const struct tenrec_option options[] = {
    { .key = "quiet",
      .type = TENREC_OPT_BOOL,
      .offset = offsetof(struct NAME_options, quiet),
      .def = "false",
      .help = "Do not show the counts." },
};

const struct tenrec_plugin tenrec_plugin = {
    TENREC_PLUGIN_HEADER,
    TENREC_PLUGIN_OPTIONS(options, struct NAME_options),
    .flags = TENREC_PLUGIN_WRAPS | TENREC_PLUGIN_UNLOADABLE,
    .name = "NAME",
    .version = "1.0",
    .summary = "Counts messages.",
};
