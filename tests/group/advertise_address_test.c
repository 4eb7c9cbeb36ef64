/* SPDX-License-Identifier: Apache-2.0 */
/* vantage_test.c - which address a host has for the others of its group. Between
 * hosts: tests/netns. */
#include "base/clock.h"
#include "launch/advertise_address.h"
#include "test_store.h"

static void assert_vantage(const char *host, const char *wanted)
{
    char got[VANTAGE_MAX] = "untouched";

    advertise_address_find(host, 29500, clock_deadline_ms(5000), got);
    assert_string_equal(got, wanted);
}

TEST(vantage_is_none_when_the_store_is_on_this_host)
{
    const char *const here[] = { "", "localhost", "127.0.0.1", "127.9.9.9", "::1" };

    for (size_t i = 0; i < sizeof here / sizeof here[0]; i++)
        assert_vantage(here[i], "");
}

/* A name that nobody knows is the store's to complain about. */
TEST(vantage_is_none_when_the_host_is_not_known)
{
    assert_vantage("no such host", "");
}

/* As a machine calls itself: its own address, or none where it has only loopback. */
TEST(vantage_is_never_loopback)
{
    char got[VANTAGE_MAX];

    advertise_address_find("127.0.0.1.", 29500, clock_deadline_ms(5000), got);
    assert_true(strncmp(got, "127.", 4) != 0 && strcmp(got, "::1") != 0);
}
