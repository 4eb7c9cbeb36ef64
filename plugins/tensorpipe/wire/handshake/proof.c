/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/handshake/identity.h"

static uint64_t proof_rotate(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static void proof_mix(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = proof_rotate(v[1], 13) ^ v[0];
    v[3] = proof_rotate(v[3], 16) ^ v[2];
    v[0] = proof_rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = proof_rotate(v[1], 17) ^ v[2];
    v[3] = proof_rotate(v[3], 21) ^ v[0];
    v[2] = proof_rotate(v[2], 32);
}

static void proof_absorb(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    proof_mix(v);
    proof_mix(v);
    v[0] ^= word;
}

uint64_t proof_hash(uint64_t k0, uint64_t k1, const uint64_t *word, size_t n)
{
    uint64_t v[4] = { k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du, k0 ^ 0x6c7967656e657261u,
                      k1 ^ 0x7465646279746573u };

    for (size_t i = 0; i < n; i++)
        proof_absorb(v, word[i]);
    proof_absorb(v, (uint64_t)(8 * n) << 56);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        proof_mix(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t proof_make(const struct proof_life *by, const struct proof_life *to, enum proof_role role)
{
    const uint64_t word[] = { role, (uint64_t)by->rank, by->incarnation, (uint64_t)to->rank,
                              to->incarnation };
    const uint64_t proof = proof_hash(by->token, to->token, word, sizeof word / sizeof word[0]);

    return proof ? proof : 1;
}
