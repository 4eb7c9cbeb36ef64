/* SPDX-License-Identifier: Apache-2.0 */
/* store_keys.c - check, remove and num_keys. */
#include "conformance/store/store_clients.h"

#include "core/base/clock.h"

#include <stdlib.h>
#include <string.h>

STORE_CASE(check_tells_which_keys_are_missing, "ST-12")
{
    const char *keys[] = { "c0", "c1", "c2", "c3" };
    bool missing[4] = { false, true, false, true };
    const uint64_t since_ns = clock_now_ns();
    tenrec_error err;

    put(one, "c1", "");
    put(one, "c3", "x");
    expect_ok(store_check_all(two, keys, 4, soon(), missing, &err), &err, "check");
    for (int i = 0; i < 4; i++)
        if (missing[i] != (i % 2 == 0))
            expect_fail("check reports that key \"%s\" is %s", keys[i],
                        missing[i] ? "missing" : "there");
    put(two, "c0", "");
    put(two, "c2", "");
    expect_ok(store_check_all(one, keys, 4, soon(), missing, &err), &err, "check");
    for (int i = 0; i < 4; i++)
        expect(!missing[i], "check reports that key \"%s\" is missing", keys[i]);
    /* The keys that were missing had until soon() to come. */
    expect((clock_now_ns() - since_ns) / 1000000 < expect_ms() / 2,
           "check of missing keys waits for them");
}

STORE_CASE(remove_counts_the_keys_that_existed, "ST-13")
{
    const char *keys[] = { "r0", "r1", "r2" };
    size_t n = 77;
    tenrec_error err;

    put(one, "r0", "0");
    put(one, "r2", "2");
    put(one, "r3", "3");
    expect_ok(store_remove_all(two, keys, 3, soon(), &n, &err), &err, "remove");
    expect_equal(n, 2, "the number of removed keys");
    expect(!has(one, "r0") && !has(one, "r2"), "a removed key still exists");
    holds(one, "r3", "3");
    expect_ok(store_remove_all(one, keys, 3, soon(), &n, &err), &err, "remove");
    expect_equal(n, 0, "the number of removed keys, at the second attempt,");
    expect_equal(add(one, "r0", 3), 3,
                 "the sum under a removed key"); /* a removed number counts as 0 */
    expect_ok(store_remove_all(one, keys, 1, soon(), &n, &err), &err, "remove");
    expect_equal(n, 1, "the number of removed keys, after an add,");
}

static int64_t keys_count(struct tenrec_store *s)
{
    int64_t n = -1;
    tenrec_error err;

    expect_ok(store_num_keys(s, soon(), &n, &err), &err, "num_keys");
    return n;
}

STORE_CASE(num_keys_counts_each_key_once, "ST-14")
{
    const int64_t before = keys_count(one);
    const char *key = "n1";
    tenrec_error err;

    put(one, "n1", "x");
    put(two, "n1", "y");
    expect_equal(keys_count(two), before + 1, "the number of keys after two sets of one key");
    add(one, "n2", 1);
    add(one, "n2", 1);
    expect_equal(keys_count(two), before + 2, "the number of keys after two adds to one key");
    expect(!has(one, "n3"), "a key exists that was never set");
    expect_equal(keys_count(one), before + 2, "the number of keys after a check");
    expect_ok(store_remove_all(two, &key, 1, soon(), NULL, &err), &err, "remove");
    expect_equal(keys_count(one), before + 1, "the number of keys after a removal");
}
