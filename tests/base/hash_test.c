/* SPDX-License-Identifier: Apache-2.0 */
/* hash_test.c - tables whose keys others choose. */
#include "../testing.h"

#include "core/base/hash.h"

enum { N = 4096, LOW_BITS = 1023 };

struct item {
    int64_t id[2];
    UT_hash_handle hh;
};

/* Ids that uthash's own function would put into one bucket of 1024. */
static void choose_ids(struct item *items)
{
    int64_t next = 0;

    for (size_t i = 0; i < N; i++) {
        unsigned hash;

        do {
            items[i].id[0] = 3;
            items[i].id[1] = next++;
            HASH_JEN(items[i].id, sizeof items[i].id, hash);
        } while ((hash & LOW_BITS) != 0);
    }
}

static unsigned longest_chain(const struct item *table)
{
    unsigned longest = 0;

    for (unsigned i = 0; i < table->hh.tbl->num_buckets; i++)
        if (table->hh.tbl->buckets[i].count > longest)
            longest = table->hh.tbl->buckets[i].count;
    return longest;
}

TEST(hash_spreads_ids_that_were_chosen_to_collide)
{
    struct item *items = calloc(N, sizeof *items), *table = NULL;

    assert_non_null(items);
    choose_ids(items);
    for (size_t i = 0; i < N; i++) {
        HASH_ADD(hh, table, id, sizeof items[i].id, &items[i]);
        assert_true(hash_has(&items[i]));
    }
    assert_int_equal(table->hh.tbl->noexpand, 0);
    assert_in_range(longest_chain(table), 1, 40);
    HASH_CLEAR(hh, table);
    free(items);
}

TEST(hash_of_equal_bytes_is_equal)
{
    const char a[] = "tenrec.ping", b[] = "tenrec.ping";

    assert_int_equal(hash_keyed(a, sizeof a), hash_keyed(b, sizeof b));
}
