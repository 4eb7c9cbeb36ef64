/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_test.c - the agent goes on serving, whatever a stranger sends. */
#include "raw.h"

#include "node.h"
#include "transport/tcp/transport_uv.h"
#include "wire/handshake/brochure.h"
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static struct node n[2];

/* Short handshakes, so that silence ends soon; a busy machine takes a second for one. */
static void setup(void)
{
    for (int i = 0; i < 2; i++) {
        node_init(&n[i], i);
        n[i].options.hello_timeout_ms = n[i].options.handshake_timeout_ms = 2000;
        node_open(&n[i]);
    }
    nodes_start(n, 2);
}

static void teardown(void)
{
    group_close(n, 2);
}

/* The victim still answers both a stranger and a member. */
static void assert_alive(void)
{
    unsigned char buf[512], back[64];
    struct raw_pipe p;
    int64_t id;
    long len;

    assert_ping(&n[0], 1);
    raw_pipe_open(&p, n[1].address);
    raw_send(p.fd[0], buf, raw_message(buf, TENREC_MSG_CALL, 7, "hi", 2));
    assert_int_equal(raw_recv_message(&p, &id, back, sizeof back, &len), TENREC_MSG_RET);
    assert_int_equal(id, 7);
    assert_int_equal(len, 2);
    assert_memory_equal(back, "hi", 2);
    raw_pipe_close(&p);
}

TEST_WITH(agent_serves_a_plain_tensorpipe_peer, setup, teardown)
{
    assert_alive();
    assert_int_equal(n[1].last_from, TENREC_ANONYMOUS);
}

TEST_WITH(agent_survives_a_connection_that_closes_at_once, setup, teardown)
{
    for (int i = 0; i < 20; i++)
        close(raw_connect(n[1].address));
    assert_alive();
}

TEST_WITH(agent_closes_a_connection_that_says_nothing, setup, teardown)
{
    int fd = raw_connect(n[1].address);

    assert_true(raw_closed(fd));
    close(fd);
    assert_alive();
}

TEST_WITH(agent_closes_half_a_hello, setup, teardown)
{
    unsigned char half[12] = { 12, 0, 0, 0, 0, 0, 0, 0, 0xb8, 0, 0xb9, 1 };
    int fd[sizeof half];

    /* All first: their limits pass together. */
    for (size_t i = 0; i < sizeof half; i++) {
        fd[i] = raw_connect(n[1].address);
        raw_send(fd[i], half, i + 1);
        if (i % 2 == 0)
            shutdown(fd[i], SHUT_WR);
    }
    for (size_t i = 0; i < sizeof half; i++) {
        assert_true(raw_closed(fd[i]));
        close(fd[i]);
    }
    assert_alive();
}

TEST_WITH(agent_closes_a_connection_without_a_valid_hello, setup, teardown)
{
    static const char *const garbage[] = {
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "\0\0\0\0\0\0\0\0",
        "\x04\0\0\0\0\0\0\0\xff\xff\xff\xff",
        "\xff\xff\xff\xff\xff\xff\xff\xff",
        "\xff\xff\xff\xff\xff\xff\xff\x7f",
        "\x03\0\0\0\0\0\0\0\xb8\xff\xbe",                     /* the empty variant */
        "\x05\0\0\0\0\0\0\0\xb8\x01\xb9\x01\x7f",             /* an unknown connection id */
        "\x05\0\0\0\0\0\0\0\xb8\x02\xb9\x01\x00",             /* no such variant */
        "\x08\0\0\0\0\0\0\0\xb8\x00\xb9\x01\xbd\x83\xff\xff", /* cut in a length */
    };
    static const size_t len[] = { 27, 8, 12, 8, 8, 11, 13, 13, 16 };
    int fd;

    for (size_t i = 0; i < sizeof len / sizeof len[0]; i++) {
        fd = raw_connect(n[1].address);
        raw_send(fd, garbage[i], len[i]);
        assert_true(raw_closed(fd));
        close(fd);
    }
    assert_alive();
}

TEST_WITH(agent_survives_an_end_at_every_byte_of_the_handshake, setup, teardown)
{
    unsigned char all[8 + sizeof raw_hello + 8 + sizeof raw_brochure] = { sizeof raw_hello };
    int fd;

    memcpy(all + 8, raw_hello, sizeof raw_hello);
    all[8 + sizeof raw_hello] = sizeof raw_brochure;
    memcpy(all + 16 + sizeof raw_hello, raw_brochure, sizeof raw_brochure);
    for (size_t len = 0; len <= sizeof all; len++) {
        fd = raw_connect(n[1].address);
        raw_send(fd, all, len);
        close(fd);
    }
    assert_alive();
}

TEST_WITH(agent_closes_a_pipe_whose_connections_do_not_come, setup, teardown)
{
    unsigned char answer[512];
    int fd = raw_connect(n[1].address);

    raw_frame(fd, raw_hello, sizeof raw_hello);
    raw_frame(fd, raw_brochure, sizeof raw_brochure);
    assert_true(raw_recv_frame(fd, answer, sizeof answer) > 0);
    assert_true(raw_closed(fd));
    close(fd);
    assert_alive();
}

/* A caller that dies in the middle of its handshake: its connection may end before the
 * agent has read its identity. */
TEST(agent_closes_a_pipe_when_a_connection_ended_with_its_hello)
{
    struct node stranger;
    struct raw_pipe p;

    node_init(&stranger, 0);
    stranger.options.handshake_timeout_ms = 100 * (NODE_LIMIT_NS / 1000000);
    node_open(&stranger);
    nodes_start(&stranger, 1);
    for (int i = 0; i < 50; i++) {
        raw_pipe_ask(&p, stranger.address, NULL);
        raw_pipe_join(&p, stranger.address, 1);
        close(p.fd[1]);
        assert_true(raw_closed(p.fd[0]));
        close(p.fd[0]);
    }
    group_close(&stranger, 1);
}

static atomic_bool holds, let_go;

static void hold_on(struct node *holder, tenrec_peer from, struct tenrec_msg *msg)
{
    atomic_store(&holds, true);
    while (!atomic_load(&let_go))
        nap();
    keep_request(holder, from, msg);
}

/* Blocks the loop until let_go: later events come at once then. Earlier connections have
 * been accepted. */
static void hold_the_loop(struct raw_pipe *ret_by)
{
    unsigned char buf[512];

    atomic_store(&holds, false);
    atomic_store(&let_go, false);
    n[1].on_request = hold_on;
    raw_pipe_open(ret_by, n[1].address);
    raw_send(ret_by->fd[0], buf, raw_message(buf, TENREC_MSG_CALL, 1, "x", 1));
    assert_becomes(atomic_load(&holds));
}

TEST_WITH(agent_does_not_take_a_pipe_that_broke_before_its_last_hello, setup, teardown)
{
    struct raw_pipe p, by;

    raw_pipe_ask(&p, n[1].address, NULL);
    raw_pipe_join(&p, n[1].address, 1);
    p.fd[2] = raw_connect(n[1].address);
    hold_the_loop(&by);
    close(p.fd[0]);
    raw_hello_requested(p.fd[2], p.id[2]);
    atomic_store(&let_go, true);
    assert_becomes(node_counter(&n[1], "handshakes_failed") > 0);
    assert_int_equal(node_counter(&n[1], "pipes_accepted"), 1);
    close(p.fd[1]);
    close(p.fd[2]);
    raw_pipe_close(&by);
}

/* The answer to a Brochure, which a listener at `address` has read from `fd`. */
static size_t answer_brochure(int fd, const char *address, unsigned char buf[2048])
{
    const struct wire_channel_device any = { { nop_text("cpu"), 0 }, "any" };
    const struct wire_channel channel = { "basic", &any, 1, 1 };
    const struct wire_transport uv = { "uv", "uv:*", address + strlen(TRANSPORT_UV_SCHEME) };
    const struct wire_offer offer = { &uv, &channel, 1, 1, NULL };
    const uint64_t channel_id = 2;
    const struct wire_ids ids = { .reply = 1, .channels = &channel_id };
    static struct wire_selection selection;
    struct brochure brochure;
    tenrec_error err;
    long len;

    assert_true(raw_recv_frame(fd, buf, 2048) > 0);
    len = raw_recv_frame(fd, buf, 2048);
    assert_true(len > 0);
    if (brochure_read(buf, (size_t)len, &brochure, &err) ||
        brochure_select(&brochure, &offer, &selection, &err))
        fail_msg("%s", err.text);
    return answer_write(buf, 2048, &offer, &selection, &ids, false);
}

TEST_WITH(agent_notices_an_end_that_comes_with_the_answer, setup, teardown)
{
    struct call c = { .wake_fd = -1 };
    unsigned char buf[2048];
    struct node ghost;
    struct raw_pipe by;
    int listener, fd;
    size_t len;

    node_init(&ghost, 2);
    ghost.member.token = 0; /* a plain TensorPipe peer */
    listener = raw_listen(ghost.address);
    n[1].agent.ops->member_joined(&n[1].agent, &ghost.member);
    call_start(&n[1], &c, 2, request("x"));
    fd = raw_accept(listener);
    len = answer_brochure(fd, ghost.address, buf);
    hold_the_loop(&by);
    raw_frame(fd, buf, len);
    close(fd);
    atomic_store(&let_go, true);
    assert_call_fails(&c, TENREC_ECONNECT);
    raw_pipe_close(&by);
    close(listener);
}

/* Its user reads the address of the error, which must not be the working address. */
TEST_WITH(agent_names_the_address_of_an_answer_that_leads_nowhere, setup, teardown)
{
    struct call c = { .wake_fd = -1 };
    unsigned char buf[2048];
    char nowhere[64];
    struct node ghost;
    int listener, fd;
    size_t len;

    node_init(&ghost, 2);
    listener = raw_listen(ghost.address);
    ghost.member.token = 0; /* its listener has no proof to show */
    close(raw_listen(nowhere));
    n[1].agent.ops->member_joined(&n[1].agent, &ghost.member);
    call_start(&n[1], &c, 2, request("x"));
    fd = raw_accept(listener);
    len = answer_brochure(fd, nowhere, buf);
    raw_frame(fd, buf, len);
    assert_call_fails(&c, TENREC_ECONNECT);
    if (!strstr(c.err.text, nowhere + strlen(TRANSPORT_UV_SCHEME)))
        fail_msg("\"%s\" does not name %s", c.err.text, nowhere);
    close(fd);
    close(listener);
}

TEST_WITH(agent_refuses_a_brochure_without_common_transport, setup, teardown)
{
    unsigned char brochure[sizeof raw_brochure];
    int fd = raw_connect(n[1].address);

    memcpy(brochure, raw_brochure, sizeof brochure);
    brochure[6] = 'x';
    raw_frame(fd, raw_hello, sizeof raw_hello);
    raw_frame(fd, brochure, sizeof brochure);
    assert_true(raw_closed(fd));
    close(fd);
    assert_alive();
}

TEST_WITH(agent_reads_messages_that_arrive_byte_by_byte, setup, teardown)
{
    unsigned char buf[1024], back[64];
    struct raw_pipe p;
    int64_t id;
    long len;
    size_t total;

    raw_pipe_open(&p, n[1].address);
    total = raw_message(buf, TENREC_MSG_CALL, 1, "abcd", 4);
    total += raw_tensor_message(buf + total, TENREC_MSG_CALL, 2, true);
    for (size_t i = 0; i < total; i++)
        raw_send(p.fd[0], buf + i, 1);
    for (size_t i = 0; i < 12; i++)
        raw_send(p.fd[2], &"\4\0\0\0\0\0\0\0wxyz"[i], 1);
    assert_int_equal(raw_recv_message(&p, &id, back, sizeof back, &len), TENREC_MSG_RET);
    assert_int_equal(id, 1);
    assert_int_equal(raw_recv_message(&p, &id, back, sizeof back, &len), TENREC_MSG_RET);
    assert_int_equal(id, 2);
    assert_int_equal(raw_recv_frame(p.fd[2], back, 4), 4);
    assert_memory_equal(back, "wxyz", 4);
    raw_pipe_close(&p);
    assert_alive();
}

TEST_WITH(agent_answers_a_tensor_without_target_with_a_reply, setup, teardown)
{
    static const unsigned char reply[] = { 0xb9, 1, 0xba, 1, 0xb9, 2, 0xbd, 3, 'c', 'p', 'u', 0 };
    unsigned char buf[1024], back[64];
    struct raw_pipe p;
    int64_t id;
    long len;

    raw_pipe_open(&p, n[1].address);
    raw_send(p.fd[0], buf, raw_tensor_message(buf, TENREC_MSG_CALL, 5, false));
    assert_int_equal(raw_recv_frame(p.fd[1], back, sizeof back), sizeof reply);
    assert_memory_equal(back, reply, sizeof reply);
    raw_frame(p.fd[2], "wxyz", 4);
    assert_int_equal(raw_recv_message(&p, &id, back, sizeof back, &len), TENREC_MSG_RET);
    assert_int_equal(id, 5);
    raw_pipe_close(&p);
}

TEST_WITH(agent_takes_a_tensor_that_comes_before_its_descriptor, setup, teardown)
{
    unsigned char buf[1024], back[64];
    struct raw_pipe p;
    int64_t id;
    long len;

    raw_pipe_open(&p, n[1].address);
    raw_frame(p.fd[2], "wxyz", 4);
    raw_send(p.fd[0], buf, raw_tensor_message(buf, TENREC_MSG_CALL, 5, true));
    assert_int_equal(raw_recv_message(&p, &id, back, sizeof back, &len), TENREC_MSG_RET);
    assert_int_equal(raw_recv_frame(p.fd[2], back, 4), 4);
    assert_memory_equal(back, "wxyz", 4);
    raw_pipe_close(&p);
}

TEST_WITH(agent_answers_an_exception_when_a_tensor_finds_no_place, setup, teardown)
{
    unsigned char buf[1024], back[256] = { 0 };
    struct raw_pipe p;
    int64_t id;
    long len;

    atomic_store(&n[1].refuse_place, true);
    raw_pipe_open(&p, n[1].address);
    raw_send(p.fd[0], buf, raw_tensor_message(buf, TENREC_MSG_CALL, 5, true));
    raw_frame(p.fd[2], "wxyz", 4);
    assert_int_equal(raw_recv_message(&p, &id, back, sizeof back - 1, &len), TENREC_MSG_EXCEPTION);
    assert_int_equal(id, 5);
    assert_non_null(strstr((char *)back, "the test wants no tensors"));
    atomic_store(&n[1].refuse_place, false);
    /* The bytes were skipped: the next message is read well. */
    raw_send(p.fd[0], buf, raw_message(buf, TENREC_MSG_CALL, 6, "ok", 2));
    assert_int_equal(raw_recv_message(&p, &id, back, sizeof back, &len), TENREC_MSG_RET);
    assert_int_equal(id, 6);
    raw_pipe_close(&p);
}

TEST_WITH(agent_closes_a_pipe_that_breaks_the_rules, setup, teardown)
{
    /* Each spoils one byte of a good message: its place, and what it becomes. */
    static const struct {
        size_t at;
        unsigned char value;
    } spoil[] = {
        { 7, 0x80 },                            /* an absurd descriptor */
        { 0, 200 },                             /* a longer one */
        { 8, 0xba },                            /* not a structure */
        { 9, 2 },                               /* not three members */
        { 13, 5 },                              /* five payloads */
        { 16, 3 },                              /* a type of 3 bytes */
        { 21, 9 },                              /* an id of 9 bytes */
        { 26, 0x83 },                           /* a payload of absurd length */
        { 8 + 28 + 7, 1 },                      /* the type's frame is longer than announced */
        { 8 + 28, 5 },      { 8 + 28 + 12, 9 }, /* the id's */
        { 8 + 28 + 28, 9 },                     /* the payload's */
        { 8 + 28 + 38, 9 },                     /* the list's */
    };
    unsigned char buf[512];
    struct raw_pipe p;

    for (size_t i = 0; i < sizeof spoil / sizeof spoil[0]; i++) {
        size_t len = raw_message(buf, TENREC_MSG_CALL, 1, "ab", 2);

        buf[spoil[i].at] = spoil[i].value;
        raw_pipe_open(&p, n[1].address);
        raw_send(p.fd[0], buf, len);
        /* More of the same, so that longer lengths are fulfilled. */
        for (int more = 0; more < 4; more++)
            raw_send(p.fd[0], buf, len);
        assert_true(raw_closed(p.fd[0]));
        raw_pipe_close(&p);
    }
    assert_int_equal(atomic_load(&n[1].requests), 0);
    assert_alive();
}

TEST_WITH(agent_refuses_a_tensor_of_another_length, setup, teardown)
{
    unsigned char buf[1024];
    struct raw_pipe p;

    raw_pipe_open(&p, n[1].address);
    raw_send(p.fd[0], buf, raw_tensor_message(buf, TENREC_MSG_CALL, 5, true));
    raw_frame(p.fd[2], "wxyz!", 5);
    assert_true(raw_closed(p.fd[0]));
    raw_pipe_close(&p);
    assert_alive();
}

TEST_WITH(agent_drops_an_answer_that_a_stranger_forges, setup, teardown)
{
    unsigned char buf[512], back[64];
    struct raw_pipe p;
    int64_t id;
    long len;

    raw_pipe_open(&p, n[1].address);
    raw_send(p.fd[0], buf, raw_message(buf, TENREC_MSG_RET, 0, "x", 1));
    raw_send(p.fd[0], buf, raw_message(buf, TENREC_MSG_CALL, 1, "y", 1));
    assert_int_equal(raw_recv_message(&p, &id, back, sizeof back, &len), TENREC_MSG_RET);
    assert_int_equal(atomic_load(&n[1].stray_answers), 0);
    assert_int_equal(node_counter(&n[1], "messages_dropped"), 1);
    raw_pipe_close(&p);
}

static void send_zeros(int fd, size_t len)
{
    static const unsigned char zeros[1 << 16];

    for (size_t part; len; len -= part) {
        part = len < sizeof zeros ? len : sizeof zeros;
        raw_send(fd, zeros, part);
    }
}

/* The frame of a descriptor with a payload of `len` bytes, as little endian. */
static void send_descriptor(struct raw_pipe *p, const char len[8])
{
    unsigned char buf[512];

    raw_message(buf, TENREC_MSG_CALL, 1, "", 0);
    memcpy(buf + 26, "\x83........\xbd\0\xb9\2\x2f\xbd\0\xba\0", 18);
    memcpy(buf + 27, len, 8);
    buf[0] = 36;
    raw_send(p->fd[0], buf, 44);
}

TEST_WITH(agent_skips_a_message_beyond_its_limit, setup, teardown)
{
    unsigned char buf[512], back[512] = { 0 };
    struct raw_pipe p;
    int64_t id;
    long len;

    node_close(&n[1]);
    node_init(&n[1], 1);
    n[1].options.max_message = 4096;
    node_open(&n[1]);
    nodes_start(&n[1], 1);
    raw_pipe_open(&p, n[1].address);
    raw_send(p.fd[0], buf, raw_message(buf, TENREC_MSG_CALL, 1, back, 100));
    assert_int_equal(raw_recv_message(&p, &id, back, sizeof back, &len), TENREC_MSG_RET);
    send_descriptor(&p, "\0\0\0\1\0\0\0\0");
    raw_frame(p.fd[0], "\2\1\0\0", 4);
    raw_frame(p.fd[0], "\5\0\0\0\0\0\0\0", 8);
    raw_send(p.fd[0], "\0\0\0\1\0\0\0\0", 8);
    send_zeros(p.fd[0], 1 << 24);
    raw_send(p.fd[0], "\x2f\0\0\0\0\0\0\0", 8);
    send_zeros(p.fd[0], 47);
    raw_send(p.fd[0], buf, raw_message(buf, TENREC_MSG_CALL, 6, "x", 1));
    assert_int_equal(raw_recv_message(&p, &id, back, sizeof back, &len), TENREC_MSG_EXCEPTION);
    assert_int_equal(id, 5);
    assert_non_null(memmem(back, (size_t)len, "a message of 16777275 bytes", 27));
    assert_int_equal(raw_recv_message(&p, &id, back, sizeof back, &len), TENREC_MSG_RET);
    assert_int_equal(id, 6);
    raw_pipe_close(&p);
}

TEST_WITH(agent_closes_a_pipe_over_a_message_that_never_ends, setup, teardown)
{
    struct raw_pipe p;

    raw_pipe_open(&p, n[1].address);
    send_descriptor(&p, "\xff\xff\xff\xff\xff\xff\xff\xff");
    assert_true(raw_closed(p.fd[0]));
    raw_pipe_close(&p);
    assert_alive();
}

TEST_WITH(agent_goes_on_accepting_after_a_lack_of_descriptors, setup, teardown)
{
    struct rlimit before, low;
    int fd[64], n_fd = 0, spare = dup(0);

    assert_ping(&n[0], 1);
    getrlimit(RLIMIT_NOFILE, &before);
    low = before;
    low.rlim_cur = (rlim_t)spare + 8;
    close(spare);
    setrlimit(RLIMIT_NOFILE, &low);
    /* Each takes two here: ours and the accepted one. */
    while (n_fd < 64 && (fd[n_fd] = raw_connect_if_room(n[1].address)) >= 0)
        n_fd++;
    assert_true(n_fd > 0);
    setrlimit(RLIMIT_NOFILE, &before);
    while (n_fd > 0)
        close(fd[--n_fd]);
    assert_alive();
}
