// SPDX-License-Identifier: Apache-2.0
// NAME.cc - a wrapper that counts what passes. Each message goes on as it is. No exception may
// leave a function that the core calls.
#include <atomic>
#include <cstdio>
#include <new>
#include <tenrec/plugin.h>

namespace
{

struct Options {
    bool quiet;
};

struct Agent {
    const Options *options; // borrowed until destroy
    std::atomic<unsigned long long> sent{ 0 }, delivered{ 0 };
};

Agent &agent_of(const tenrec_agent *self)
{
    return *static_cast<Agent *>(self->impl);
}

// From the user to the wire. Takes `msg`; `done` is called once by what it wraps.
void send(tenrec_agent *self, tenrec_peer to, tenrec_msg *msg, tenrec_done done)
{
    agent_of(self).sent++;
    self->host->send_inner(self, to, msg, done);
}

// From the wire to the user. Takes `msg`.
void deliver(tenrec_agent *self, tenrec_peer from, tenrec_msg *msg)
{
    agent_of(self).delivered++;
    self->host->deliver_outer(self, from, msg);
}

void debug_info(tenrec_agent *self, tenrec_sink_fn *sink, void *arg)
{
    const Agent &agent = agent_of(self);
    char text[24];

    if (agent.options->quiet)
        return;
    std::snprintf(text, sizeof text, "%llu", agent.sent.load());
    sink(arg, "sent", text);
    std::snprintf(text, sizeof text, "%llu", agent.delivered.load());
    sink(arg, "delivered", text);
}

void destroy(tenrec_agent *self)
{
    delete &agent_of(self);
}

// What is not here passes to the wrapped agent.
const tenrec_agent_ops ops = {
    .size = sizeof ops,
    .send = send,
    .deliver = deliver,
    .destroy = destroy,
    .debug_info = debug_info,
};

const tenrec_option options[] = {
    { .key = "quiet",
      .type = TENREC_OPT_BOOL,
      .offset = offsetof(Options, quiet),
      .def = "false",
      .help = "Do not show the counts." },
};

} // namespace

tenrec_status tenrec_construct_options(void *, tenrec_error *)
{
    return TENREC_OK; // no rule spans several options
}

tenrec_status tenrec_init_agent(const tenrec_init *in, tenrec_agent *self, tenrec_error *err)
{
    self->impl = new (std::nothrow) Agent{ static_cast<const Options *>(in->options) };
    if (!self->impl)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the agent");
    self->ops = &ops;
    return TENREC_OK;
}

const struct tenrec_plugin tenrec_plugin = {
    TENREC_PLUGIN_HEADER,
    .flags = TENREC_PLUGIN_WRAPS | TENREC_PLUGIN_UNLOADABLE,
    .name = "NAME",
    .version = "1.0",
    .summary = "Counts messages.",
    TENREC_PLUGIN_OPTIONS(options, Options),
};
