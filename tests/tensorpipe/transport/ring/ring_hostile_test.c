/* SPDX-License-Identifier: Apache-2.0 */
/* ring_hostile_test.c - an agent goes on serving, whatever a peer does with the rings
 * that they share. */
#include "caller.h"
#include "raw.h"

#include "node.h"
#include "transport/conn.h"
#include "transport/ring/ring.h"
#include "transport/ring/transport_ring.h"
#include "wire/handshake/identity.h"
#include "wire/plain.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define SIZE 65536

static struct node n;

/* Short handshakes, so that silence ends soon; a busy machine takes a second for one. */
static void open_node(uint64_t handshake_ms, uint64_t max_queued_bytes)
{
    node_init(&n, 0);
    n.options.handshake_timeout_ms = handshake_ms;
    n.options.max_queued_bytes = max_queued_bytes;
    node_share_memory(&n);
    node_open(&n);
    nodes_start(&n, 1);
}

static void setup(void)
{
    open_node(2000, 256 << 20);
}

static void teardown(void)
{
    group_close(&n, 1);
}

/* The caller's end of a connection. */
struct wire {
    int fd;
    struct ring_end end;
};

static void wire_open(struct wire *w, const struct caller *c)
{
    const char *why;
    int e = EAGAIN;

    w->fd = caller_dial(c);
    assert_int_equal(ring_setup_call(w->fd, SIZE, &w->end), 0);
    assert_becomes((e = ring_setup_answered(w->fd, &why)) != EAGAIN);
    assert_int_equal(e, 0);
}

static void wire_close(struct wire *w)
{
    close(w->fd);
    ring_end_close(&w->end);
}

/* Whether it is wanted or not. An agent leaves some bells in its socket, and hears no more
 * of a peer that fills it: such a peer does not count on being heard. */
static void ring_bell(const struct wire *w)
{
    send(w->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void wire_send(struct wire *w, const void *data, size_t len)
{
    assert_int_equal(ring_stage(&w->end.out, data, len), len);
    ring_publish(&w->end.out);
    if (ring_reader_to_wake(&w->end.out) & RING_BELL)
        ring_bell(w);
}

static void wire_hello(struct wire *w, uint64_t id)
{
    unsigned char frame[FRAME_HEAD + HELLO_MAX(0)];

    wire_send(w, frame, caller_hello(frame, id));
}

struct ring_pipe {
    struct caller caller;
    struct wire wire[3];
};

static void pipe_open(struct ring_pipe *p)
{
    caller_open(&p->caller, &transport_ring, n.address);
    for (int i = 0; i < 3; i++) {
        wire_open(&p->wire[i], &p->caller);
        wire_hello(&p->wire[i], p->caller.id[i]);
    }
}

static void pipe_close(struct ring_pipe *p)
{
    for (int i = 0; i < 3; i++)
        wire_close(&p->wire[i]);
    caller_close(&p->caller);
}

static void call(struct ring_pipe *p, int64_t id)
{
    unsigned char buf[512], back[512];
    size_t want = raw_message(buf, TENREC_MSG_CALL, id, "hi", 2), got = 0;
    struct plain answer;

    wire_send(&p->wire[0], buf, want);
    /* The echo is of the same length. */
    while (got < want) {
        long r;

        assert_becomes((r = ring_take(&p->wire[0].end.in, back + got, want - got, want)) != 0);
        assert_true(r > 0);
        ring_release(&p->wire[0].end.in);
        got += (size_t)r;
    }
    assert_true(plain_read(back, got, &answer));
    assert_int_equal(answer.id, id);
    assert_int_equal(answer.type, TENREC_MSG_RET);
    assert_memory_equal(answer.payload, "hi", 2);
}

static void assert_alive(void)
{
    struct ring_pipe p;

    pipe_open(&p);
    call(&p, 7);
    pipe_close(&p);
}

/* ---- before the hello ---- */

TEST_WITH(agent_serves_a_caller_over_a_ring, setup, teardown)
{
    struct ring_pipe p;

    pipe_open(&p);
    for (int64_t id = 0; id < 100; id++)
        call(&p, id);
    pipe_close(&p);
}

TEST_WITH(agent_survives_a_ring_connection_that_closes_at_once, setup, teardown)
{
    struct caller c;
    struct wire w;

    caller_open(&c, &transport_ring, n.address);
    for (int i = 0; i < 20; i++) {
        close(caller_dial(&c));
        wire_open(&w, &c);
        wire_close(&w);
    }
    caller_close(&c);
    assert_alive();
}

TEST_WITH(agent_closes_a_ring_connection_that_says_nothing, setup, teardown)
{
    struct caller c;
    struct wire w;
    int fd;

    caller_open(&c, &transport_ring, n.address);
    fd = caller_dial(&c);
    wire_open(&w, &c);
    assert_true(raw_closed(fd));
    assert_true(raw_closed(w.fd));
    close(fd);
    wire_close(&w);
    caller_close(&c);
    assert_alive();
}

TEST_WITH(agent_closes_a_ring_connection_without_memory, setup, teardown)
{
    static const size_t len[] = { 1, 8, 64 };
    struct caller c;
    int fd[3];

    caller_open(&c, &transport_ring, n.address);
    /* All first: their limits pass together. */
    for (size_t i = 0; i < 3; i++) {
        fd[i] = caller_dial(&c);
        raw_send(fd[i], "tenring2 and nothing behind it that could be any kind of memory.", len[i]);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_true(raw_closed(fd[i]));
        close(fd[i]);
    }
    caller_close(&c);
    assert_alive();
}

TEST_WITH(agent_closes_a_ring_without_a_valid_hello, setup, teardown)
{
    static const char *const garbage[] = { "\xff\xff\xff\xff\xff\xff\xff\xff",
                                           "\3\0\0\0\0\0\0\0\xb8\xff\xbe", "\0\0\0\0\0\0\0\0" };
    static const size_t len[] = { 8, 11, 8 };
    struct caller c;
    struct wire w;

    caller_open(&c, &transport_ring, n.address);
    for (size_t i = 0; i < sizeof len / sizeof len[0]; i++) {
        wire_open(&w, &c);
        wire_send(&w, garbage[i], len[i]);
        assert_true(raw_closed(w.fd));
        wire_close(&w);
    }
    caller_close(&c);
    assert_alive();
}

/* An id that was given out for a ring is of no use to a socket, and the other way. */
TEST_WITH(agent_takes_a_connection_over_its_own_transport_only, setup, teardown)
{
    struct caller c;
    int fd;

    caller_open(&c, &transport_ring, n.address);
    fd = raw_connect(n.address);
    raw_hello_requested(fd, c.id[0]);
    assert_true(raw_closed(fd));
    close(fd);
    caller_close(&c);
    assert_alive();
}

/* As the kernel does for one that dies before it has read the answer. */
TEST_WITH(agent_closes_the_pipe_of_a_caller_that_resets_its_first_connection, setup, teardown)
{
    const struct linger reset = { 1, 0 };
    struct caller c;

    node_close(&n);
    open_node(100 * (NODE_LIMIT_NS / 1000000), 256 << 20);
    caller_open(&c, &transport_ring, n.address);
    assert_int_equal(setsockopt(c.bootstrap, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    caller_close(&c);
    assert_becomes(node_counter(&n, "handshakes_failed") == 1);
}

/* ---- afterwards ---- */

static uint64_t room_of(const struct wire *w)
{
    return SIZE - (w->end.out.head - atomic_load(&w->end.out.words->tail));
}

static bool is_over(const struct wire *w)
{
    struct pollfd p = { .fd = w->fd, .events = POLLRDHUP };

    return poll(&p, 1, 0) > 0;
}

TEST_WITH(agent_ends_only_the_pipe_whose_cursors_cannot_be, setup, teardown)
{
    static const uint64_t far[] = { SIZE * 2 + 1, UINT64_MAX / 2, UINT64_MAX };
    struct ring_pipe good, bad;
    unsigned char buf[512];

    pipe_open(&good);
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
        pipe_open(&bad);
        call(&bad, 1);
        atomic_store(&bad.wire[0].end.out.words->head, far[i]);
        ring_bell(&bad.wire[0]);
        assert_true(raw_closed(bad.wire[0].fd));
        pipe_close(&bad);
    }
    /* It answers until the ring seems full, and then looks where we are. */
    pipe_open(&bad);
    atomic_store(&bad.wire[0].end.in.words->tail, UINT64_MAX / 2);
    for (uint64_t sent = 0, len = 0; sent < 2 * SIZE && !is_over(&bad.wire[0]); sent += len) {
        len = raw_message(buf, TENREC_MSG_CALL, 1, "hi", 2);
        assert_becomes(room_of(&bad.wire[0]) >= len || is_over(&bad.wire[0]));
        if (room_of(&bad.wire[0]) >= len)
            wire_send(&bad.wire[0], buf, len);
    }
    assert_true(raw_closed(bad.wire[0].fd));
    pipe_close(&bad);
    call(&good, 2);
    pipe_close(&good);
}

/* The words by which the agent sleeps, its own cursors and the bell: it must go
 * on, whatever the peer leaves there. */
TEST_WITH(agent_serves_others_while_a_peer_spoils_all_words, setup, teardown)
{
    struct ring_pipe good, bad;

    pipe_open(&good);
    pipe_open(&bad);
    call(&bad, 1);
    for (uint32_t i = 0; i < 2000; i++) {
        for (int w = 0; w < 3; w++) {
            struct ring_end *e = &bad.wire[w].end;

            atomic_store(&e->out.words->reader_sleeps, i * 2654435761u);
            atomic_store(&e->in.words->writer_sleeps, i * 40503u);
            atomic_store(&e->out.words->tail, i * UINT64_C(0x9e3779b97f4a7c15));
            atomic_store(&e->in.words->head, i * UINT64_C(0xff51afd7ed558ccd));
            ring_bell(&bad.wire[w]);
        }
        if (i % 100 == 0)
            call(&good, i);
    }
    pipe_close(&bad);
    call(&good, 3000);
    pipe_close(&good);
    assert_alive();
}

/* Its socket is full of bells, and blocks: the agent's calls must not. */
TEST_WITH(agent_serves_others_while_a_peer_takes_no_bell_away, setup, teardown)
{
    struct ring_pipe good, bad;

    pipe_open(&good);
    pipe_open(&bad);
    for (int64_t i = 0; i < 2000; i++) {
        atomic_store(&bad.wire[0].end.in.words->reader_sleeps, RING_BELL);
        call(&bad, i);
        if (i % 100 == 0)
            call(&good, i);
    }
    pipe_close(&bad);
    call(&good, 3000);
    pipe_close(&good);
    assert_alive();
}

TEST_WITH(agent_ends_a_pipe_with_a_frame_beyond_all_limits_over_a_ring, setup, teardown)
{
    struct ring_pipe p;

    pipe_open(&p);
    wire_send(&p.wire[0], "\xff\xff\xff\xff\xff\xff\xff\x7f", 8);
    assert_true(raw_closed(p.wire[0].fd));
    pipe_close(&p);
    assert_alive();
}

TEST_WITH(agent_notices_the_end_of_a_caller_that_left_its_answers_over_a_ring, setup, teardown)
{
    static unsigned char buf[16384], payload[8192];
    size_t len = raw_message(buf, TENREC_MSG_CALL, 1, payload, sizeof payload);
    struct ring_pipe p;

    node_close(&n);
    open_node(2000, 100000);
    pipe_open(&p);
    while (!node_is_clogged(&n)) {
        assert_becomes(room_of(&p.wire[0]) >= len || node_is_clogged(&n));
        if (room_of(&p.wire[0]) >= len)
            wire_send(&p.wire[0], buf, len);
    }
    pipe_close(&p);
    assert_becomes(node_counter(&n, "pipes_broken") == 1);
}
