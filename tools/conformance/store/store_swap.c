/* SPDX-License-Identifier: Apache-2.0 */
/* store_swap.c - compare_set. */
#include "conformance/store/store_clients.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void swap_gives(struct tenrec_store *s, const char *expected, const char *desired,
                       const char *answer)
{
    char *now = NULL;
    tenrec_error err;

    clients_note("cs");
    expect_ok(store_swap_text(s, "cs", expected, desired, soon(), &now, &err), &err, "compare_set");
    if (strcmp(now, answer) != 0)
        expect_fail("compare_set from \"%s\" to \"%s\" gives \"%.40s\", expected \"%s\"", expected,
                    desired, now, answer);
    free(now);
}

STORE_CASE(compare_set_swaps_only_what_is_expected, "ST-10")
{
    swap_gives(one, "x", "y", "x"); /* it is missing, and not expected to be */
    expect(!has(one, "cs"), "a compare_set that expects another value creates the key");
    swap_gives(one, "", "first", "first");
    swap_gives(two, "", "second", "first");
    swap_gives(two, "firs", "second", "first");
    swap_gives(two, "first!", "second", "first");
    holds(one, "cs", "first");
    swap_gives(two, "first", "third", "third");
    holds(one, "cs", "third");
    swap_gives(one, "third", "", "");
    holds(two, "cs", "");
    swap_gives(one, "", "last", "last"); /* an empty value is expected as well */
}

STORE_CASE(compare_set_compares_all_bytes, "ST-10")
{
    struct store_value expected = { (char[]){ "a\0b" }, 3 },
                       desired = { (char[]){ "\0\1\377" }, 3 }, now = { 0 };
    tenrec_error err;

    put_bytes(one, "cs", "a\0c", 3);
    expect_ok(store_compare_set(two, "cs", &expected, &desired, soon(), &now, &err), &err,
              "compare_set");
    expect_equal(now.len, 3, "the length of the value that compare_set passes");
    expect_bytes(now.data, "a\0c", 3, "the value that compare_set passes");
    free(now.data);
    put_bytes(one, "cs", "a\0b", 3);
    expect_ok(store_compare_set(two, "cs", &expected, &desired, soon(), &now, &err), &err,
              "compare_set");
    expect_equal(now.len, 3, "the length of the new value that compare_set passes");
    expect_bytes(now.data, "\0\1\377", 3, "the new value that compare_set passes");
    free(now.data);
    holds_bytes(one, "cs", "\0\1\377", 3);
}

enum { VOTERS = 8, ROUNDS = 20 };

struct voter {
    struct tenrec_store *s;
    char name[16];
    pthread_barrier_t *together;
    bool elected[ROUNDS];
};

static void *voter_run(void *arg)
{
    struct voter *v = arg;
    char key[16], *now;
    tenrec_error err;

    for (int i = 0; i < ROUNDS; i++) {
        snprintf(key, sizeof key, "vote%d", i);
        pthread_barrier_wait(v->together);
        expect_ok(store_swap_text(v->s, key, "", v->name, soon(), &now, &err), &err, "compare_set");
        v->elected[i] = strcmp(now, v->name) == 0;
        free(now);
    }
    return NULL;
}

STORE_CASE(compare_set_elects_one_of_many, "ST-10")
{
    struct voter v[VOTERS] = { { .s = NULL } };
    pthread_t thread[VOTERS];
    pthread_barrier_t together;
    char key[16];

    pthread_barrier_init(&together, NULL, VOTERS);
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(key, sizeof key, "vote%d", i);
        clients_note(key);
    }
    for (int i = 0; i < VOTERS; i++) {
        v[i].s = i % 2 ? one : two;
        v[i].together = &together;
        snprintf(v[i].name, sizeof v[i].name, "voter%d", i);
        expect_here(pthread_create(&thread[i], NULL, voter_run, &v[i]) == 0);
    }
    for (int i = 0; i < VOTERS; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&together);
    for (int i = 0; i < ROUNDS; i++) {
        int elected = 0;

        for (int k = 0; k < VOTERS; k++)
            elected += v[k].elected[i];
        expect_equal(elected, 1, "the number of voters elected in round %d", i);
    }
}
