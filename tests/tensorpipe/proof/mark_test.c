/* SPDX-License-Identifier: Apache-2.0 */
/* mark_test.c - TENREC_MSG_PROVED of requests and answers between two members, over the transports
 * that TENREC_TRANSPORTS names. */
#include "secrets.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <tenrec/chain.h>

#define UNSEEN UINT32_MAX

/* A member that answers each request with as many tensors as the request has. */
struct member {
    struct tenrec_chain_options *options;
    struct tenrec_chain *chain;
    atomic_bool refuses; /* tensors */
    _Atomic uint32_t request, answer;
    _Atomic int32_t answer_type;
};

static struct member member[2];
static unsigned char bytes[100000];
static atomic_bool shares; /* the tensors of a message, one storage */

static struct tenrec_msg *message_with(uint32_t n_tensors)
{
    struct tenrec_msg *msg = tenrec_msg_new(0, n_tensors);

    assert_non_null(msg);
    for (uint32_t i = 0; i < n_tensors; i++)
        *tenrec_msg_tensor(msg, i) = (struct tenrec_tensor_desc){
            .data = bytes,
            .bytes = sizeof bytes,
            .dtype = { TENREC_DTYPE_UINT, 8, 1 },
            .ndim = 1,
            .device = { TENREC_CPU, 0 },
            .target = { TENREC_CPU, 0 },
            .shape = { sizeof bytes },
            .strides = { 1 },
            .same_storage = atomic_load(&shares) && i > 0,
        };
    return msg;
}

static void answer_request(struct member *m, tenrec_peer from, struct tenrec_msg *msg)
{
    struct tenrec_msg *answer = message_with(msg->n_tensors);

    answer->type = TENREC_MSG_RET;
    answer->id = msg->id;
    answer->route = msg->route;
    tenrec_chain_send(m->chain, from, answer, (struct tenrec_done){ 0 });
}

static void on_deliver(void *arg, tenrec_peer from, struct tenrec_msg *msg)
{
    struct member *m = arg;

    if (msg->type & TENREC_MSG_REQUEST_BIT) {
        atomic_store(&m->request, msg->flags & TENREC_MSG_PROVED);
        answer_request(m, from, msg);
    } else {
        atomic_store(&m->answer_type, msg->type);
        atomic_store(&m->answer, msg->flags & TENREC_MSG_PROVED);
    }
    msg->release(msg);
}

static tenrec_status on_place(void *arg, tenrec_peer from, struct tenrec_msg *msg,
                              tenrec_error *err)
{
    struct member *m = arg;

    (void)from;
    if (atomic_load(&m->refuses))
        return tenrec_fail(err, TENREC_ENOMEM, "the test wants no tensors");
    return tenrec_msg_place(msg, err);
}

static void member_make(int rank, enum secret_of which, struct tenrec_member *record)
{
    struct member *m = &member[rank];
    const struct tenrec_chain_user user = {
        .size = sizeof user, .deliver = on_deliver, .place = on_place, .arg = m
    };
    struct tenrec_config *config;
    tenrec_error err;

    secrets_use(which);
    config = cluster_config();
    assert_status(tenrec_chain_options_new(config, &m->options, &err), &err);
    tenrec_config_drop(config);
    atomic_store(&m->refuses, false);
    assert_status(tenrec_chain_new(m->options, &user, record, 2, &m->chain, &err), &err);
    record->address = tenrec_chain_address(m->chain);
}

/* Member 1 has no token in its record, as a worker of another library, if it has no secret. */
static void open_group(enum secret_of of_1)
{
    struct tenrec_member record[] = {
        { sizeof record[0], 0, 10, "worker0", "", 1234 },
        { sizeof record[0], 1, 11, "worker1", "", of_1 == NO_SECRET ? 0 : 5678 },
    };
    tenrec_error err;

    member_make(0, OUR_SECRET, &record[0]);
    member_make(1, of_1, &record[1]);
    for (int i = 0; i < 2; i++)
        assert_status(tenrec_chain_start(member[i].chain, record, 2, &err), &err);
}

static void open_proved(void)
{
    open_group(OUR_SECRET);
}

static void open_plain(void)
{
    setenv("TENREC_SECURITY__PLAIN_PEERS", "all", 1);
    open_group(NO_SECRET);
    unsetenv("TENREC_SECURITY__PLAIN_PEERS");
}

static void close_group(void)
{
    for (int i = 0; i < 2; i++)
        tenrec_chain_stop(member[i].chain);
    for (int i = 0; i < 2; i++) {
        tenrec_chain_drop(member[i].chain);
        tenrec_chain_options_drop(member[i].options);
    }
}

/* Calls with `n` tensors; then `mark` is that of the request there, and of the answer here. */
static void assert_marks(int from, uint32_t n, uint32_t mark)
{
    struct member *caller = &member[from], *callee = &member[1 - from];
    struct tenrec_msg *msg = message_with(n);

    msg->type = TENREC_MSG_CALL;
    atomic_store(&callee->request, UNSEEN);
    atomic_store(&caller->answer, UNSEEN);
    tenrec_chain_send(caller->chain, 1 - from, msg, (struct tenrec_done){ 0 });
    assert_becomes(atomic_load(&caller->answer) != UNSEEN);
    assert_int_equal(atomic_load(&caller->answer), mark);
    assert_int_equal(atomic_load(&callee->request), mark);
}

TEST_WITH(messages_have_the_mark_when_members_prove_themselves, open_proved, close_group)
{
    for (uint32_t n = 0; n < 3; n++) {
        assert_marks(0, n, TENREC_MSG_PROVED);
        assert_marks(1, n, TENREC_MSG_PROVED);
    }
    assert_int_equal(atomic_load(&member[0].answer_type), TENREC_MSG_RET);
}

/* Views of one storage: the backend makes a new message when it finds them. */
TEST_WITH(messages_of_views_have_the_mark_when_members_prove_themselves, open_proved, close_group)
{
    atomic_store(&shares, true);
    for (uint32_t n = 2; n < 5; n++) {
        assert_marks(0, n, TENREC_MSG_PROVED);
        assert_marks(1, n, TENREC_MSG_PROVED);
    }
    atomic_store(&shares, false);
}

TEST_WITH(answer_that_cannot_be_placed_ends_with_the_mark_of_its_connection, open_proved,
          close_group)
{
    atomic_store(&member[0].refuses, true);
    assert_marks(0, 1, TENREC_MSG_PROVED);
    assert_int_equal(atomic_load(&member[0].answer_type), TENREC_MSG_EXCEPTION);
}

/* Rings are for members that prove themselves. */
static bool over_tcp_too(void)
{
    return strstr(getenv("TENREC_TRANSPORTS"), "uv") != NULL;
}

/* In either direction: member 0 dials a member without a secret, and is dialled by it. */
TEST_WHEN(messages_of_a_plain_member_have_no_mark, over_tcp_too, open_plain, close_group)
{
    for (uint32_t n = 0; n < 3; n++) {
        assert_marks(0, n, 0);
        assert_marks(1, n, 0);
    }
}

int main(void)
{
    int failed;

    cluster_use("tensorpipe");
    secrets_make();
    failed = testing_run(NULL, NULL);
    secrets_remove();
    return failed;
}
