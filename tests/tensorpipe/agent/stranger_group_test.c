/* SPDX-License-Identifier: Apache-2.0 */
/* stranger_group_test.c - a stranger at the port of a worker of a dynamic group: no message of
 * the stranger removes a member or keeps it from serving. */
#include "../../testing.h"
#include "raw.h"

#include "../../support/functions.h"
#include "../../support/party.h"
#include "core/backend/backend.h"
#include "rpc/future/worker.h"
#include "rpc/monitor/monitor_inside.h"
#include "rpc/rref/rref.h"
#include "rpc/worker/worker.h"

enum { VICTIM, OTHER, THIRD, WORKERS };
enum { LEAVING = 1, VIEW_NUMBERS = 4 };

/* Version, rank of no member, life, capabilities, and a proof that is a guess. */
static const char *const unknown = "tenrec:1:7:63:f:1234";

static struct tenrec_worker *w[WORKERS];

static void join_all(void)
{
    party_begin();
    for (int i = 0; i < WORKERS; i++)
        w[i] = party_join(-1, NULL, functions_register);
}

static void leave_all(void)
{
    for (int i = 0; i < WORKERS; i++)
        party_leave(w[i]);
}

static size_t view_frames(unsigned char *buf, int64_t version, int64_t flags, int64_t id,
                          int64_t incarnation)
{
    const int64_t number[VIEW_NUMBERS] = { version, flags, id, incarnation };
    struct tenrec_msg *msg = NULL;
    size_t len;

    assert_int_equal(rref_numbers_write(TENREC_MSG_VIEW, number, VIEW_NUMBERS, &msg, NULL),
                     TENREC_OK);
    len = raw_message(buf, TENREC_MSG_VIEW, 1, msg->payload, (size_t)msg->payload_len);
    msg->release(msg);
    return len;
}

static void open_to_victim(struct raw_pipe *p, const char *identity)
{
    raw_pipe_open_as(p, chain_address(w[VICTIM]->chain), identity);
}

static int64_t await_answer(struct raw_pipe *p)
{
    unsigned char buf[256];
    int64_t id;
    long len;

    return raw_recv_message(p, &id, buf, sizeof buf, &len);
}

TEST_WITH(members_are_callable_when_a_stranger_forges_their_leave, join_all, leave_all)
{
    const int64_t life = group_of(w[OTHER])->monitor->incarnation;
    unsigned char buf[512];
    char claims[64];
    const char *const identities[] = { NULL, unknown, claims };
    struct raw_pipe p;

    snprintf(claims, sizeof claims, "tenrec:1:%d:%llx:f", OTHER, (unsigned long long)life);
    for (size_t i = 0; i < sizeof identities / sizeof identities[0]; i++) {
        open_to_victim(&p, identities[i]);
        raw_send(p.fd[0], buf, view_frames(buf, 1, LEAVING, OTHER, life));
        assert_int_equal(await_answer(&p), TENREC_MSG_VIEW_RET);
        raw_pipe_close(&p);
        functions_must_call_add(w[VICTIM], "worker1");
        functions_must_call_add(w[OTHER], "worker0");
    }
}

enum { FLOOD = 20000, AT_ONCE = 100 };

/* Versions that never come are asked for, and the store is looked at for each of them. */
TEST_WITH(no_member_is_expelled_when_a_stranger_floods_a_member_with_views, join_all, leave_all)
{
    unsigned char buf[512], *all;
    struct raw_pipe p;
    size_t len;

    open_to_victim(&p, unknown);
    len = view_frames(buf, INT64_MAX, 0, 7, 99);
    all = malloc(AT_ONCE * len);
    assert_non_null(all);
    for (size_t i = 0; i < AT_ONCE; i++)
        memcpy(all + i * len, buf, len);
    for (size_t i = 0; i < FLOOD; i += AT_ONCE) {
        raw_send(p.fd[0], all, AT_ONCE * len);
        for (int k = 0; k < AT_ONCE; k++)
            assert_int_equal(await_answer(&p), TENREC_MSG_VIEW_RET);
    }
    free(all);
    for (int i = 0; i < WORKERS; i++)
        party_await(w[i], WORKERS);
    functions_must_call_add(w[OTHER], "worker0");
    functions_must_call_add(w[THIRD], "worker0");
    raw_pipe_close(&p);
}

int main(void)
{
    setenv("TENREC_TRANSPORTS", "uv", 1);
    setenv("TENREC_CHANNELS", "basic", 1);
    cluster_use("tensorpipe");
    return testing_run(NULL, NULL);
}
