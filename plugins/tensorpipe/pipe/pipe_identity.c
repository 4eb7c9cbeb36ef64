/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_identity.c - the identity of an agent, and the check of others' identities.
 *
 * Rank and incarnation of a member are small numbers that any process can claim; a proof is made of
 * the tokens of both members, which only readers of the store know. Peers whose records have no
 * token, as those of older workers and of other libraries, are known by their incarnation. */
#include "pipe/pipe.h"

/* The limit of a Tenrec worker that announces none. */
#define MAX_MESSAGE_UNTOLD (UINT64_C(16) << 30)
#define MAX_OBJECT_UNTOLD (UINT64_C(1) << 20)

static uint64_t make_proof(const struct endpoint *ep, const struct peer *peer, bool ours,
                           enum proof_role role)
{
    const struct proof_life us = { ep->me, ep->incarnation, ep->token };
    const struct proof_life them = { peer->rank, peer->incarnation, peer->token };

    return ours ? proof_make(&us, &them, role) : proof_make(&them, &us, role);
}

void pipe_write_identity(const struct endpoint *ep, const struct peer *peer, enum proof_role role,
                         char ret[IDENTITY_MAX])
{
    const struct identity identity = {
        .version = IDENTITY_VERSION,
        .rank = ep->me,
        .incarnation = ep->incarnation,
        .capabilities = ep->capabilities,
        .proof = peer && pipe_shares_tokens(ep, peer) ? make_proof(ep, peer, true, role) : 0,
        .max_message = ep->options->max_message,
        .max_object = ep->options->max_object,
    };

    identity_write(ret, &identity);
}

void pipe_take_identity(struct pipe *p, const struct identity *identity)
{
    if (!identity->version)
        return;
    p->terms.capabilities = identity->capabilities;
    p->terms.max_message = identity->max_message ? identity->max_message : MAX_MESSAGE_UNTOLD;
    p->terms.max_object = identity->max_object ? identity->max_object : MAX_OBJECT_UNTOLD;
}

bool pipe_is_shown(const struct endpoint *ep, const struct peer *peer, enum proof_role role,
                   uint64_t shown)
{
    return pipe_shares_tokens(ep, peer) && shown == make_proof(ep, peer, false, role);
}

/* A member whose record has a token must prove that it has the token. */
static bool is_that(const struct pipe *p, const struct peer *peer)
{
    return peer->incarnation == p->caller.incarnation &&
           (!p->caller.proved.proved || strcmp(peer->name, p->caller.proved.name) == 0) &&
           (!peer->token || pipe_is_shown(p->ep, peer, PROOF_OF_CALLER, p->caller.proof));
}

void pipe_count_caller(struct pipe *p)
{
    struct peer *peer = atomic_load(&p->caller.member);

    if (!peer || p->caller.counted || pipe_state(p) != PIPE_ESTABLISHED)
        return;
    p->caller.counted = true;
    peer->callers++;
}

_Static_assert(INT16_MAX < ENDPOINT_PEERS, "a claimed id is in the table");

/* Takes the caller for `peer`. Returns false if that has left. */
static bool is_caller(struct pipe *p, struct peer *peer)
{
    if (atomic_load(&peer->left))
        return false;
    atomic_store(&p->caller.member, peer);
    /* A thread that has removed the peer since has not seen this pipe. */
    if (atomic_load(&peer->left))
        return false;
    p->from = peer->id;
    p->caller.claims = false;
    pipe_release_budget(p);
    pipe_count_caller(p);
    return true;
}

/* The member of another group that calls itself 0, as this worker does. Its token alone names it.
 */
static bool pipe_recognise_linked(struct pipe *p)
{
    const int end = atomic_load(&p->ep->peers_end);

    for (int id = 0; id < end; id++) {
        struct peer *peer = atomic_load_explicit(&p->ep->peers[id], memory_order_acquire);
        if (peer && peer->rank != id && peer->token && is_that(p, peer) && is_caller(p, peer))
            return true;
    }
    return false;
}

bool pipe_recognise(struct pipe *p)
{
    /* identity_read refuses an id beyond INT16_MAX. */
    struct peer *peer = peer_find(p->ep, p->caller.id);

    if (peer && is_that(p, peer))
        return is_caller(p, peer);
    return p->caller.id == p->ep->me && pipe_recognise_linked(p);
}

bool pipe_recognise_name(struct pipe *p)
{
    struct endpoint *ep = p->ep;
    const int end = atomic_load(&ep->peers_end);

    if (ep->proves || ep->me == TENREC_ANONYMOUS || ep->incarnation || ep->token ||
        !*p->remote.name)
        return false;
    p->caller.named = true;
    for (int id = 0; id < end; id++) {
        struct peer *peer = peer_find(ep, id);
        if (peer && !peer->incarnation && !peer->token && strcmp(peer->name, p->remote.name) == 0)
            return is_caller(p, peer);
    }
    return false;
}
