/* SPDX-License-Identifier: Apache-2.0 */
/* change.c - agents take other options while messages pass, or leave all as it is. */
#include "conformance/agent_case.h"
#include "core/backend/chain_change.h"
#include "core/config/node.h"

enum { MESSAGES = 200 };

/* Prepares every agent that can change, with the options that it has. Returns their number. */
static int prepare_all(struct chain_change *change, struct chain *chain)
{
    static const struct place place = { .kind = PLACE_SETTING };
    struct node *none = node_new(NODE_MAP, &place);
    tenrec_error err;
    int n = 0;

    expect_here(none);
    for (size_t i = 0; i < chain_depth(chain); i++) {
        tenrec_status st = chain_change_add(change, chain_name(chain, i), none, &err);

        if (st != TENREC_EUNSUPPORTED)
            expect_ok(st, &err, "the change of options");
        n += st == TENREC_OK;
    }
    node_drop(none);
    return n;
}

static void *send_meanwhile(void *arg)
{
    for (int i = 0; i < MESSAGES; i++)
        send_ping(a, b->id, i, arg);
    return NULL;
}

CASE(options_change_while_messages_pass, "AG-36")
{
    static struct tally t;
    struct chain_change *change;
    tenrec_error err;
    pthread_t thread;

    expect_ok(chain_change_begin(a->chain, &change, &err), &err, "the change of options");
    if (prepare_all(change, a->chain) == 0) {
        chain_change_discard(change);
        expect_not_offered("tenrec_reconfigure");
    }
    chain_change_discard(change);
    expect_here(pthread_create(&thread, NULL, send_meanwhile, &t) == 0);
    for (int i = 0; i < 50; i++) {
        expect_ok(chain_change_begin(a->chain, &change, &err), &err, "the change of options");
        prepare_all(change, a->chain);
        if (i % 2)
            chain_change_discard(change);
        else
            chain_change_commit(change);
    }
    pthread_join(thread, NULL);
    expect_becomes(side_count(b) == MESSAGES, "%s has received %zu of %d messages", b->name,
                   side_count(b), MESSAGES);
    expect_becomes(atomic_load(&t.ok) == MESSAGES, "%d of %d sends have succeeded",
                   atomic_load(&t.ok), MESSAGES);
}
