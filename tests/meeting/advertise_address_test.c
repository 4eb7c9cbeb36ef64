/* SPDX-License-Identifier: Apache-2.0 */
/* advertise_address_test.c - the address that a host advertises to its group. Between
 * hosts: tests/netns. */
#include "../support/test_store.h"
#include "core/base/clock.h"
#include "group/meeting/meeting.h"

static void assert_address(const char *host, const char *wanted)
{
    char got[ADVERTISE_ADDRESS_MAX] = "untouched";

    advertise_address_find(host, 29500, clock_deadline_ms(5000), got);
    assert_string_equal(got, wanted);
}

TEST(advertise_address_is_none_when_the_store_is_on_this_host)
{
    const char *const here[] = { "", "localhost", "127.0.0.1", "127.9.9.9", "::1" };

    for (size_t i = 0; i < sizeof here / sizeof here[0]; i++)
        assert_address(here[i], "");
}

/* The store reports an unknown name. */
TEST(advertise_address_is_none_when_the_host_is_not_known)
{
    assert_address("no such host", "");
}

/* Its own address, or none where the machine has only loopback. */
TEST(advertise_address_is_never_loopback)
{
    char got[ADVERTISE_ADDRESS_MAX];

    advertise_address_find("127.0.0.1.", 29500, clock_deadline_ms(5000), got);
    assert_true(strncmp(got, "127.", 4) != 0 && strcmp(got, "::1") != 0);
}
