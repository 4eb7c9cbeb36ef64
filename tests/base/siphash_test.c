/* SPDX-License-Identifier: Apache-2.0 */
/* siphash_test.c - the vectors of its authors. */
#include "../testing.h"

#include "core/base/hash.h"

/* 00 01 02 .. as the key and as the bytes. */
TEST(siphash_gives_the_published_hashes)
{
    static const struct {
        size_t len;
        uint64_t hash;
    } rows[] = { { 0, 0x726fdb47dd0e0e31u },
                 { 1, 0x74f839c593dc67fdu },
                 { 7, 0xab0200f58b01d137u },
                 { 8, 0x93f5f5799a932462u },
                 { 15, 0xa129ca6149be45e5u } };
    const struct siphash_key key = { { 0x0706050403020100u, 0x0f0e0d0c0b0a0908u } };
    uint8_t bytes[16];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_true(siphash(&key, bytes, rows[i].len) == rows[i].hash);
}

TEST(siphash_draws_another_key_each_time)
{
    const struct siphash_key a = siphash_draw(), b = siphash_draw();

    assert_true(a.k[0] != b.k[0] || a.k[1] != b.k[1]);
}
