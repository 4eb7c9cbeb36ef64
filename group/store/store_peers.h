/* SPDX-License-Identifier: Apache-2.0 */
/* store_peers.h - the accepted connections of a TCP store's server, and how many there may be. On
 * the loop's thread. */
#ifndef TENREC_STORE_STORE_PEERS_H
#define TENREC_STORE_STORE_PEERS_H

#include "core/backend/account.h"
#include "group/store/store_session.h"
#include "security/proof/security.h"

#include <uv.h>

struct store_peer;

/* Proofs that clients of one address may begin at once: as many as the server has places for
 * strangers. */
#define STORE_PROOFS 4096

#define STORE_PEERS_READ ((size_t)64 << 10)

struct store_peers {
    struct security *security; /* counted; NULL, or in mode none: no gate */
    struct store_hub hub;
    struct store_peer *list; /* the newest first */
    size_t n;
    struct store_peer *strangers; /* with a gate that is shut; the newest first */
    size_t n_strangers;
    struct store_peer *behind; /* whose turn has ended before their requests did, in that order */
    uv_idle_t turns;           /* runs while there are such; open from the first connection on */
    bool has_turns;
    void (*count)(void *arg, int delta); /* of uv handles that are open */
    void *arg;
    char room[STORE_PEERS_READ]; /* each read is used up before the next */
};

/* A reference to the source of a client at that address. NULL: out of memory. */
struct tenrec_account *store_peers_source(const struct sockaddr *from);
/* Accepts the next connection of `listener`, or closes it if there are too many. Returns false
 * without memory: the connection still waits. */
bool store_peers_accept(struct store_peers *peers, uv_stream_t *listener);
/* Returns true if the clients must prove themselves, or be let in without. */
bool store_peers_prove(const struct store_peers *peers);
/* Closes all at once. */
void store_peers_drop(struct store_peers *peers);
/* Closes the connections that are late with their proof, or with a request. Called periodically. */
void store_peers_expire(struct store_peers *peers, uint64_t now_ns);

/* For store_peer.c: gives a connection another turn, after those that came before, and after the
 * loop has read from all; takes it back. */
void store_peers_put_behind(struct store_peers *peers, struct store_peer *peer);
void store_peers_take_behind(struct store_peers *peers, struct store_peer *peer);

/* For store_peer.c: lists a connection by its gate, and removes it before the gate changes. */
void store_peers_add(struct store_peers *peers, struct store_peer *peer);
void store_peers_remove(struct store_peers *peers, struct store_peer *peer);

#endif
