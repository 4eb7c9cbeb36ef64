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
    tenrec_peer rank;     /* that it calls itself; its id, but for a linked member ([AG-42]) */
    atomic_uint side;     /* where newcomers are counted; changes under lock */
    atomic_uint users[2]; /* threads inside, by side */
    unsigned callers;     /* established pipes on which it calls us; the loop thread's */
    atomic_bool left;     /* nothing is sent there any more */
    _Atomic(struct pipe *) out; /* owns a reference; changes under lock */
    _Atomic(struct pipe *) old; /* taken out, and perhaps in use; likewise */
    pthread_mutex_t *lock;      /* the endpoint's, of several peers */
    struct peer *before;        /* the earlier member of the id; owns */
    uint64_t incarnation;
    uint64_t token;             /* 0: none in the record, identified by incarnation */
    const char *name, *address; /* borrowed until shutdown */
};

/* Returns the member of that id. NULL: there is none, or no memory for it. */
struct peer *peer_find(struct endpoint *ep, tenrec_peer id);
bool peer_is_known(const struct endpoint *ep, tenrec_peer id);

/* Takes the members that are there before the agent starts. errors: EINVAL (an id), ENOMEM */
tenrec_status peer_table_start(struct endpoint *ep, const struct tenrec_member *member, uint32_t n,
                               tenrec_error *err);
/* Adds a member that has joined since. *ret_before: the earlier member of its id, to be retired; or
 * NULL errors: as above */
tenrec_status peer_table_add(struct endpoint *ep, const struct tenrec_member *m,
                             struct peer **ret_before, tenrec_error *err);
void peer_table_finish(struct endpoint *ep);

static inline bool peer_in_use(struct peer *peer)
{
    return atomic_load(&peer->users[0]) || atomic_load(&peer->users[1]);
}

/* Returns the pipe to `peer`, or NULL. Between peer_enter and peer_leave. */
static inline struct pipe *peer_out(struct peer *peer)
{
    return atomic_load(&peer->out);
}

#endif
