/* SPDX-License-Identifier: Apache-2.0 */
/* store_peer.h - one accepted connection of a TCP store's server: bytes of its socket to its gate,
 * then to its session, and answers back. On the loop's thread. */
#ifndef TENREC_STORE_STORE_PEER_H
#define TENREC_STORE_STORE_PEER_H

#include "group/store/store_peers.h"

struct store_gate;
struct tls_session;

/* Lives until uv has closed its handle. */
struct store_peer {
    uv_tcp_t tcp;
    struct store_peers *peers;
    struct store_gate *gate;       /* NULL when it has opened, or the server has none */
    struct store_session *session; /* NULL before */
    struct tenrec_account *source; /* owns a reference; NULL: its proofs have no limit */
    struct tls_session *tls;       /* carries all bytes of the session; NULL: they are plain */
    struct store_peer *prev, *next;
    bool paused; /* not read from while its answers pile up, or its requests */
    bool behind; /* listed among those that wait for their next turn */
    struct store_peer *behind_prev, *behind_next;
};

/* Begins to read from an accepted connection, and lists it. Returns false without memory. */
bool store_peer_begin(struct store_peer *peer);
/* Closes a connection that is not listed. */
void store_peer_refuse(struct store_peer *peer);
/* Runs its next requests, and reads on when it has run all. */
void store_peer_take_turn(struct store_peer *peer);
/* Closes at once, without sending. Not from inside the session, which may be the running one. */
void store_peer_drop(struct store_peer *peer);
/* The address of its client; AF_UNSPEC if that is gone. */
struct sockaddr_storage store_peer_address(const struct store_peer *peer);
/* Logs why a connection is closed. */
void store_peer_log(const struct store_peer *peer, const char *why);

/* For store_peer_tls.c. */
void store_peer_send(struct store_peer *peer, const void *data, size_t len); /* as it is */
void store_peer_abort(struct store_peer *peer,
                      const char *why); /* closes later; `why` for the log */
/* Returns true if it reads its answers, and its requests have run. */
bool store_peer_may_go_on(const struct store_peer *peer);
bool store_peer_is_closing(const struct store_peer *peer);

/* The bytes of an accepted connection over TLS, after its handshake. On the
 * loop's thread. */

/* Encrypts an answer and sends it. The connection is closed on failure. */
void store_peer_tls_write(struct store_peer *peer, const void *data, size_t len);

/* Decrypts what the TLS session has received, and feeds the store's session, until the peer leaves
 * too many answers unread. Closes the connection at its end, or on failure: the store's session may
 * not be running. */
void store_peer_tls_read(struct store_peer *peer);

#endif
