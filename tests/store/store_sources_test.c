/* SPDX-License-Identifier: Apache-2.0 */
/* store_sources_test.c - the rate of the proofs of one address, by a time of the test's own. */
#include "../testing.h"

#include "group/store/store_sources.h"

#include <arpa/inet.h>

#define SECOND UINT64_C(1000000000)

static struct store_sources all;

static void finish(void)
{
    store_sources_finish(&all);
    assert_null(all.list);
}

static struct store_source *source_of(const char *address)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } a = { .any = { .sa_family = strchr(address, ':') ? AF_INET6 : AF_INET } };
    void *to = strchr(address, ':') ? (void *)&a.v6.sin6_addr : &a.v4.sin_addr;

    assert_int_equal(inet_pton(a.any.sa_family, address, to), 1);
    return store_sources_get(&all, &a.any);
}

/* Proofs on connections that are closed before the next one comes. */
static unsigned proofs_from(const char *address, unsigned max, uint64_t now_ns)
{
    unsigned n = 0;
    bool may = true;

    while (may && n < max) {
        struct store_source *s = source_of(address);

        may = store_source_may_prove(s, now_ns);
        n += may;
        store_source_put(s);
    }
    return n;
}

static void assert_same_source(const char *one, const char *other, bool same)
{
    struct store_source *a = source_of(one), *b = source_of(other);

    assert_non_null(a);
    assert_int_equal(a == b, same);
    store_source_put(a);
    store_source_put(b);
}

TEST_WITH(source_is_an_address_or_a_network_of_64_bits, NULL, finish)
{
    assert_same_source("192.0.2.1", "192.0.2.1", true);
    assert_same_source("192.0.2.1", "192.0.2.2", false);
    assert_same_source("192.0.2.1", "::ffff:192.0.2.1", true);
    assert_same_source("2001:db8::1", "2001:db8::2", true);
    assert_same_source("2001:db8::1", "2001:db8:0:1::1", false);
    assert_same_source("fe80::1", "fe80::2", false);
}

TEST_WITH(source_may_begin_so_many_proofs_at_once_and_then_in_each_second, NULL, finish)
{
    const uint64_t now = 1000 * SECOND;

    assert_int_equal(proofs_from("192.0.2.1", 5000, now), STORE_PROOFS);
    assert_int_equal(proofs_from("192.0.2.1", 5000, now), 0);
    assert_int_equal(proofs_from("192.0.2.2", 1, now), 1);
    assert_int_equal(proofs_from("192.0.2.1", 5000, now + SECOND), STORE_PROOFS_PER_S);
    assert_int_equal(proofs_from("192.0.2.1", 5000, now + 600 * SECOND), STORE_PROOFS);
}

TEST_WITH(source_expires_when_its_proofs_are_worked_off, NULL, finish)
{
    const uint64_t now = 1000 * SECOND;

    assert_int_equal(proofs_from("192.0.2.1", STORE_PROOFS_PER_S, now), STORE_PROOFS_PER_S);
    store_sources_expire(&all, now);
    assert_non_null(all.list);
    store_sources_expire(&all, now + SECOND);
    assert_null(all.list);
}

TEST_WITH(source_has_no_limit_of_proofs_while_a_client_that_was_let_in_is_connected, NULL, finish)
{
    const uint64_t now = 1000 * SECOND;
    struct store_source *s = source_of("192.0.2.1");

    store_source_admit(s);
    assert_int_equal(proofs_from("192.0.2.1", 5000, now), 5000);
    store_source_put(s);
    assert_int_equal(proofs_from("192.0.2.1", 5000, now), STORE_PROOFS);
}

TEST_WITH(source_has_no_limit_of_proofs_on_this_host, NULL, finish)
{
    assert_null(source_of("127.0.0.1"));
    assert_null(source_of("::ffff:127.0.0.1"));
    assert_null(source_of("::1"));
    assert_true(store_source_may_prove(NULL, 0));
}
