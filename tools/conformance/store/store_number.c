/* SPDX-License-Identifier: Apache-2.0 */
/* store_number.c - add. */
#include "conformance/store/store_clients.h"

#include <inttypes.h>
#include <stdlib.h>

STORE_CASE(add_counts_in_decimal_text, "ST-9")
{
    expect_equal(add(one, "n", 5), 5, "the sum after add 5");
    expect_equal(add(two, "n", -7), -2, "the sum after add -7");
    holds(one, "n", "-2");
    put(one, "n", "40");
    expect_equal(add(two, "n", 2), 42, "the sum after 40 and add 2");
    holds(one, "n", "42");
    expect_equal(add(one, "n", 0), 42, "the sum after add 0");
    expect_equal(add(one, "zero", 0), 0, "the sum of a new key after add 0");
    holds(two, "zero", "0");
}

static void add_is_refused(const char *key, int64_t delta, const char *value)
{
    int64_t sum = 77;
    tenrec_error err = { .text = "" };

    expect_error(store_add(one, key, delta, soon(), &sum, &err), TENREC_EINVAL, &err, "add");
    expect_equal(sum, 77, "*ret of a refused add");
    holds(two, key, value);
}

STORE_CASE(add_is_refused_when_the_value_is_no_number, "ST-9")
{
    static const char *const word[] = { "seven", "7x", "0x7", "1e3", "-", "99999999999999999999" };

    for (size_t i = 0; i < sizeof word / sizeof *word; i++) {
        put(one, "word", word[i]);
        add_is_refused("word", 1, word[i]);
    }
}

STORE_CASE(add_reaches_both_ends_of_64_bits_and_not_beyond, "ST-9")
{
    expect(add(one, "most", INT64_MAX) == INT64_MAX,
           "the sum of a new key and INT64_MAX is another");
    holds(two, "most", "9223372036854775807");
    add_is_refused("most", 1, "9223372036854775807");
    expect(add(one, "least", INT64_MIN) == INT64_MIN,
           "the sum of a new key and INT64_MIN is another");
    holds(two, "least", "-9223372036854775808");
    add_is_refused("least", -1, "-9223372036854775808");
    expect(add(one, "least", INT64_MAX) == -1, "the sum of INT64_MIN and INT64_MAX is not -1");
}

/* A sum of 64 bits must be exact: a store that counts in a double loses the last digits. */
STORE_CASE(add_is_exact, "ST-9")
{
    put(one, "n", "9007199254740992");
    expect(add(one, "n", 1) == INT64_C(9007199254740993), "the sum of 2^53 and 1 is not exact");
    holds(two, "n", "9007199254740993");
}
