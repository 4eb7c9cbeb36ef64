/* SPDX-License-Identifier: Apache-2.0 */
/* chain_proof.h - the proof service of a chain (tenrec/proof.h). */
#ifndef TENREC_BACKEND_CHAIN_PROOF_H
#define TENREC_BACKEND_CHAIN_PROOF_H

#include "backend/chain.h"
#include "backend/chain_members.h"

#include <tenrec/proof.h>

/* What the service knows of its chain. */
struct chain_proof {
    struct security *security; /* shares; NULL: as mode none */
    struct chain_members members;
    tenrec_peer me;
    uint64_t incarnation;
    const char *name;    /* borrowed until chain_close */
    const char *address; /* likewise; set once the agents exist */
};

void chain_proof_init(struct chain_proof *p, const struct chain_identity *id);
void chain_proof_finish(struct chain_proof *p);

/* Checks that no stranger can reach a plugin that proves nothing. errors: ECONFIG */
tenrec_status chain_proof_check(const struct chain_proof *p, const struct tenrec_plugin *innermost,
                                tenrec_error *err);

extern const struct tenrec_proof_service chain_proof_service;

#endif
