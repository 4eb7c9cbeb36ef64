/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous_secret_test.c - a group whose rank 0 serves a store with a secret. */
#include "../support/secured.h"
#include "../support/test_store.h"

#include "core/base/clock.h"
#include "group/meeting/meeting.h"

#define OURS "the secret of this group"

static tenrec_error err;

static void free_place(char *ret, size_t room)
{
    struct tenrec_store_server *server;
    uint16_t port;

    assert_status(tenrec_store_server_new("127.0.0.1", 0, &server, &port, &err), &err);
    tenrec_store_server_drop(server);
    snprintf(ret, room, "tcp://127.0.0.1:%u", port);
}

static tenrec_status visit(const char *init, struct security *security)
{
    const struct rendezvous_options o = { .init_method = init, .group = "g", .security = security };
    struct rendezvous *r;
    tenrec_status st = rendezvous_visit(&o, clock_deadline_ms(TEST_MS), &r, &err);

    if (st == TENREC_OK)
        rendezvous_close(r, clock_deadline_ms(TEST_MS));
    return st;
}

TEST(store_of_rank_0_lets_members_and_visitors_with_the_secret_in)
{
    const uint64_t deadline_ns = clock_deadline_ms(TEST_MS);
    struct security *ours = secured(OURS, PLAIN_NONE), *other = secured(OURS " not", PLAIN_NONE);
    struct rendezvous *r[2];
    char init[64];

    free_place(init, sizeof init);
    for (int32_t i = 0; i < 2; i++) {
        const struct rendezvous_options o = {
            .init_method = init, .group = "g", .rank = i, .world = 2, .security = ours
        };
        assert_status(rendezvous_open(&o, deadline_ns, &r[i], &err), &err);
    }
    assert_int_equal(visit(init, NULL), TENREC_EPERM);
    assert_text_has(err.text, "asks for a group secret");
    assert_int_equal(visit(init, other), TENREC_EPERM);
    assert_text_has(err.text, "another group secret");
    /* Its members have published nothing yet: the visitor has read the store. */
    assert_int_equal(visit(init, ours), TENREC_EGROUP);
    assert_text_has(err.text, "has no group of workers");
    rendezvous_close(r[1], deadline_ns);
    rendezvous_close(r[0], deadline_ns);
    security_drop(ours);
    security_drop(other);
}
