/* SPDX-License-Identifier: Apache-2.0 */
/* agent_identity.c - what an agent tells of itself, and what it believes of others.
 *
 * Rank and incarnation of a member are small numbers that any process can claim; a proof is made of
 * the tokens of both members, which only readers of the store know. Peers whose records have no
 * token, as those of older workers and of other libraries, are known by their incarnation. */
#include "pipe/pipe.h"

static uint64_t make_proof(const struct agent *a, const struct peer *peer, bool ours,
                           enum proof_role role)
{
    const struct proof_life us = { a->me, a->incarnation, a->token };
    const struct proof_life them = { peer->id, peer->incarnation, peer->token };

    return ours ? proof_make(&us, &them, role) : proof_make(&them, &us, role);
}

void agent_write_identity(const struct agent *a, const struct peer *peer, enum proof_role role,
                          char ret[IDENTITY_MAX])
{
    const struct identity identity = {
        .version = IDENTITY_VERSION,
        .rank = a->me,
        .incarnation = a->incarnation,
        .capabilities = a->capabilities,
        .proof = peer && agent_shares_tokens(a, peer) ? make_proof(a, peer, true, role) : 0,
    };

    identity_write(ret, &identity);
}

bool agent_is_shown(const struct agent *a, const struct peer *peer, enum proof_role role,
                    uint64_t shown)
{
    return agent_shares_tokens(a, peer) && shown == make_proof(a, peer, false, role);
}
