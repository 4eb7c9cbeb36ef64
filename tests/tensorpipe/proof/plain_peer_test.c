/* SPDX-License-Identifier: Apache-2.0 */
/* plain_peer_test.c - peers that prove nothing, where `security: plain_peers:` lets them in. */
#include "secrets.h"

#include "../../support/functions.h"
#include "core/backend/backend.h"
#include "group/meeting/membership.h"
#include "raw.h"
#include "rpc/future/worker.h"
#include "wire/handshake/identity.h"
#include <unistd.h>

static struct cluster group;
static struct tenrec_worker *open_minded;

static void open_group(const char *plain_peers, enum secret_of other)
{
    setenv("TENREC_SECURITY__PLAIN_PEERS", plain_peers, 1);
    secrets_group(&group, OUR_SECRET, other);
    unsetenv("TENREC_SECURITY__PLAIN_PEERS");
    open_minded = group.worker[0];
}

static void open_to_our_user(void)
{
    open_group("same_user", OUR_SECRET);
}

static void open_to_all(void)
{
    open_group("all", OUR_SECRET);
}

static void close_group(void)
{
    functions_must_call_add(group.worker[1], "worker0"); /* which prove themselves */
    functions_must_call_add(open_minded, "worker1");
    cluster_close(&group, TENREC_IMMEDIATE);
}

static void assert_plain_is_served(void)
{
    const uint64_t proofs = secrets_counter(open_minded, "proofs");
    struct raw_pipe p;

    raw_pipe_open(&p, chain_address(open_minded->chain));
    assert_becomes(secrets_tells(open_minded, "callers", "anonymous"));
    assert_int_equal(secrets_counter(open_minded, "proofs"), proofs);
    raw_pipe_close(&p);
}

TEST_WITH(plain_peer_is_served_when_it_is_our_users, open_to_our_user, close_group)
{
    assert_plain_is_served();
}

TEST_WITH(plain_peer_is_served_when_all_are, open_to_all, close_group)
{
    assert_plain_is_served();
}

/* A plain peer that claims to be a member is a stranger without the token, as in mode none; and
 * with a connection that has proved itself it shares no pipe. */
TEST_WITH(plain_connection_joins_no_pipe_of_a_member, open_to_all, close_group)
{
    const struct proof_party me = secrets_party(group.worker[1]);
    struct raw_pipe p;
    struct by_hand h;
    char identity[96];
    tenrec_error err;

    snprintf(identity, sizeof identity, "tenrec:1:1:%llx:f", (unsigned long long)me.incarnation);
    raw_pipe_ask(&p, chain_address(open_minded->chain), identity);
    h = by_hand_dial(OUR_SECRET, &me, open_minded, p.id[1]);
    assert_status(by_hand_prove(&h, &err), &err);
    raw_hello_requested(h.fd, p.id[1]);
    assert_true(raw_closed(h.fd));
    by_hand_close(&h);
    close(p.fd[0]);
}

/* A worker in mode none, with all that it offers on one host. */
TEST(memory_is_not_shared_when_a_plain_worker_calls)
{
    setenv("TENREC_TRANSPORTS", "shm,uv", 1);
    unsetenv("TENREC_CHANNELS");
    open_group("same_user", NO_SECRET);
    functions_must_call_add(group.worker[1], "worker0");
    assert_true(secrets_tells(group.worker[1], "peer.0.channel", "basic"));
    assert_false(secrets_tells(group.worker[1], "peer.0.channel", "tenrec"));
    assert_false(secrets_tells(group.worker[1], "peer.0.transport", "tenrec_ring"));
    cluster_close(&group, TENREC_IMMEDIATE);
}

int main(void)
{
    int failed;

    setenv("TENREC_TRANSPORTS", "uv", 1);
    setenv("TENREC_CHANNELS", "basic", 1);
    cluster_use("tensorpipe");
    secrets_make();
    failed = testing_run(NULL, NULL);
    secrets_remove();
    return failed;
}
