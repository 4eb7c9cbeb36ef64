/* SPDX-License-Identifier: Apache-2.0 */
/* brief_messages_test.c - brief messages between two agents, and of a hostile one. */
#include "node.h"
#include "raw.h"

#include "wire/brief.h"
#include "wire/handshake/identity.h"

#define BRIEF_PEER "tenrec:1:-1:0:40" /* a stranger that reads brief messages, and nothing else */

static struct node n[2];
static struct raw_pipe p;

static void setup(void)
{
    group_open(n, 2, "sleep");
    raw_pipe_open_as(&p, n[1].address, BRIEF_PEER);
}

static void teardown(void)
{
    raw_pipe_close(&p);
    group_close(n, 2);
}

static size_t write_call(unsigned char *to, int64_t id, const char *text)
{
    return brief_write(to, TENREC_MSG_CALL, id, text, strlen(text));
}

/* The next answer is brief, too. */
static void take_answer(int32_t type, int64_t id, struct brief *ret)
{
    static unsigned char back[1024];
    size_t len;

    assert_true(raw_recv(p.fd[0], back, BRIEF_HEAD));
    assert_true(brief_is(back));
    len = brief_length(back);
    assert_in_range(len, BRIEF_HEAD, sizeof back);
    assert_true(raw_recv(p.fd[0], back + BRIEF_HEAD, len - BRIEF_HEAD));
    assert_true(brief_read(back, len, ret));
    assert_int_equal(ret->plain.type, type);
    assert_int_equal(ret->plain.id, id);
}

static void expect_answer(int64_t id, const char *text)
{
    struct brief b;

    take_answer(TENREC_MSG_RET, id, &b);
    assert_int_equal(b.plain.payload_len, strlen(text));
    assert_memory_equal(b.plain.payload, text, strlen(text));
}

TEST_WITH(agent_answers_brief_messages_by_brief_messages, setup, teardown)
{
    unsigned char buf[256];

    raw_send(p.fd[0], buf, write_call(buf, 1, "small"));
    expect_answer(1, "small");
    raw_send(p.fd[0], buf, write_call(buf, 2, ""));
    expect_answer(2, "");
}

TEST_WITH(agent_reads_frames_and_brief_messages_of_one_peer, setup, teardown)
{
    unsigned char buf[512];
    size_t len = raw_message(buf, TENREC_MSG_CALL, 1, "framed", 6);

    len += write_call(buf + len, 2, "small");
    len += raw_message(buf + len, TENREC_MSG_CALL, 3, "framed", 6);
    raw_send(p.fd[0], buf, len);
    expect_answer(1, "framed");
    expect_answer(2, "small");
    expect_answer(3, "framed");
}

TEST_WITH(agent_reads_a_brief_message_that_arrives_byte_by_byte, setup, teardown)
{
    unsigned char buf[256];
    const size_t len = write_call(buf, 1, "small");

    for (size_t i = 0; i < len; i++)
        raw_send(p.fd[0], buf + i, 1);
    expect_answer(1, "small");
}

TEST_WITH(agent_ends_a_pipe_with_a_malformed_brief_message, setup, teardown)
{
    unsigned char buf[256];
    const size_t len = write_call(buf, 1, "small");

    buf[6] = 0xff;
    raw_send(p.fd[0], buf, len);
    assert_true(raw_closed(p.fd[0]));
    assert_ping(&n[0], n[1].member.id);
}

TEST_WITH(agent_ends_a_pipe_with_malformed_tensors_of_a_brief_message, setup, teardown)
{
    unsigned char buf[256];
    const size_t len = write_call(buf, 1, "");

    buf[6] = 1; /* of which the body says nothing */
    raw_send(p.fd[0], buf, len);
    assert_true(raw_closed(p.fd[0]));
    assert_ping(&n[0], n[1].member.id);
}

static void setup_narrow(void)
{
    for (tenrec_peer i = 0; i < 2; i++) {
        node_init(&n[i], i);
        n[i].options.max_message = 1000;
        node_open(&n[i]);
    }
    nodes_start(n, 2);
    raw_pipe_open_as(&p, n[1].address, BRIEF_PEER);
}

TEST_WITH(agent_refuses_a_brief_message_beyond_its_limit, setup_narrow, teardown)
{
    static const char large[2000];
    unsigned char buf[BRIEF_HEAD + sizeof large];
    struct brief b;

    raw_send(p.fd[0], buf, brief_write(buf, TENREC_MSG_CALL, 1, large, sizeof large));
    take_answer(TENREC_MSG_EXCEPTION, 1, &b);
    raw_send(p.fd[0], buf, write_call(buf, 2, "small"));
    expect_answer(2, "small");
}

static void setup_plain(void)
{
    group_open(n, 2, "sleep");
    raw_pipe_open_as(&p, n[1].address, "tenrec:1:-1:0:0");
}

/* The length of a frame that is longer than any. */
TEST_WITH(agent_reads_no_brief_message_of_a_peer_without_them, setup_plain, teardown)
{
    unsigned char buf[256], back[64];
    int64_t id;
    long len;

    raw_send(p.fd[0], buf, raw_message(buf, TENREC_MSG_CALL, 1, "small", 5));
    raw_recv_message(&p, &id, back, sizeof back, &len);
    assert_int_equal(id, 1);
    raw_send(p.fd[0], buf, write_call(buf, 2, "small"));
    assert_true(raw_closed(p.fd[0]));
}

int main(void)
{
    return testing_run(NULL, NULL);
}
