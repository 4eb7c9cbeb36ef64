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

#endif
