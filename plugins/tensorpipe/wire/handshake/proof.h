/* SPDX-License-Identifier: Apache-2.0 */
/* proof.h - how a Tenrec peer proves to another that it is a member, without revealing its token.
 *
 * Each life of a member has a token of 64 random bits in the store. A proof is a keyed hash
 * (SipHash-2-4) of which the key is both tokens: only a process that knows both makes it, and
 * only the one peer that it is meant for can use it. A process that sits at the address of a
 * dead member learns nothing that it could show to a third one. */
#ifndef TENSORPIPE_PROOF_H
#define TENSORPIPE_PROOF_H

#include <stddef.h>
#include <stdint.h>
#include <tenrec/types.h>

/* One life of a member. */
struct proof_life {
    tenrec_peer rank;
    uint64_t incarnation, token;
};

enum proof_role { PROOF_OF_CALLER = 1, PROOF_OF_LISTENER = 2 };

/* The proof of `by` for `to`; never 0. */
uint64_t proof_make(const struct proof_life *by, const struct proof_life *to, enum proof_role role);

/* SipHash-2-4 of whole words of 64 bits, little endian. */
uint64_t proof_hash(uint64_t k0, uint64_t k1, const uint64_t *word, size_t n);

#endif
