/* SPDX-License-Identifier: Apache-2.0 */
/* overtake_test.c - small messages beside messages whose tensors are still on their way. */
#include "node.h"
#include "raw.h"

#include "wire/handshake/identity.h"
#include <sys/socket.h>

#define TENSORS_MAX 64 /* messages that wait for their tensors at most */

static struct node n[2];
static struct raw_pipe p;

/* A caller that the agent takes for member 0. */
static void member_open(void)
{
    const struct proof_life by = { n[0].member.id, n[0].member.incarnation, n[0].member.token };
    const struct proof_life to = { n[1].member.id, n[1].member.incarnation, n[1].member.token };
    const struct identity identity = { IDENTITY_VERSION, by.rank, by.incarnation,
                                       IDENTITY_OWN_MESSAGES,
                                       proof_make(&by, &to, PROOF_OF_CALLER) };
    char text[IDENTITY_MAX];

    identity_write(text, &identity);
    raw_pipe_open_as(&p, n[1].address, text);
}

static void setup(void)
{
    group_open(n, 2, "sleep");
}

static void teardown(void)
{
    raw_pipe_close(&p);
    group_close(n, 2);
}

static void send_tensor_request(int64_t id)
{
    unsigned char buf[1024];

    raw_send(p.fd[0], buf, raw_tensor_message(buf, TENREC_MSG_CALL, id, true));
}

static void send_small(int32_t type, int64_t id)
{
    unsigned char buf[512];

    raw_send(p.fd[0], buf, raw_message(buf, type, id, "small", 5));
}

static void send_small_request(int64_t id)
{
    send_small(TENREC_MSG_CALL, id);
}

/* The bytes of the tensor of a request. */
static void send_tensor(void)
{
    raw_frame(p.fd[2], "abcd", 4);
}

/* Returns the id of the next answer. */
static int64_t take_answer(void)
{
    unsigned char body[64];
    int64_t id;
    long len;

    raw_recv_message(&p, &id, body, sizeof body, &len);
    return id;
}

TEST_WITH(small_request_overtakes_a_tensor_that_is_on_its_way, setup, teardown)
{
    member_open();
    send_tensor_request(1);
    for (int64_t id = 2; id < 5; id++) {
        send_small_request(id);
        assert_int_equal(take_answer(), id);
    }
    send_tensor();
    assert_int_equal(take_answer(), 1);
}

TEST_WITH(tensors_arrive_in_the_order_of_their_messages, setup, teardown)
{
    member_open();
    send_tensor_request(1);
    send_tensor_request(2);
    send_small_request(3);
    assert_int_equal(take_answer(), 3);
    send_tensor();
    assert_int_equal(take_answer(), 1);
    send_small_request(4);
    assert_int_equal(take_answer(), 4);
    send_tensor();
    assert_int_equal(take_answer(), 2);
}

/* What they say is about the requests before them. */
TEST_WITH(cancels_and_views_overtake_nothing, setup, teardown)
{
    static const int32_t types[] = { TENREC_MSG_CANCEL, TENREC_MSG_VIEW };

    member_open();
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        send_tensor_request(1);
        send_small(types[i], 2);
        send_small_request(3);
        assert_int_equal(take_answer(), 3);
        send_tensor();
        assert_int_equal(take_answer(), 1);
        assert_int_equal(take_answer(), 2);
    }
}

TEST_WITH(pipe_reads_no_further_than_so_many_waiting_messages, setup, teardown)
{
    member_open();
    for (int64_t id = 1; id <= TENSORS_MAX; id++)
        send_tensor_request(id);
    send_small_request(1000);
    send_tensor();
    assert_int_equal(take_answer(), 1);
    assert_int_equal(take_answer(), 1000);
    for (int64_t id = 2; id <= TENSORS_MAX; id++) {
        send_tensor();
        assert_int_equal(take_answer(), id);
    }
}

/* A stranger holds one message at a time. */
TEST_WITH(small_request_of_a_stranger_waits_for_its_tensor, setup, teardown)
{
    raw_pipe_open(&p, n[1].address);
    send_tensor_request(1);
    send_small_request(2);
    send_tensor();
    assert_int_equal(take_answer(), 1);
    assert_int_equal(take_answer(), 2);
}

/* What the other connections still have counts, although the first has ended. */
TEST_WITH(tensor_behind_the_end_of_its_message_arrives, setup, teardown)
{
    member_open();
    send_small_request(1);
    assert_int_equal(take_answer(), 1);
    send_tensor_request(2);
    shutdown(p.fd[0], SHUT_WR);
    send_tensor();
    assert_becomes(atomic_load(&n[1].requests) == 2);
}

TEST_WITH(pipe_ends_when_the_tensors_end_before_their_bytes, setup, teardown)
{
    member_open();
    send_tensor_request(1);
    send_small_request(2);
    assert_int_equal(take_answer(), 2);
    raw_send(p.fd[2], "\4\0\0\0\0\0\0\0ab", 10);
    shutdown(p.fd[2], SHUT_WR);
    assert_true(raw_closed(p.fd[0]));
    assert_ping(&n[0], 1);
}

int main(void)
{
    return testing_run(NULL, NULL);
}
