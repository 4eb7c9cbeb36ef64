/* SPDX-License-Identifier: Apache-2.0 */
/* reply_test.c - pipes with a reply connection, and pipes between peers that name the device of
 * each tensor, which lack one. */
#include "raw.h"

#include "node.h"
#include "wire/handshake/identity.h"
#include <string.h>
#include <unistd.h>

static struct node n[2];

static void setup(void)
{
    group_open(n, 2, "sleep");
}

static void teardown(void)
{
    group_close(n, 2);
}

/* A caller that opens a pipe to n[1] without its reply connection. */
static void open_without_reply(struct raw_pipe *p)
{
    const struct identity anybody = { IDENTITY_VERSION, TENREC_ANONYMOUS, 0, IDENTITY_NAMES_TARGETS,
                                      0 };
    char text[IDENTITY_MAX];

    identity_write(text, &anybody);
    raw_pipe_ask(p, n[1].address, text);
    raw_pipe_join(p, n[1].address, 2);
}

static void close_without_reply(struct raw_pipe *p)
{
    close(p->fd[0]);
    close(p->fd[2]);
}

/* Both ends of the pipe are counted where they are. */
TEST_WITH(pipe_over_tcp_has_one_connection_among_tenrec_and_two_with_tensors, setup, teardown)
{
    static unsigned char data[1 << 20];
    struct call c = { .into = NULL };

    assert_ping(&n[0], 1);
    assert_int_equal(node_counter(&n[0], "connections"), 1);
    assert_becomes(node_counter(&n[1], "connections") == 1);
    assert_int_equal(call_sync(&n[0], 1, message_of(7, "x", 1, 1, data, sizeof data), &c), 0);
    call_finish(&c);
    assert_int_equal(node_counter(&n[0], "connections"), 2);
    assert_becomes(node_counter(&n[1], "connections") == 2);
}

TEST_WITH(pipe_opens_without_a_reply_connection_that_its_caller_does_not_want, setup, teardown)
{
    unsigned char buf[512], back[64];
    struct raw_pipe p;
    int64_t id;
    long len;

    open_without_reply(&p);
    raw_send(p.fd[0], buf, raw_tensor_message(buf, TENREC_MSG_CALL, 7, true));
    raw_frame(p.fd[2], "wxyz", 4);
    assert_int_equal(raw_recv_message(&p, &id, back, sizeof back, &len), TENREC_MSG_RET);
    assert_int_equal(id, 7);
    close_without_reply(&p);
}

TEST_WITH(pipe_breaks_at_a_tensor_without_target_when_it_lacks_a_reply_connection, setup, teardown)
{
    unsigned char buf[512];
    struct raw_pipe p;

    open_without_reply(&p);
    raw_send(p.fd[0], buf, raw_tensor_message(buf, TENREC_MSG_CALL, 7, false));
    assert_true(raw_closed(p.fd[0]));
    close_without_reply(&p);
    assert_ping(&n[0], 1);
}

/* That of another library, or of a Tenrec that does not say that it names devices. */
TEST_WITH(pipe_waits_for_the_reply_connection_of_another_peer, setup, teardown)
{
    struct raw_pipe p;

    raw_pipe_ask(&p, n[1].address, "tenrec:1:-1:0:1f");
    raw_pipe_join(&p, n[1].address, 2);
    assert_ping(&n[0], 1);
    assert_int_equal(node_counter(&n[1], "pipes_accepted"), 1);
    raw_pipe_join(&p, n[1].address, 1);
    assert_becomes(node_counter(&n[1], "pipes_accepted") == 2);
    raw_pipe_close(&p);
}

int main(void)
{
    return testing_run(NULL, NULL);
}
