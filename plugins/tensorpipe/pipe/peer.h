/* SPDX-License-Identifier: Apache-2.0 */
/* peer.h - a member of the group, and the pipe on which requests go to it.
 *
 * The pipe is found without a lock and without a reference, since every call
 * needs it twice: between peer_enter and peer_leave neither the pipe nor the
 * agent is freed. A removed pipe is kept until all threads that were inside then
 * have left. For that the users are counted on two sides: newcomers go to
 * one while the other runs empty, so that it does, however many there are. */
#ifndef TENSORPIPE_PEER_H
#define TENSORPIPE_PEER_H

#include "endpoint.h"

struct pipe;

/* Lives as long as the agent. */
struct peer {
    tenrec_peer id;
    atomic_uint side;           /* where newcomers are counted; changes under lock */
    atomic_uint users[2];       /* threads inside, by side */
    _Atomic(struct pipe *) out; /* owns a reference; changes under lock */
    _Atomic(struct pipe *) old; /* taken out, and perhaps in use; likewise */
    pthread_mutex_t lock;
    atomic_bool left;    /* nothing is sent there any more */
    struct peer *before; /* the earlier member of the id; owns */
    unsigned callers;    /* established pipes on which it calls us; the loop thread's */
    uint64_t incarnation;
    uint64_t token;             /* 0: none in the record, identified by incarnation */
    const char *name, *address; /* borrowed until shutdown */
};

/* errors: ENOMEM */
struct peer *peer_new(const struct tenrec_member *m);
void peer_free(struct peer *peer); /* with all that had the id before */

/* Returns the member of that id, or NULL. */
static inline struct peer *peer_find(const struct endpoint *ep, tenrec_peer id)
{
    return id >= 0 && id < ENDPOINT_PEERS
               ? atomic_load_explicit(&ep->peers[id], memory_order_acquire)
               : NULL;
}

/* Returns the side for peer_leave. */
unsigned peer_enter(struct peer *peer);
void peer_leave(struct endpoint *ep, struct peer *peer, unsigned side);

/* Two operations of the agent: sends a request, through a new pipe if there is none, or an answer
 * along its route; and polls for an answer. */
void peer_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
               struct tenrec_done done);
tenrec_status peer_poll(struct tenrec_agent *self, tenrec_peer from,
                        const struct tenrec_wait *wait);

/* Releases removed pipes that are not in use any more. */
void peer_drop_old(struct peer *peer);

static inline bool peer_in_use(struct peer *peer)
{
    return atomic_load(&peer->users[0]) || atomic_load(&peer->users[1]);
}

/* Returns the pipe to `peer`, or NULL. Between peer_enter and peer_leave. */
static inline struct pipe *peer_out(struct peer *peer)
{
    return atomic_load(&peer->out);
}

/* Takes `p` out, if it is the peer's: the next send connects anew. */
void peer_forget(struct peer *peer, struct pipe *p);

/* Nothing is sent there any more. */
void peer_retire(struct endpoint *ep, struct peer *peer, const char *why);

#endif
