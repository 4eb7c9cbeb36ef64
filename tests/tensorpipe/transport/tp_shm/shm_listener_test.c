/* SPDX-License-Identifier: Apache-2.0 */
/* shm_listener_test.c - an agent calls a listener that redirects it to shm, and
 * then hands over correctly or badly. */
#include "raw.h"

#include "node.h"
#include "shm_wire.h"
#include "transport/conn.h"
#include "transport/tp_shm/transport_shm.h"
#include "transport/transport_local.h"
#include "wire/handshake/brochure.h"
#include "wire/handshake/hello.h"
#include "wire/plain.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define ID 40 /* of the descriptor connection; reply and channel follow */

/* Where the agent is sent on to, and where it begins. */
struct ghost {
    struct node member; /* in the agent's group */
    int uv, shm;
    char name[TRANSPORT_TEXT_MAX]; /* of the shm socket */
};

static struct node n;
static struct ghost g;

static void setup(void)
{
    struct tenrec_member members[2];
    tenrec_error err;

    node_init(&n, 0);
    n.options.handshake_timeout_ms = 3000;
    node_share_memory(&n);
    node_open(&n);
    node_init(&g.member, 1);
    g.uv = raw_listen(g.member.address);
    if (local_listen(NULL, &g.shm, g.name, &err))
        fail_msg("%s", err.text);
    members[0] = n.member;
    members[1] = g.member.member;
    members[1].address = g.member.address;
    members[1].token = 0; /* a peer on libtensorpipe */
    if (n.agent.ops->start(&n.agent, members, 2, &err))
        fail_msg("%s", err.text);
    n.started = true;
}

static void teardown(void)
{
    node_shutdown(&n);
    node_close(&n);
    close(g.uv);
    if (g.shm >= 0)
        close(g.shm);
}

/* Takes the agent's Brochure, into `buf`; the connection it came on. */
static int take_brochure(unsigned char buf[2048], struct brochure *ret)
{
    tenrec_error err;
    int fd = raw_accept(g.uv);
    long len;

    assert_true(raw_recv_frame(fd, buf, 2048) > 0);
    len = raw_recv_frame(fd, buf, 2048);
    assert_true(len > 0);
    if (brochure_read(buf, (size_t)len, ret, &err))
        fail_msg("%s", err.text);
    return fd;
}

/* Sends the agent on to the shm socket. */
static void send_on(void)
{
    const struct wire_channel_device any = { { nop_text("cpu"), 0 }, "any" };
    const struct wire_channel channel = { "basic", &any, 1, 1 };
    char domain[TRANSPORT_DOMAIN_MAX];
    const struct wire_transport shm = { "shm", domain, g.name };
    const struct wire_offer offer = { &shm, &channel, 1, 1, NULL };
    const uint64_t channel_id = ID + 2;
    const struct wire_ids ids = { true, ID, ID + 1, &channel_id };
    static struct wire_selection selection;
    unsigned char buf[2048];
    struct brochure brochure;
    tenrec_error err;
    int fd = take_brochure(buf, &brochure);

    transport_shm.domain(NULL, domain);
    if (brochure_select(&brochure, &offer, &selection, &err))
        fail_msg("%s", err.text);
    raw_frame(fd, buf, answer_write(buf, sizeof buf, &offer, &selection, &ids, false));
    assert_true(raw_closed(fd)); /* both of us are done with it */
    close(fd);
}

/* It did not get there: it begins anew, and offers that way no more. */
static void assert_begins_anew(struct call *c)
{
    struct nop_bytes domain;
    struct brochure brochure;
    unsigned char buf[2048];
    int fd = take_brochure(buf, &brochure);

    assert_true(brochure_find_transport(&brochure, "uv", &domain));
    assert_false(brochure_find_transport(&brochure, "shm", &domain));
    close(fd);
    assert_call_fails(c, TENREC_ECONNECT);
}

static int take_socket(void)
{
    struct pollfd ready = { .fd = g.shm, .events = POLLIN };
    int fd;

    assert_int_equal(poll(&ready, 1, 20000), 1);
    fd = accept(g.shm, NULL, NULL);
    assert_true(fd >= 0);
    return fd;
}

/* The three connections, in the order of their ids. */
static void take_pipe(struct wire w[3])
{
    for (int i = 0; i < 3; i++) {
        struct wire one;
        uint64_t id;

        wire_open(&one, take_socket());
        id = wire_requested(&one);
        assert_in_range(id, ID, ID + 2);
        w[id - ID] = one;
    }
}

static void close_pipe(struct wire w[3])
{
    for (int i = 0; i < 3; i++)
        wire_close(&w[i]);
}

/* Reads the agent's request and sends its answer. */
static void answer_one(struct wire *w)
{
    unsigned char buf[512];
    size_t len = raw_message(buf, TENREC_MSG_CALL, 0, "hi", 2);
    struct plain request_read;

    wire_receive(w, buf, len);
    assert_true(plain_read(buf, len, &request_read));
    assert_memory_equal(request_read.payload, "hi", 2);
    wire_send(w, buf, raw_message(buf, TENREC_MSG_RET, request_read.id, "yes", 3));
}

static void start_call(struct call *c)
{
    *c = (struct call){ .wake_fd = -1 };
    call_start(&n, c, 1, message_of(TENREC_MSG_CALL, "hi", 2, 0, NULL, 0));
}

static void assert_answered(struct call *c)
{
    assert_becomes(atomic_load(&c->done));
    assert_int_equal(c->status, TENREC_OK);
    assert_int_equal(c->answer->payload_len, 3);
    call_finish(c);
}

TEST_WITH(agent_follows_a_redirection, setup, teardown)
{
    struct wire w[3];
    struct call c;

    start_call(&c);
    send_on();
    take_pipe(w);
    answer_one(&w[0]);
    assert_answered(&c);
    close_pipe(w);
}

/* As many as it lets wait, and a few. */
#define MORE 16

TEST_WITH(agent_tries_again_when_the_queue_of_a_listener_is_full, setup, teardown)
{
    union transport_address to;
    int fd[MORE], n_fds = 0;
    struct wire w[3];
    tenrec_error err;
    struct call c;

    assert_int_equal(listen(g.shm, 0), 0);
    if (local_parse(g.name, strlen(g.name), &to, &err))
        fail_msg("%s", err.text);
    for (; n_fds < MORE; n_fds++) {
        fd[n_fds] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (local_connect(fd[n_fds], &to))
            break;
    }
    assert_in_range(n_fds, 1, MORE - 1);
    close(fd[n_fds]);
    start_call(&c);
    send_on();
    for (int i = 0; i < n_fds; i++) {
        close(take_socket());
        close(fd[i]);
    }
    take_pipe(w);
    answer_one(&w[0]);
    assert_answered(&c);
    close_pipe(w);
}

TEST_WITH(agent_dials_again_when_the_listener_is_gone, setup, teardown)
{
    struct call c;

    close(g.shm);
    g.shm = -1;
    start_call(&c);
    send_on();
    assert_begins_anew(&c);
}

TEST_WITH(agent_gives_up_on_a_listener_that_hands_over_nothing, setup, teardown)
{
    struct call c;
    int fd;

    start_call(&c);
    send_on();
    fd = take_socket();
    assert_call_fails(&c, TENREC_ECONNECT);
    close(fd);
}

TEST_WITH(agent_begins_anew_when_a_listener_hands_over_nonsense, setup, teardown)
{
    struct call c;
    int fd;

    start_call(&c);
    send_on();
    fd = take_socket();
    raw_send(fd, "no ring!", 8);
    assert_begins_anew(&c);
    close(fd);
}

TEST_WITH(agent_begins_anew_when_a_listener_hangs_up, setup, teardown)
{
    struct call c;

    start_call(&c);
    send_on();
    close(take_socket());
    assert_begins_anew(&c);
}

TEST_WITH(agent_loses_no_answer_that_came_before_the_end, setup, teardown)
{
    struct wire w[3];
    struct call c;

    start_call(&c);
    send_on();
    take_pipe(w);
    answer_one(&w[0]);
    close_pipe(w);
    assert_answered(&c);
}
