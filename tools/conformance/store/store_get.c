/* SPDX-License-Identifier: Apache-2.0 */
/* store_get.c - get of one and of several keys. */
#include "conformance/store/store_clients.h"

#include "core/base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

STORE_CASE(get_gives_each_value_to_its_key, "ST-11")
{
    enum { N = 40 };
    struct store_value value[N] = { { NULL, 0 } };
    char key[N][16], want[32];
    const char *keys[N];
    tenrec_error err;

    for (int i = 0; i < N; i++) {
        snprintf(key[i], sizeof key[i], "g%d", i);
        snprintf(want, sizeof want, "%*d", i % 9, i);
        keys[N - 1 - i] = key[i];
        put(one, key[i], want);
    }
    expect_ok(store_get_all(two, keys, N, soon(), value, NULL, &err), &err, "get");
    for (int i = 0; i < N; i++) {
        snprintf(want, sizeof want, "%*d", i % 9, i);
        expect_equal(value[N - 1 - i].len, strlen(want), "the length of the value of \"%s\"",
                     key[i]);
        expect_bytes(value[N - 1 - i].data, want, strlen(want), "the value of \"%s\"", key[i]);
    }
    store_values_free(value, N);
}

STORE_CASE(get_in_vain_tells_which_keys_are_missing, "ST-11")
{
    const char *keys[] = { "gone1", "here1", "gone2", "here2" };
    struct store_value value[4];
    bool missing[4] = { false, true, false, true };
    tenrec_error err;

    put(one, "here1", "");
    put(one, "here2", "x");
    expect_error(get_by(two, keys, 4, 20, value, missing, &err), TENREC_ETIMEDOUT, &err, "get");
    for (int i = 0; i < 4; i++)
        if (missing[i] != (i % 2 == 0))
            expect_fail("get reports that key \"%s\" is %s", keys[i],
                        missing[i] ? "missing" : "there");
    put(one, "gone1", "1"); /* and the store goes on */
    put(one, "gone2", "2");
    expect_ok(store_get_all(two, keys, 4, soon(), value, missing, &err), &err, "get");
    expect_bytes(value[2].data, "2", 2, "the value of \"gone1\"");
    store_values_free(value, 4);
}

STORE_CASE(get_looks_when_its_deadline_has_passed, "ST-11")
{
    const char *key = "k";
    struct store_value value;
    tenrec_error err;

    expect_error(get_by(one, &key, 1, 0, &value, NULL, &err), TENREC_ETIMEDOUT, &err, "get");
    put(two, "k", "v");
    expect_ok(get_by(one, &key, 1, 0, &value, NULL, &err), &err, "get");
    expect_bytes(value.data, "v", 2, "the value of \"k\"");
    free(value.data);
}

/* ---- waiting costs nothing ---- */

static uint64_t spent_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

STORE_CASE(get_waits_without_using_the_processor, "ST-11")
{
    enum { WAIT_MS = 600, PART = 4 };
    const char *key = "nobody";
    tenrec_error err;
    uint64_t spent;

    expect_error(get_by(one, &key, 1, 10, NULL, NULL, &err), TENREC_ETIMEDOUT, &err, "get");
    spent = spent_ns();
    expect_error(get_by(one, &key, 1, WAIT_MS, NULL, NULL, &err), TENREC_ETIMEDOUT, &err, "get");
    spent = (spent_ns() - spent) / 1000000;
    if (spent > WAIT_MS / PART)
        expect_fail("a wait of %d ms uses the processor for %" PRIu64 " ms", WAIT_MS, spent);
}

/* ---- the values, as the plugin passes them ---- */

struct taker {
    int n[2];
    tenrec_status answer;
};

static tenrec_status taker_take(void *arg, uint32_t i, const void *data, size_t len,
                                tenrec_error *err)
{
    struct taker *t = arg;

    if (i >= 2)
        expect_fail("value %u is passed, of 2 keys", i);
    t->n[i]++;
    expect_equal(len, 1, "the length of value %u", i);
    expect_bytes(data, i ? "b" : "a", 1, "value %u", i);
    return t->answer ? tenrec_fail(err, t->answer, "asked to have no memory") : TENREC_OK;
}

STORE_CASE(get_passes_each_value_once, "ST-11")
{
    char *keys[] = { clients_key("a"), clients_key("b"), clients_key("c") };
    bool missing[3] = { false };
    struct taker t = { .n = { 0 } };
    tenrec_status st;
    uint64_t until_ns;
    tenrec_error err;
    struct raw r;

    raw_open_server(&r);
    put(one, "a", "a");
    put(one, "b", "b");
    expect_ok(
        r.ops->get(&r.store, (const char *const *)keys, 2, soon(), taker_take, &t, missing, &err),
        &err, "get");
    expect_equal(t.n[0], 1, "the number of times that value 0 is passed");
    expect_equal(t.n[1], 1, "the number of times that value 1 is passed");
    expect_ok(r.ops->get(&r.store, (const char *const *)keys, 2, soon(), NULL, NULL, missing, &err),
              &err, "get");
    until_ns = soon();
    do {
        err.text[0] = '\0';
        st = r.ops->get(&r.store, (const char *const *)keys, 3, clock_deadline_ms(20), taker_take,
                        &t, missing, &err);
    } while (server_was_late(st, until_ns));
    expect_status(st, TENREC_ETIMEDOUT, "the status of a get of a missing key");
    if (err.text[0])
        expect_fail("get of a missing key says \"%s\", expected no text", err.text);
    expect_equal(t.n[0] + t.n[1], 2,
                 "the number of values that are passed, in all,"); /* nothing is passed unless all
                                                                      are there */
    expect(!missing[0] && !missing[1] && missing[2],
           "get reports as missing: a %d, b %d, c %d; expected 0, 0, 1", missing[0], missing[1],
           missing[2]);
    raw_close(&r);
    for (int i = 0; i < 3; i++)
        free(keys[i]);
}

STORE_CASE(the_error_of_a_value_is_returned, "ST-5")
{
    char *keys[] = { clients_key("a"), clients_key("b") };
    struct taker t = { .answer = TENREC_ENOMEM };
    bool missing[2] = { false };
    tenrec_error err = { .text = "" };
    struct raw r;

    raw_open_server(&r);
    put(one, "a", "a");
    put(one, "b", "b");
    expect_error(
        r.ops->get(&r.store, (const char *const *)keys, 2, soon(), taker_take, &t, missing, &err),
        TENREC_ENOMEM, &err, "get");
    expect_equal(t.n[0] + t.n[1], 1, "the number of values that are passed before the error");
    err.text[0] = '\0';
    expect_error(
        r.ops->compare_set(&r.store, keys[0], "x", 1, "y", 1, soon(), taker_take, &t, &err),
        TENREC_ENOMEM, &err, "compare_set");
    t.answer = TENREC_OK;
    expect_ok(
        r.ops->get(&r.store, (const char *const *)keys, 2, soon(), taker_take, &t, missing, &err),
        &err, "get");
    raw_close(&r);
    free(keys[0]);
    free(keys[1]);
}
