/* SPDX-License-Identifier: Apache-2.0 */
/* store_value.c - keys and values of all sizes are kept, for every client. */
#include "conformance/store/store_clients.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

STORE_CASE(set_replaces_the_value, "ST-8")
{
    put(one, "a", "hello");
    holds(one, "a", "hello");
    put(one, "a", "a longer value");
    holds(one, "a", "a longer value");
    put(one, "a", "bye");
    holds(one, "a", "bye");
    put(one, "a", "");
    holds(one, "a", "");
}

STORE_CASE(clients_see_what_others_have_done, "ST-2")
{
    tenrec_error err;
    const char *key = "a";
    char text[24];

    for (int i = 0; i < 100; i++) {
        snprintf(text, sizeof text, "%d", i);
        put(i % 2 ? one : two, "a", text);
        holds(i % 2 ? two : one, "a", text);
    }
    expect_equal(add(two, "a", 1), 100, "the sum after \"99\" and add 1");
    holds(one, "a", "100");
    expect_ok(store_remove_all(one, &key, 1, soon(), NULL, &err), &err, "remove");
    expect(!has(two, "a"), "a key exists after another client has removed it");
}

STORE_CASE_OF_TWO(processes_see_what_others_have_done, "ST-2")
{
    put(one, "here", "1");
    far_holds("here", "1");
    far_set("there", "2");
    holds(one, "there", "2");
    far_holds_begin("later", "3");
    put(one, "later", "3");
    far_holds_end();
}

STORE_CASE(values_of_all_bytes_and_sizes_are_kept, "ST-2")
{
    static const size_t size[] = { 0, 1, 2, 255, 256, 4096, 65535, 65536, 1u << 20 };
    const size_t most = clients_lack() & TENREC_STORE_LACKS_LARGE ? TENREC_STORE_SMALL_VALUE
                                                                  : TENREC_STORE_MAX_VALUE;
    char *bytes = malloc(TENREC_STORE_MAX_VALUE);

    expect_here(bytes);
    for (size_t i = 0; i < TENREC_STORE_MAX_VALUE; i++)
        bytes[i] = (char)(i * 7 + i / 4096);
    for (size_t i = 0; i < sizeof size / sizeof *size && size[i] < most; i++) {
        put_bytes(one, "v", bytes, size[i]);
        holds_bytes(two, "v", bytes, size[i]);
    }
    put_bytes(one, "v", bytes, most);
    holds_bytes(two, "v", bytes, most);
    put_bytes(one, "v", "\0\1\377\n\r\0", 6);
    holds_bytes(two, "v", "\0\1\377\n\r\0", 6);
    put_bytes(one, "none", NULL, 0);
    holds_bytes(two, "none", "", 0);
    free(bytes);
}

/* The last byte of the longest keys alone is different. */
STORE_CASE(keys_are_told_apart, "ST-2")
{
    static const char *const key[] = {
        "k", "K",   "k ",  "k/",  "k/k",    "k%",        "k%25",
        "*", "k\n", "{k}", "k\\", "k\"k'k", "\xc3\xa4k", "\x01\xffk"
    };
    const size_t n = sizeof key / sizeof *key;
    char *whole = clients_key(""), *first, *second;
    const size_t len = TENREC_STORE_MAX_KEY - strlen(whole);

    first = calloc(1, len + 1);
    second = calloc(1, len + 1);
    expect_here(first && second);
    for (size_t i = 0; i < n; i++)
        put(one, key[i], key[i]);
    for (size_t i = 0; i < n; i++)
        holds(two, key[i], key[i]);
    memset(first, 'k', len);
    memset(second, 'k', len);
    second[len - 1] = 'j';
    put(one, first, "first");
    expect(!has(two, second), "a key exists that differs in its last byte from a set one");
    put(one, second, "second");
    holds(two, first, "first");
    holds(two, second, "second");
    free(first);
    free(second);
    free(whole);
}
