/* SPDX-License-Identifier: Apache-2.0 */
/* weights_record_test.c - from which holders the keeper lets readers read. */
#include "rpc/weights/record_set.h"

#include "../testing.h"

enum { READERS = 5 };

/* Their workers give the editions the same numbers. */
TEST(record_makes_a_chain_of_readers_that_come_at_once)
{
    static const char *const names[READERS] = { "a", "b", "c", "d", "e" };
    const struct record_version v = { .number = 1, .visible = true };
    struct record_set s = { 0 };
    struct record_holder *before = NULL;

    for (int i = 0; i < READERS; i++) {
        const struct record_ask ask = { .worker = names[i], .number = 2, .version = 1 };
        struct record_holder *h = record_holder_add(&s, &ask, 1, HOLDER_PULLS);
        const struct record_holder *source;

        assert_non_null(h);
        source = record_source(&s, h, &v, false);
        assert_ptr_equal(source, before);
        h->source = source ? source->serial : 0;
        before = h;
    }
    while (s.holders)
        record_holder_remove(&s, s.holders);
}
