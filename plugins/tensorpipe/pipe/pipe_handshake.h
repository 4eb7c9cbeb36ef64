/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_handshake.h - how a pipe opens, and what both sides agree on then. */
#ifndef TENSORPIPE_PIPE_HANDSHAKE_H
#define TENSORPIPE_PIPE_HANDSHAKE_H

#include "admission/handshakes.h"
#include "transport/conn.h"

struct channel;

struct pipe_terms {
    uint64_t capabilities;             /* the peer's */
    uint64_t max_message, max_object;  /* what it reads at most; 0: it has no limit */
    const struct transport *transport; /* of the connections */
    const struct channel *channel;     /* for host memory; NULL: none */
};

/* The loop thread's, until the pipe is established. */
struct pipe_handshake {
    struct handshake entry; /* incoming: among those under way */
    struct conn *bootstrap; /* incoming: where it began, if not on a connection of the pipe */
    /* Outgoing, as all that follow: */
    const struct transport *dialled; /* where it begins */
    union transport_address there;   /* where the connections go */
    unsigned avoided;                /* ports that led nowhere, by bit ... */
    char avoided_why[96];            /* ... and why the last of them did */
    uint64_t ids[CONN_ROLES];        /* to request the connections with */
    unsigned redials;
    struct reactor_timer redial; /* repeats the handshake */
    struct reactor_task connect_task;
};

#endif
