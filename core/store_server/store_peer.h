/* SPDX-License-Identifier: Apache-2.0 */
/* store_peer.h - the accepted connections of a TCP store's server, on the loop's thread: bytes of
 * their sockets to their sessions, and answers back. */
#ifndef TENREC_STORE_SERVER_STORE_PEER_H
#define TENREC_STORE_SERVER_STORE_PEER_H

#include "store_server/store_session.h"

#include <uv.h>

#define STORE_PEER_READ ((size_t)64 << 10)

struct store_peers {
    struct store_hub hub;
    struct store_peer *list; /* the newest first */
    size_t n;
    void (*count)(void *arg, int delta); /* of uv handles that are open */
    void *arg;
    char room[STORE_PEER_READ]; /* each read is used up before the next */
};

/* Accepts the next connection of `listener`, or closes it if there are too many. Returns false
 * without memory: the connection still waits. */
bool store_peer_accept(struct store_peers *peers, uv_stream_t *listener);
/* Closes all at once. */
void store_peers_drop(struct store_peers *peers);

#endif
