/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_identity.h - which process is at the other end of a pipe: what it claims and what it proves.
 */
#ifndef TENSORPIPE_PIPE_IDENTITY_H
#define TENSORPIPE_PIPE_IDENTITY_H

#include "endpoint.h"
#include "pipe/peer.h"
#include "transport/conn.h"
#include "wire/handshake/identity.h"

struct pipe;

/* The caller of an incoming pipe. */
struct pipe_caller {
    atomic_bool claims; /* to be a member that is not known, as below; set by the reader */
    bool named;         /* all that it gives is a name */
    bool counted;       /* among the callers of its peer; the loop thread's */
    tenrec_peer id;     /* as it claims; and so the next two */
    uint64_t incarnation, proof;
    _Atomic(struct peer *) member; /* that it has proved to be, set by the reader; NULL */
    struct conn_peer proved;       /* as the proof of its first connection has shown */
};

struct pipe_remote {
    pid_t pid;                       /* its process, or 0 if unknown */
    union transport_address address; /* where the handshake began */
    char text[TRANSPORT_TEXT_MAX];
    char name[TENREC_NAME_MAX + 1];
};

/* Writes this agent's identity for `peer`, with a proof if both have tokens. NULL means a
 * stranger. */
void pipe_write_identity(const struct endpoint *ep, const struct peer *peer, enum proof_role role,
                         char ret[IDENTITY_MAX]);
/* Stores the capabilities and limits that the peer has announced. */
void pipe_take_identity(struct pipe *p, const struct identity *identity);
/* Returns true if `shown` is what only `peer` can show to us; false also if one of us has no
 * token. */
bool pipe_is_shown(const struct endpoint *ep, const struct peer *peer, enum proof_role role,
                   uint64_t shown);
/* Returns true if `peer` and this agent can prove their identities to each other. */
static inline bool pipe_shares_tokens(const struct endpoint *ep, const struct peer *peer)
{
    return ep->token && peer->token;
}

/* Returns true if `peer` is of another library, as its record has no token: it can prove nothing.
 * If no member has a token, no peer counts as another library. */
static inline bool pipe_peer_is_plain(const struct endpoint *ep, const struct peer *peer)
{
    return !peer->token && (ep->token || ep->me == TENREC_ANONYMOUS);
}

/* Returns true if the caller is the member that it claims to be. On the thread that reads. */
bool pipe_recognise(struct pipe *p);
/* The same for a caller of another library, in a group whose members have neither incarnations nor
 * tokens: such callers identify themselves by name only. */
bool pipe_recognise_name(struct pipe *p);
/* Counts an established pipe among those of its caller, if that is known. Loop thread. */
void pipe_count_caller(struct pipe *p);

#endif
