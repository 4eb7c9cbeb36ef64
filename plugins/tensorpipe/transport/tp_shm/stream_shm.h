/* SPDX-License-Identifier: Apache-2.0 */
/* stream_shm.h - a connection of TensorPipe's shm transport: two rings, and a
 * Unix socket that closes when the peer is gone. */
#ifndef TENSORPIPE_STREAM_SHM_H
#define TENSORPIPE_STREAM_SHM_H

#include "transport/stream.h"
#include "transport/tp_shm/shm_link.h"
#include "transport/transport.h"

/* A connection's medium. */
struct shm_medium {
    struct shm_link link;
    struct conn *conn;

    /* The loop thread's, until the handshake is over. */
    struct shm_hello ours; /* to tell the peer; its descriptors are closed then */
    bool watched;          /* the socket is in the epoll set */
    bool reached;          /* the socket is connected, and the rings were sent */
    bool attached;         /* the peer's rings are here */
    int failed;            /* why they never will be, an errno */

    unsigned naps;     /* of the reader, since it last found something */
    atomic_bool ended; /* the socket said that the peer is gone, or we are going */

    /* What the loop thread looks for, see shm_watch.h. */
    atomic_int hears;                /* enum conn_hears */
    atomic_bool look_again;          /* what is there already is news */
    atomic_bool wants_room;          /* in the peer's inbox, which was full when ... */
    atomic_uint_least64_t taken;     /* ... the peer had taken so much from it */
    uint64_t written;                /* in our inbox at the last look; loop thread */
    struct shm_medium *next, **prev; /* of those that are looked at; prev NULL: is not */
};

extern const struct stream stream_shm;

/* A connection over the socket `fd`, which it takes always, with rings of ours.
 * The peer's are told as EPOLLOUT. NULL: *ret_errno says why. */
struct conn *stream_shm_conn(struct endpoint *ep, const struct transport *transport, int fd,
                             const union transport_address *peer, int *ret_errno);

/* Call once the socket is connected: sends our rings to the peer. 0 or an errno. */
int stream_shm_reached(struct conn *c);
/* The same later than connect has returned; `e`: why it could not be connected.
 * Reports a failure to the connection. */
void stream_shm_reached_late(struct conn *c, int e);

#endif
