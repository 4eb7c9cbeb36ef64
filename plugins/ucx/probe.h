/* SPDX-License-Identifier: Apache-2.0 */
/* probe.h - what this plugin could use on this machine, and why not the rest. */
#ifndef UCX_PROBE_H
#define UCX_PROBE_H

#include <tenrec/plugin.h>

/* The plugin's probe. */
void probe_push(const void *options, tenrec_sink_fn *sink, void *arg);
/* Debug info: "not_used.transport.rc_mlx5" with the reason, for each way to a peer that is not
 * viable. */
void probe_push_unused(const void *options, tenrec_sink_fn *sink, void *arg);

#endif
