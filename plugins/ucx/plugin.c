/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c - the description and the options of the ucx plugin. */
#include "head.h"
#include "options.h"

#include <tenrec/version.h>

#define OPTION(name, t, member, d, ...)                                                            \
    {                                                                                              \
        .key = #name, .type = TENREC_OPT_##t, .offset = offsetof(struct ucx_options, member),      \
        .def = d, __VA_ARGS__                                                                      \
    }

static const struct tenrec_option options[] = {
    OPTION(tls, LIST, tls, "[]", .item = TENREC_OPT_STRING, .flags = TENREC_OPT_SINGLE,
           .help = "Transports that UCX may use, as UCX_TLS has them: [rc, tcp]; empty: all. With "
                   "tcp among them no warning says that UCX fell back to TCP. A variable UCX_TLS "
                   "overrides it."),
    OPTION(devices, LIST, devices, "[]", .item = TENREC_OPT_STRING, .flags = TENREC_OPT_SINGLE,
           .help = "Network devices that UCX may use, as UCX_NET_DEVICES has them: [mlx5_0:1], "
                   "[eth0]; empty: all. A variable UCX_NET_DEVICES overrides it. A worker that "
                   "listens on loopback uses lo only, whatever both say."),
    OPTION(listen, STRING, listen, "",
           .help = "IP address of this machine to listen on; by default that from which the "
                   "group's store is reached, so loopback when that is on this host."),
    OPTION(progress, STRING, progress, "adaptive", .choices = "busy|adaptive|sleep",
           .help = "How threads wait: busy spins always (one thread at a time), adaptive spins up "
                   "to 50 us while that pays off, sleep never spins."),
    OPTION(rndv_threshold, SIZE, rndv_threshold_bytes, "0", .min = 0, .max = INT64_MAX,
           .help = "Size from which on the receiver fetches data by rendezvous, as "
                   "UCX_RNDV_THRESH; 0: UCX decides. That variable overrides it."),
    OPTION(max_queued_bytes, SIZE, max_queued_bytes, "256MiB", .min = 4096, .max = INT64_MAX,
           .help = "Bytes that may wait to be sent over one connection. Beyond it a send fails, "
                   "and a blocking call waits."),
    OPTION(max_message, SIZE, max_message_bytes, "16GiB", .min = HEAD_MESSAGE_LEAST,
           .max = INT64_MAX,
           .help = "Largest message, payload and tensors together, that a peer may send. A Tenrec "
                   "worker learns its peers' limits."),
    OPTION(max_stranger_bytes, SIZE, max_stranger_bytes, "1GiB", .min = 4096, .max = INT64_MAX,
           .help =
               "Bytes that this process holds for callers that are no members of the group, for "
               "all of them together: messages and tensors, from their announcement to the end of "
               "the call, their values, and answers that the callers do not read."),
    OPTION(connect_timeout, DURATION, connect_timeout_ms, "10s", .min = 1, .max = 86400000,
           .help = "Time limit for connecting to a peer."),
    OPTION(keepalive, DURATION, keepalive_ms, "1s", .min = 1, .max = 86400000,
           .help = "How often UCX checks whether silent peers are alive, and the idle time after "
                   "which TCP does; none turns that off. The variables UCX_KEEPALIVE_INTERVAL and "
                   "UCX_TCP_KEEPIDLE, _KEEPINTVL and _KEEPCNT override it."),
};

tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    (void)opts, (void)err; /* no rule spans several options */
    return TENREC_OK;
}

tenrec_status tenrec_init_agent(const struct tenrec_init *in, struct tenrec_agent *self,
                                tenrec_error *err)
{
    const tenrec_status st = TENREC_REQUIRES(self->host, budget, err);

    return st == TENREC_OK ? agent_new(in, self, err) : st;
}

static const struct tenrec_probe probe = {
    { TENREC_EXTENSION_PROBE, sizeof(struct tenrec_probe), NULL },
    probe_push,
};

const struct tenrec_plugin tenrec_plugin = {
    TENREC_PLUGIN_HEADER,
    TENREC_PLUGIN_OPTIONS(options, struct ucx_options),
    .name = "ucx",
    .flags = TENREC_PLUGIN_PROVES, /* not SETUID: UCX obeys UCX_ variables when it is loaded */
    .version = TENREC_VERSION_TEXT,
    .summary = "Carries messages and tensors in host memory over UCX.",
    .extensions = &probe.extension,
};
