/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base/hash.h"

#include "core/base/clock.h"

#include <sys/random.h>

static uint64_t siphash_rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

/* Inlined, so that the state stays in registers. */
static inline void siphash_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = siphash_rotate(v[1], 13) ^ v[0];
    v[3] = siphash_rotate(v[3], 16) ^ v[2];
    v[0] = siphash_rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = siphash_rotate(v[1], 17) ^ v[2];
    v[3] = siphash_rotate(v[3], 21) ^ v[0];
    v[2] = siphash_rotate(v[2], 32);
}

/* One load, where the machine is little-endian. */
static uint64_t word_at(const uint8_t *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 |
           (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 |
           (uint64_t)p[7] << 56;
}

static inline void siphash_absorb(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    siphash_round(v);
    siphash_round(v);
    v[0] ^= word;
}

struct siphash_key siphash_draw(void)
{
    struct siphash_key key;

    if (getrandom(&key, sizeof key, 0) != (ssize_t)sizeof key) /* a kernel without getrandom */
        key = (struct siphash_key){ { clock_now_ns(), (uint64_t)(uintptr_t)&key } };
    return key;
}

uint64_t siphash(const struct siphash_key *key, const void *data, size_t len)
{
    uint64_t v[4] = { key->k[0] ^ 0x736f6d6570736575u, key->k[1] ^ 0x646f72616e646f6du,
                      key->k[0] ^ 0x6c7967656e657261u, key->k[1] ^ 0x7465646279746573u };
    const uint8_t *p = data;
    uint64_t last = (uint64_t)len << 56;
    size_t left = len;

    for (; left >= 8; p += 8, left -= 8)
        siphash_absorb(v, word_at(p));
    for (size_t i = 0; i < left; i++)
        last |= (uint64_t)p[i] << (8 * i);
    siphash_absorb(v, last);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        siphash_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
