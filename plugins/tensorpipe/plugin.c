/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c - the description and the options of the tensorpipe plugin. */
#include "agent/agent.h"
#include "transport/ring/transport_ring.h"
#include "transport/tcp/transport_uv.h"

#include <tenrec/version.h>

#define OPTION(name, t, d, ...)                                                                    \
    {                                                                                              \
        .key = #name, .type = TENREC_OPT_##t, .offset = offsetof(struct tp_options, name),         \
        .def = d, __VA_ARGS__                                                                      \
    }

#define OPTION_MS(name, d, ...)                                                                    \
    {                                                                                              \
        .key = #name, .type = TENREC_OPT_DURATION,                                                 \
        .offset = offsetof(struct tp_options, name##_ms), .def = d, __VA_ARGS__                    \
    }

static const struct tenrec_option options[] = {
    OPTION(transports, LIST, "[shm, uv]", .item = TENREC_OPT_STRING, .choices = REGISTRY_TRANSPORTS,
           .help =
               "Transports to offer, the preferred first; shm is shared memory with peers on this "
               "host, uv is TCP. Transports that do not work here are skipped. Peers on "
               "libtensorpipe use TCP."),
    OPTION(channels, LIST, "[cuda_xth, cuda_ipc, cuda_basic, cma, basic]",
           .item = TENREC_OPT_STRING, .choices = REGISTRY_CHANNELS,
           .help = "Channels for tensors, the preferred first; basic sends them through a "
                   "connection of the transport. Channels that do not work here are skipped."),
    OPTION(
        progress, STRING, "adaptive", .choices = "busy|adaptive|sleep",
        .help =
            "How threads wait: busy spins always (one thread at a time; 50 us over a message that "
            "stalls half way), adaptive spins up to 50 us while that pays off (a thread "
            "that also runs messages, as in PyTorch, 300 us with sched_yield), sleep never "
            "spins."),
    OPTION(ifname, STRING, "",
           .help =
               "Network interface to listen on, instead of listen: eth0, a prefix eth*, a subnet "
               "10.1.0.0/16, a list with commas, or all but some: ^docker0,virbr*."),
    OPTION(listen, STRING, "",
           .help = "Address or host name of this machine to listen on; by default the address from "
                   "which the group's store is reached, so loopback when that is on this host."),
    OPTION(family, STRING, "any", .choices = "any|ipv4|ipv6",
           .help = "Address family for ifname, listen and the default address."),
    OPTION(port, STRING, "0",
           .help = "Port to listen on: \"29600\", the first free one of a range such as "
                   "\"29600-29700\", or \"0\" for any."),
    OPTION(shm_dir, STRING, "",
           .help = "Folder through which containers with separate networks share memory: an "
                   "absolute path of at most 83 bytes. The folder belongs to this user or to "
                   "root, and no other user can write to it, or it has the sticky bit."),
    OPTION_MS(connect_timeout, "10s", .min = 1, .max = 86400000,
              .help = "Time limit for connecting to a peer."),
    OPTION_MS(hello_timeout, "5s", .min = 1, .max = 86400000,
              .help = "Time limit for the hello of an incoming connection."),
    OPTION_MS(handshake_timeout, "30s", .min = 1, .max = 86400000,
              .help = "Time limit for a connected peer to identify itself and to answer."),
    OPTION_MS(keepalive, "60s",
              .help = "Idle time after which TCP probes the peer's host. After twice that time "
                      "without any answer the connection is lost, even if it is in use. none turns "
                      "this off."),
    OPTION_MS(idle_timeout, "none", .min = 1000,
              .help = "Time after which two Tenrec workers close an idle connection; the next call "
                      "connects again. In a static group only that call notices that an idle peer "
                      "has died."),
    OPTION(max_object, SIZE, "1MiB", .min = 4096, .max = 1 << 30,
           .help = "Largest handshake object, descriptor or tensor list that a peer may send; "
                   "each tensor of a message takes some 25 bytes of them. A Tenrec worker learns "
                   "its peers' limits, and sends no more: ETOOBIG."),
    OPTION(max_message, SIZE, "16GiB", .min = 4096, .max = INT64_MAX,
           .help = "Largest message, payload and tensors together, that a peer may send. A Tenrec "
                   "worker learns its peers' limits, as with max_object."),
    OPTION(inline_max, SIZE, "32KiB", .min = 0, .max = INT64_MAX,
           .help = "Size up to which a tensor travels between Tenrec workers on the connection of "
                   "its message. A larger tensor takes a separate connection, or its receiver "
                   "reads it out of memory."),
    OPTION(pull_min, SIZE, "512KiB", .min = 0, .max = INT64_MAX,
           .help = "Size from which a Tenrec worker on this host reads a tensor out of the "
                   "sender's memory, if channels have cma and the size is above inline_max. The "
                   "same holds for tensors of 4 KiB and more that have this size together."),
    OPTION(pull_max, SIZE, "16MiB", .min = 0, .max = INT64_MAX,
           .help =
               "Largest tensor that the receiver alone copies so, unless there is only one "
               "processor. Both workers copy a larger tensor, or any with progress: busy, at the "
               "same time."),
    OPTION(lanes, INT, "1", .min = 1, .max = 16,
           .help = "TCP connections that share the tensors above inline_max, between Tenrec "
                   "workers with the same number of lanes."),
    OPTION(cuda_staging, SIZE, "64MiB", .min = 4 << 20, .max = INT64_MAX,
           .help = "Pinned host memory for tensors of devices that cannot be copied directly; "
                   "allocated when needed, half for each direction."),
    OPTION(cuda_cache, SIZE, "1GiB", .min = 0, .max = INT64_MAX,
           .help = "Memory of received tensors that is kept for the next ones, per device."),
    OPTION(max_queued_bytes, SIZE, "256MiB", .min = 4096, .max = INT64_MAX,
           .help = "Bytes that may wait for one peer, with the memory of messages and tensors "
                   "besides their contents. Messages with tensors of 64 KiB and more, and all "
                   "others, each have this limit. Beyond it a send fails, and a blocking call "
                   "waits."),
    OPTION(max_stranger_bytes, SIZE, "1GiB", .min = 4096, .max = INT64_MAX,
           .help =
               "Bytes that this process holds for callers that are no members of the group, for "
               "all of them together: messages and tensors, from their announcement to the end of "
               "the call, their values, and answers that the callers do not read."),
    OPTION(max_source_bytes, SIZE, "256MiB", .min = 4096, .max = INT64_MAX,
           .help = "The same limit for the callers of one address, or of one process of this "
                   "host; a single message may be larger."),
};

static void probe_known(const struct registry_entry *all, const char *what, tenrec_sink_fn *sink,
                        void *arg)
{
    char key[64], why[REGISTRY_WHY], value[REGISTRY_WHY + 16];

    for (; all->name; all++) {
        if (strcmp(all->name, TRANSPORT_UV) == 0)
            continue;
        snprintf(key, sizeof key, "%s.%s", what, all->name);
        if (registry_viable(all, why))
            snprintf(value, sizeof value, "viable");
        else
            snprintf(value, sizeof value, "not viable: %s", why);
        sink(arg, key, value);
    }
}

static void plugin_probe(const void *opts, tenrec_sink_fn *sink, void *arg)
{
    const struct tp_options *o = opts;
    union transport_address at;
    char text[TRANSPORT_TEXT_MAX], value[sizeof((tenrec_error *)0)->text + 32];
    tenrec_error err;

    if (transport_local(o, &at, &err)) {
        snprintf(value, sizeof value, "not viable: %s", err.text);
    } else {
        transport_format(&at, text);
        *strrchr(text, ':') = '\0';
        snprintf(value, sizeof value, "viable, on %s", text);
    }
    sink(arg, "transport.uv", value);
    probe_known(registry_transports, "transport", sink, arg);
    probe_known(registry_channels, "channel", sink, arg);
}

static const struct tenrec_probe probe = {
    { TENREC_EXTENSION_PROBE, sizeof(struct tenrec_probe), NULL },
    plugin_probe,
};

const struct tenrec_plugin tenrec_plugin = {
    TENREC_PLUGIN_HEADER,
    TENREC_PLUGIN_OPTIONS(options, struct tp_options),
    .flags =
        TENREC_PLUGIN_PROVES | TENREC_PLUGIN_ENCRYPTS | TENREC_PLUGIN_SETUID | TENREC_PLUGIN_LINKS,
    .name = "tensorpipe",
    .version = TENREC_VERSION_TEXT,
    .summary = "Carries messages and tensors over TensorPipe's wire protocol.",
    .extensions = &probe.extension,
};

tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    const struct tp_options *o = opts;
    struct port_range ports;
    tenrec_status st = registry_check(registry_transports, "transports", &o->transports, err);

    if (st == TENREC_OK)
        st = registry_check(registry_channels, "channels", &o->channels, err);
    if (st != TENREC_OK)
        return st;
    if (*o->ifname && *o->listen)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "ifname \"%s\" and listen \"%s\" exclude each other; set one of them",
                           o->ifname, o->listen);
    if (*o->ifname)
        st = interface_check(o->ifname, err);
    if (st == TENREC_OK && *o->shm_dir)
        st = ring_folder_check_path(o->shm_dir, err);
    if (st != TENREC_OK)
        return st;
    return transport_ports(o->port, &ports, err);
}

tenrec_status tenrec_init_agent(const struct tenrec_init *in, struct tenrec_agent *self,
                                tenrec_error *err)
{
    const tenrec_status st = TENREC_REQUIRES(self->host, budget, err);

    return st == TENREC_OK ? agent_new(in, self, err) : st;
}
