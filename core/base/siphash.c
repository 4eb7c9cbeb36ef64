/* SPDX-License-Identifier: Apache-2.0 */
#include "base/siphash.h"

#include "base/clock.h"

#include <sys/random.h>

static uint64_t siphash_rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static void siphash_mix(uint64_t v[4], int rounds)
{
    while (rounds-- > 0) {
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
}

/* Reads at most 8 bytes, little-endian. */
static uint64_t word_at(const uint8_t *p, size_t n)
{
    uint64_t w = 0;

    for (size_t i = 0; i < n; i++)
        w |= (uint64_t)p[i] << (8 * i);
    return w;
}

static void siphash_absorb(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    siphash_mix(v, 2);
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
    size_t left = len;

    for (; left >= 8; p += 8, left -= 8)
        siphash_absorb(v, word_at(p, 8));
    siphash_absorb(v, word_at(p, left) | (uint64_t)len << 56);
    v[2] ^= 0xff;
    siphash_mix(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
