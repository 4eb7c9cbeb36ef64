/* SPDX-License-Identifier: Apache-2.0 */
/* source_test.c - where strangers come from, and the rate of the proofs of one source. The time is
 * the test's. */
#include "../testing.h"

#include "core/backend/account.h"

#include <arpa/inet.h>

#define SECOND UINT64_C(1000000000)
#define AT_ONCE 1024

static const char owner, other_owner;

static struct tenrec_account *source_of(const char *address)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } a = { .any = { .sa_family = strchr(address, ':') ? AF_INET6 : AF_INET } };
    void *to = strchr(address, ':') ? (void *)&a.v6.sin6_addr : &a.v4.sin_addr;

    assert_int_equal(inet_pton(a.any.sa_family, address, to), 1);
    return source_get(&owner, &a.any, 0);
}

static unsigned proofs_from(const char *address, unsigned max, uint32_t at_once, uint64_t now_ns)
{
    unsigned n = 0;
    bool may = true;

    while (may && n < max) {
        struct tenrec_account *s = source_of(address); /* is closed before the next connection */

        may = source_may_prove(s, at_once, now_ns);
        n += may;
        account_close(s);
    }
    return n;
}

/* The first case: the table is empty. */
TEST(source_is_kept_until_its_proofs_are_worked_off)
{
    const uint64_t now = 10000 * SECOND;
    struct tenrec_account *s = source_of("192.0.2.3");

    assert_int_equal(sources_kept(), 1);
    account_close(s);
    assert_int_equal(sources_kept(), 0); /* it owes nothing */
    assert_int_equal(proofs_from("192.0.2.3", 10, AT_ONCE, now), 10);
    assert_int_equal(sources_kept(), 1);
    s = source_of("192.0.2.4");
    assert_true(source_may_prove(s, AT_ONCE, now + SECOND)); /* tells the table the time */
    account_close(s);
    account_close(source_of("192.0.2.3"));
    assert_int_equal(sources_kept(), 1); /* that of 192.0.2.4 */
}

static void assert_same_source(const char *one, const char *other, bool same)
{
    struct tenrec_account *a = source_of(one), *b = source_of(other);

    assert_non_null(a);
    assert_int_equal(a == b, same);
    account_close(a);
    account_close(b);
}

TEST(source_is_an_address_or_a_network_of_64_bits)
{
    assert_same_source("192.0.2.1", "192.0.2.1", true);
    assert_same_source("192.0.2.1", "192.0.2.2", false);
    assert_same_source("192.0.2.1", "::ffff:192.0.2.1", true);
    assert_same_source("2001:db8::1", "2001:db8::2", true);
    assert_same_source("2001:db8::1", "2001:db8:0:1::1", false);
    assert_same_source("fe80::1", "fe80::2", false);
    assert_same_source("::1", "127.0.0.1", false);
}

static struct tenrec_account *source_of_process(const void *of, uint32_t process)
{
    return source_get(of, &(struct sockaddr){ .sa_family = AF_UNIX }, process);
}

TEST(source_is_a_process_over_a_unix_socket)
{
    struct tenrec_account *s[3] = { source_of_process(&owner, 10), source_of_process(&owner, 10),
                                    source_of_process(&owner, 11) };

    assert_ptr_equal(s[0], s[1]);
    assert_ptr_not_equal(s[0], s[2]);
    for (int i = 0; i < 3; i++)
        account_close(s[i]);
}

TEST(source_of_one_backend_is_not_that_of_another)
{
    struct tenrec_account *one = source_of_process(&owner, 10);
    struct tenrec_account *other = source_of_process(&other_owner, 10);

    assert_ptr_not_equal(one, other);
    account_close(one);
    account_close(other);
}

static void prove_until_refused(uint32_t at_once, uint64_t now)
{
    assert_int_equal(proofs_from("192.0.2.1", 9999, at_once, now), at_once);
    assert_int_equal(proofs_from("192.0.2.1", 9999, at_once, now), 0);
    assert_int_equal(proofs_from("192.0.2.2", 1, at_once, now), 1);
    assert_int_equal(proofs_from("192.0.2.1", 9999, at_once, now + SECOND), SOURCE_PROOFS_PER_S);
    assert_int_equal(proofs_from("192.0.2.1", 9999, at_once, now + 600 * SECOND), at_once);
}

TEST(source_may_begin_so_many_proofs_at_once_and_then_in_each_second)
{
    prove_until_refused(1024, 1000 * SECOND);
    prove_until_refused(4096, 5000 * SECOND);
}

TEST(source_is_kept_while_a_message_is_charged_to_it)
{
    const struct tenrec_account_limits limits = { 1000, 400 };
    struct tenrec_account *s = source_of("192.0.2.6"), *held = account_share(s), *again;

    assert_int_equal(account_take(held, 400, &limits, NULL), TENREC_OK);
    account_close(s);
    again = source_of("192.0.2.6");
    assert_int_equal(account_take(again, 1, &limits, NULL), TENREC_EAGAIN);
    account_close(again);
    account_give(held, 400);
    account_close(held);
}

TEST(source_has_no_limit_of_proofs_once_it_was_admitted)
{
    const uint64_t now = 20000 * SECOND;
    struct tenrec_account *s = source_of("192.0.2.5");

    assert_int_equal(proofs_from("192.0.2.5", 2000, AT_ONCE, now), AT_ONCE);
    source_admit(s);
    assert_int_equal(proofs_from("192.0.2.5", 2000, AT_ONCE, now), 2000);
    account_close(s);
    assert_int_equal(proofs_from("192.0.2.5", 2000, AT_ONCE, now), AT_ONCE); /* and a stranger's */
}

TEST(source_has_no_limit_of_proofs_on_this_host)
{
    struct tenrec_account *s = source_of_process(&owner, 10);
    const uint64_t now = 30000 * SECOND;

    assert_int_equal(proofs_from("127.0.0.1", 2000, AT_ONCE, now), 2000);
    assert_int_equal(proofs_from("::ffff:127.0.0.1", 2000, AT_ONCE, now), 2000);
    assert_int_equal(proofs_from("::1", 2000, AT_ONCE, now), 2000);
    for (unsigned i = 0; i < 2000; i++)
        assert_true(source_may_prove(s, AT_ONCE, now));
    assert_true(source_may_prove(NULL, AT_ONCE, now));
    account_close(s);
}
