/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the options of this plugin, as plugin.c describes them. */
#ifndef UCX_OPTIONS_H
#define UCX_OPTIONS_H

#include <tenrec/plugin.h>

struct ucx_options {
    struct tenrec_option_list tls;     /* of text; empty: UCX decides */
    struct tenrec_option_list devices; /* likewise */
    const char *listen;                /* "": the host's address, else loopback */
    const char *progress;
    uint64_t rndv_threshold_bytes; /* 0: UCX decides */
    uint64_t max_queued_bytes, max_message_bytes, max_stranger_bytes;
    uint64_t connect_timeout_ms, keepalive_ms;
};

/* Does what tenrec_init_agent is asked for. */
tenrec_status agent_new(const struct tenrec_init *in, struct tenrec_agent *self, tenrec_error *err);

/* probe.c: what this plugin could use on this machine, and why not the rest. */

/* The plugin's probe. */
void probe_push(const void *options, tenrec_sink_fn *sink, void *arg);
/* Debug info: "not_used.transport.rc_mlx5" with the reason, for each way to a peer that is not
 * viable. */
void probe_push_unused(const void *options, tenrec_sink_fn *sink, void *arg);

#endif
