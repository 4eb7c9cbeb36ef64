/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - what a user can say about a tensorpipe agent; plugin.c has the
 * table with defaults and help. */
#ifndef TENSORPIPE_OPTIONS_H
#define TENSORPIPE_OPTIONS_H

#include <tenrec/agent.h>
#include <tenrec/plugin.h>

struct tp_options {
    struct tenrec_option_list transports; /* names, the first is preferred */
    struct tenrec_option_list channels;
    const char *progress; /* busy, adaptive or sleep */
    const char *ifname;   /* interface to listen on; "": see listen */
    const char *listen;   /* address or host name; "": loopback */
    const char *family;   /* any, ipv4 or ipv6 */
    const char *port;     /* "0", "29600" or "29600-29700" */
    const char *shm_dir;  /* folder for the sockets of rings; "": none */
    uint64_t connect_timeout_ms;
    uint64_t hello_timeout_ms, handshake_timeout_ms;
    uint64_t keepalive_ms;    /* TENREC_FOREVER: off */
    uint64_t idle_timeout_ms; /* TENREC_FOREVER: off */
    uint64_t max_object;
    uint64_t max_message;
    uint64_t max_queued_bytes;
    union {
        struct {
            uint64_t max_stranger_bytes, max_source_bytes;
        };
        struct tenrec_account_limits strangers; /* the same two */
    };
    uint64_t inline_max;         /* bytes of a tensor that travels with its message */
    int64_t lanes;               /* TCP connections for one large tensor */
    uint64_t pull_min, pull_max; /* of a tensor that the receiver reads out of our memory */
    uint64_t cuda_staging;       /* bytes of pinned memory */
    uint64_t cuda_cache;         /* bytes of a device that are kept for later tensors */
};

#endif
