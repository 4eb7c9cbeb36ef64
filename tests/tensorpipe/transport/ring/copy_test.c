/* SPDX-License-Identifier: Apache-2.0 */
/* copy_test.c - copying past the caches, at all alignments and lengths. */
#include "node.h"
#include "transport/ring/ring.h"

#include <stdlib.h>

#define ROOM 4096
#define EDGE 64 /* nothing is written beyond either end */

static void check_copy(const unsigned char *from, size_t to_at, size_t from_at, size_t len)
{
    static unsigned char to[ROOM + 2 * EDGE];

    memset(to, 0xee, sizeof to);
    copy_past_caches(to + to_at, from + from_at, len);
    assert_memory_equal(to + to_at, from + from_at, len);
    for (size_t i = 0; i < EDGE; i++) {
        if (i < to_at)
            assert_int_equal(to[to_at - 1 - i], 0xee);
        assert_int_equal(to[to_at + len + i], 0xee);
    }
}

static unsigned char *pattern(size_t len)
{
    unsigned char *p = malloc(len);

    for (size_t i = 0; i < len; i++)
        p[i] = (unsigned char)(i * 7 + (i >> 8));
    return p;
}

TEST(copy_copies_every_length_at_every_place)
{
    unsigned char *from = pattern(ROOM);

    for (size_t len = 0; len < 700; len++)
        check_copy(from, len % 65, len % 7, len);
    for (size_t at = 0; at < EDGE; at++)
        for (size_t off = 0; off < 17; off++)
            check_copy(from, at, off, ROOM - 64 - off);
    free(from);
}

TEST(copy_splits_large_tensors_into_parts)
{
    const size_t whole = COPY_PAST_CACHES_MIN + 12345, part = 100003;
    unsigned char *from = pattern(whole), *to = malloc(whole);

    for (size_t at = 0; at < whole; at += part)
        copy_part(to + at, from + at, whole - at < part ? whole - at : part, whole);
    assert_memory_equal(to, from, whole);
    copy_part(to, from + 1, 1000, 1000);
    assert_memory_equal(to, from + 1, 1000);
    free(from);
    free(to);
}
