/* SPDX-License-Identifier: Apache-2.0 */
/* piece_test.c - the checksum of boxes. */
#include "rpc/weights/piece.h"

#include "../testing.h"

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

/* The checksum of `p` in the box `in`, of which `step` bytes arrive at a time. */
static uint64_t sum_in(const struct piece *p, const struct piece *in, const void *memory,
                       uint64_t step)
{
    struct piece_sum s = { 0 };
    uint64_t arrived = 0;

    assert_true(piece_sum_begin(&s));
    while (!piece_sum_add(&s, p, in, memory, arrived)) {
        assert_true(arrived < in->bytes);
        arrived += step;
        if (arrived > in->bytes)
            arrived = in->bytes;
    }
    return piece_sum_end(&s);
}

TEST(piece_checksum_is_the_same_in_any_box_and_names_each_byte)
{
    const struct piece all = rows_of(0, 6), some = rows_of(2, 3);
    unsigned char whole[300], apart[150];
    uint64_t sum, other;

    for (size_t i = 0; i < sizeof whole; i++)
        whole[i] = (unsigned char)(i * 7);
    memcpy(apart, whole + 100, sizeof apart);
    assert_true(piece_checksum(&some, apart, &sum));
    assert_int_equal(sum_in(&some, &all, whole, 1), sum);
    for (size_t i = 0; i < sizeof apart; i++) {
        apart[i] ^= 1;
        assert_true(piece_checksum(&some, apart, &other));
        assert_int_not_equal(other, sum);
        apart[i] ^= 1;
    }
}

TEST(piece_checksum_of_columns_is_computed_while_they_arrive)
{
    const struct piece all = { .dtype = TENREC_FLOAT32,
                               .ndim = 3,
                               .shape = { 4, 5, 6 },
                               .extent = { 4, 5, 6 },
                               .bytes = 480 };
    const struct piece some = { .dtype = TENREC_FLOAT32,
                                .ndim = 3,
                                .shape = { 4, 5, 6 },
                                .at = { 1, 2, 1 },
                                .extent = { 2, 3, 4 },
                                .bytes = 96 };
    unsigned char whole[480], apart[96];
    uint64_t sum;

    for (size_t i = 0; i < sizeof whole; i++)
        whole[i] = (unsigned char)(i * 7 + i / 256);
    for (size_t i = 0; i < 6; i++) /* rows of 16 bytes */
        memcpy(apart + 16 * i, whole + (((1 + i / 3) * 5 + 2 + i % 3) * 6 + 1) * 4, 16);
    assert_true(piece_checksum(&some, apart, &sum));
    for (uint64_t step = 1; step <= sizeof whole; step = step * 3 + 1)
        assert_int_equal(sum_in(&some, &all, whole, step), sum);
}
