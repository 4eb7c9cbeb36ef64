/* SPDX-License-Identifier: Apache-2.0 */
/* piece_test.c - the checksum of boxes. */
#include "rpc/weights/piece.h"

#include "../testing.h"

TEST(piece_hash_is_the_published_xxh64)
{
    static const struct {
        const char *text;
        uint64_t seed, hash;
    } known[] = {
        { "", 0, 0xef46db3751d8e999u },
        { "a", 0, 0xd24ec4f1a98c6e5bu },
        { "abc", 0, 0x44bc2cf5ad770999u },
        { "xxhash", 20141025, 0xb559b98d844e0635u },
        { "Nobody inspects the spammish repetition", 0, 0xfbcea83c8a378bf1u }, /* 32 and more */
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_int_equal(piece_hash(known[i].text, strlen(known[i].text), known[i].seed),
                         known[i].hash);
}

static struct piece rows_of(int64_t at, int64_t rows)
{
    return (struct piece){ .name = "m",
                           .dtype = TENREC_UINT8,
                           .ndim = 2,
                           .shape = { 6, 50 },
                           .at = { at, 0 },
                           .extent = { rows, 50 },
                           .bytes = (uint64_t)rows * 50 };
}

TEST(piece_checksum_is_the_same_in_any_box_and_names_each_byte)
{
    const struct piece all = rows_of(0, 6), some = rows_of(2, 3);
    unsigned char whole[300], apart[150];
    uint64_t sum;

    for (size_t i = 0; i < sizeof whole; i++)
        whole[i] = (unsigned char)(i * 7);
    memcpy(apart, whole + 100, sizeof apart);
    sum = piece_checksum(&some, &some, apart);
    assert_int_equal(piece_checksum(&some, &all, whole), sum);
    for (size_t i = 0; i < sizeof apart; i++) {
        apart[i] ^= 1;
        assert_int_not_equal(piece_checksum(&some, &some, apart), sum);
        apart[i] ^= 1;
    }
}

int main(void)
{
    return testing_run(NULL, NULL);
}
