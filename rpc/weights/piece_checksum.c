/* SPDX-License-Identifier: Apache-2.0 */
/* piece_checksum.c - checksums of boxes, row by row, so that they are the same in any memory. */
#include "rpc/weights/piece.h"

#include "core/tensor/tensor.h"

#include <string.h>

static const uint64_t P1 = 0x9e3779b185ebca87u, P2 = 0xc2b2ae3d27d4eb4fu, P3 = 0x165667b19e3779f9u,
                      P4 = 0x85ebca77c2b2ae63u, P5 = 0x27d4eb2f165667c5u;

static inline uint64_t hash_rotate(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static inline uint64_t hash_word(const unsigned char *p)
{
    uint64_t x;

    memcpy(&x, p, sizeof x);
    return x;
}

static inline uint64_t hash_round(uint64_t sum, uint64_t word)
{
    return hash_rotate(sum + word * P2, 31) * P1;
}

/* Adds whole blocks of 32 bytes, in four lanes. */
static const unsigned char *hash_blocks(const unsigned char *p, size_t n, uint64_t seed,
                                        uint64_t *ret)
{
    uint64_t lane[4] = { seed + P1 + P2, seed + P2, seed, seed - P1 };
    uint64_t sum;

    for (; n >= 32; n -= 32, p += 32)
        for (int i = 0; i < 4; i++)
            lane[i] = hash_round(lane[i], hash_word(p + (size_t)i * 8));
    sum = hash_rotate(lane[0], 1) + hash_rotate(lane[1], 7) + hash_rotate(lane[2], 12) +
          hash_rotate(lane[3], 18);
    for (int i = 0; i < 4; i++)
        sum = (sum ^ hash_round(0, lane[i])) * P1 + P4;
    *ret = sum;
    return p;
}

static uint64_t hash_tail(const unsigned char *p, size_t n, uint64_t sum)
{
    uint32_t half;

    for (; n >= 8; n -= 8, p += 8)
        sum = hash_rotate(sum ^ hash_round(0, hash_word(p)), 27) * P1 + P4;
    if (n >= 4) {
        memcpy(&half, p, sizeof half);
        sum = hash_rotate(sum ^ half * P1, 23) * P2 + P3;
        n -= 4, p += 4;
    }
    for (; n > 0; n--, p++)
        sum = hash_rotate(sum ^ *p * P5, 11) * P1;
    return sum;
}

uint64_t piece_hash(const void *data, size_t n, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t sum = seed + P5;

    if (n >= 32)
        p = hash_blocks(p, n, seed, &sum);
    sum = hash_tail(p, n % 32, sum + n);
    sum = (sum ^ sum >> 33) * P2;
    sum = (sum ^ sum >> 29) * P3;
    return sum ^ sum >> 32;
}

bool piece_is_in(const struct piece *p, const struct piece *in)
{
    for (uint32_t d = 0; d < p->ndim; d++)
        if (p->at[d] < in->at[d] || p->at[d] + p->extent[d] > in->at[d] + in->extent[d])
            return false;
    return true;
}

uint64_t piece_checksum(const struct piece *p, const struct piece *in, const void *memory)
{
    const uint64_t item = dtype_bytes(p->dtype);
    const uint32_t rows_of = p->ndim ? p->ndim - 1 : 0; /* dimensions that count rows */
    int64_t i[TENREC_MAX_DIMS] = { 0 };
    uint64_t sum = 0, row = p->ndim ? (uint64_t)p->extent[rows_of] * item : item;
    uint32_t d = 1;

    if (p->bytes == 0)
        return 0;
    while (d > 0) {
        uint64_t at = 0;
        for (d = 0; d < p->ndim; d++)
            at = at * (uint64_t)in->extent[d] + (uint64_t)(p->at[d] + i[d] - in->at[d]);
        sum = piece_hash((const char *)memory + at * item, row, sum);
        for (d = rows_of; d > 0 && ++i[d - 1] == p->extent[d - 1]; d--)
            i[d - 1] = 0;
    }
    return sum;
}
