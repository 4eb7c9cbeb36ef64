/* SPDX-License-Identifier: Apache-2.0 */
/* shm_hostile_test.c - the agent goes on serving, whatever a peer does with
 * shared memory. */
#include "caller.h"
#include "raw.h"

#include "agent/agent.h"
#include "node.h"
#include "shm_wire.h"
#include "transport/tp_shm/transport_shm.h"
#include "wire/plain.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static struct node n;

/* Short handshakes, so that silence ends soon; a busy machine takes a second for one. */
static void open_node(uint64_t max_queued_bytes)
{
    node_init(&n, 0);
    n.options.handshake_timeout_ms = 2000;
    n.options.max_queued_bytes = max_queued_bytes;
    node_share_memory(&n);
    node_open(&n);
    nodes_start(&n, 1);
}

static void setup(void)
{
    open_node(256 << 20);
}

static void setup_busy(void)
{
    node_init(&n, 0);
    n.options.progress = "busy";
    node_share_memory(&n);
    node_open(&n);
    nodes_start(&n, 1);
}

static void teardown(void)
{
    group_close(&n, 1);
}

/* A pipe that was opened by hand. */
struct shm_pipe {
    struct caller caller;
    struct wire wire[3];
};

static void pipe_open(struct shm_pipe *p)
{
    caller_open(&p->caller, &transport_shm, n.address);
    for (int i = 0; i < 3; i++) {
        wire_open(&p->wire[i], caller_dial(&p->caller));
        wire_request(&p->wire[i], p->caller.id[i]);
    }
}

static void pipe_close(struct shm_pipe *p)
{
    for (int i = 0; i < 3; i++)
        wire_close(&p->wire[i]);
    caller_close(&p->caller);
}

static void call(struct shm_pipe *p, int64_t id)
{
    unsigned char buf[512], back[512];
    size_t len = raw_message(buf, TENREC_MSG_CALL, id, "hi", 2);
    struct plain answer;

    wire_send(&p->wire[0], buf, len);
    /* The echo is of the same length. */
    wire_receive(&p->wire[0], back, len);
    assert_true(plain_read(back, len, &answer));
    assert_int_equal(answer.id, id);
    assert_int_equal(answer.type, TENREC_MSG_RET);
    assert_memory_equal(answer.payload, "hi", 2);
}

static void assert_alive(void)
{
    struct shm_pipe p;

    pipe_open(&p);
    call(&p, 7);
    pipe_close(&p);
}

static void assert_closed(int fd)
{
    assert_true(raw_closed(fd));
}

/* Such a peer rings no bell, and the loop does not spin over a message that stands still. */
TEST_WITH(agent_reads_on_when_a_shm_peer_pauses_within_a_message, setup_busy, teardown)
{
    enum { LEN = 200000, PAUSES = 20, NAPS = 3 };
    unsigned char *data = calloc(1, LEN), *buf = malloc(LEN + 1024), *back = malloc(LEN + 1024);
    struct shm_pipe p;

    pipe_open(&p);
    for (int64_t id = 0; id < PAUSES; id++) {
        const size_t len = raw_message(buf, TENREC_MSG_CALL, id, data, LEN);
        struct plain answer;

        wire_send(&p.wire[0], buf, len / 2);
        for (int i = 0; i < NAPS; i++)
            nap();
        wire_send(&p.wire[0], buf + len / 2, len - len / 2);
        wire_receive(&p.wire[0], back, len);
        assert_true(plain_read(back, len, &answer));
        assert_int_equal(answer.id, id);
    }
    pipe_close(&p);
    free(data);
    free(buf);
    free(back);
}

/* ---- before the hello ---- */

TEST_WITH(agent_serves_a_peer_over_shm, setup, teardown)
{
    struct shm_pipe p;

    pipe_open(&p);
    for (int64_t id = 0; id < 100; id++)
        call(&p, id);
    pipe_close(&p);
}

TEST_WITH(agent_survives_a_shm_connection_that_closes_at_once, setup, teardown)
{
    struct caller c;

    caller_open(&c, &transport_shm, n.address);
    for (int i = 0; i < 20; i++)
        close(caller_dial(&c));
    caller_close(&c);
    assert_alive();
}

TEST_WITH(agent_closes_a_shm_connection_that_says_nothing, setup, teardown)
{
    struct caller c;
    struct wire w;
    int fd;

    caller_open(&c, &transport_shm, n.address);
    fd = caller_dial(&c);
    wire_open(&w, caller_dial(&c));
    assert_closed(fd);
    assert_closed(w.fd);
    close(fd);
    wire_close(&w);
    caller_close(&c);
    assert_alive();
}

static int file_of(off_t size)
{
    int fd = memfd_create("test", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, size), 0);
    return fd;
}

TEST_WITH(agent_closes_a_shm_connection_without_rings, setup, teardown)
{
    struct caller c;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), empty = file_of(0), header = file_of(40),
        data = file_of(4096);
    const struct shm_hello odd[] = {
        { 1, 2, { null, null, null, null } },
        { 1, 2, { empty, empty, empty, empty } },
        { 1, 2, { header, data, header, data } }, /* all zero */
        { 1, 2, { data, header, data, header } },
    };
    int fd, part[3];

    caller_open(&c, &transport_shm, n.address);
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        fd = caller_dial(&c);
        assert_int_equal(shm_hello_send(fd, &odd[i]), 0);
        assert_closed(fd);
        close(fd);
    }
    /* All first: their limits pass together. */
    for (size_t i = 0; i < 3; i++) {
        part[i] = caller_dial(&c);
        raw_send(part[i], "no descriptor, no token", 1 + 7 * i);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_closed(part[i]);
        close(part[i]);
    }
    caller_close(&c);
    close(null);
    close(empty);
    close(header);
    close(data);
    assert_alive();
}

TEST_WITH(agent_closes_a_shm_connection_without_a_valid_hello, setup, teardown)
{
    static const char *const garbage[] = { "\0\0\0\0", "\xff\xff\xff\xff",
                                           "\4\0\0\0\xff\xff\xff\xff", "\3\0\0\0\xb8\xff\xbe" };
    static const size_t len[] = { 4, 4, 8, 7 };
    struct caller c;
    struct wire w;

    caller_open(&c, &transport_shm, n.address);
    for (size_t i = 0; i < sizeof len / sizeof len[0]; i++) {
        wire_open(&w, caller_dial(&c));
        shm_ring_put(&w.link.outbox, 0, garbage[i], len[i]);
        shm_ring_advance(&w.link.outbox, len[i]);
        assert_closed(w.fd);
        wire_close(&w);
    }
    caller_close(&c);
    assert_alive();
}

/* ---- afterwards ---- */

static void move_marker(struct shm_ring *r, enum shm_role role, uint64_t to)
{
    atomic_store(&r->header->marker[role], to);
}

TEST_WITH(agent_ends_only_the_pipe_whose_markers_cannot_be, setup, teardown)
{
    static const uint64_t far[] = { UINT64_C(1) << 22, UINT64_MAX / 2 };
    struct shm_pipe good, bad;
    unsigned char buf[512];

    pipe_open(&good);
    for (size_t i = 0; i < 2; i++) {
        pipe_open(&bad);
        call(&bad, 1);
        move_marker(&bad.wire[0].link.outbox, SHM_PRODUCER, far[i]);
        assert_closed(bad.wire[0].fd);
        pipe_close(&bad);

        pipe_open(&bad);
        move_marker(&bad.wire[0].link.inbox, SHM_CONSUMER, far[i]);
        wire_send(&bad.wire[0], buf, raw_message(buf, TENREC_MSG_CALL, 1, "hi", 2));
        assert_closed(bad.wire[0].fd);
        pipe_close(&bad);
    }
    call(&good, 2);
    pipe_close(&good);
}

TEST_WITH(agent_ends_the_pipe_of_a_peer_that_writes_to_its_socket, setup, teardown)
{
    struct shm_pipe p;

    pipe_open(&p);
    call(&p, 1);
    raw_send(p.wire[0].fd, "x", 1);
    assert_closed(p.wire[0].fd);
    pipe_close(&p);
    assert_alive();
}

TEST_WITH(agent_ends_a_pipe_with_a_frame_beyond_all_limits, setup, teardown)
{
    struct shm_pipe p;

    pipe_open(&p);
    shm_ring_put(&p.wire[0].link.outbox, 0, "\xff\xff\xff\xff", 4);
    shm_ring_advance(&p.wire[0].link.outbox, 4);
    assert_closed(p.wire[0].fd);
    pipe_close(&p);
    assert_alive();
}

/* The answer cannot be signaled while the peer holds its reactor, and is when the
 * peer releases it. */
TEST_WITH(agent_answers_others_while_a_peer_holds_its_reactor, setup, teardown)
{
    unsigned char buf[512];
    struct shm_pipe stuck;
    atomic_uchar *lock;
    uint64_t tokens;

    pipe_open(&stuck);
    call(&stuck, 1);
    lock = &stuck.wire[0].link.reactor.header->in_use[SHM_PRODUCER];
    atomic_store(lock, 1);
    wire_send(&stuck.wire[0], buf, raw_message(buf, TENREC_MSG_CALL, 2, "hi", 2));
    assert_becomes(shm_link_is_unread(&stuck.wire[0].link));
    assert_alive();
    shm_reactor_empty(&stuck.wire[0].link.reactor);
    atomic_store(lock, 0);
    assert_becomes(atomic_load(&stuck.wire[0].link.reactor.header->marker[SHM_PRODUCER]) !=
                   atomic_load(&stuck.wire[0].link.reactor.header->marker[SHM_CONSUMER]));
    tokens = atomic_load(&stuck.wire[0].link.reactor.header->marker[SHM_PRODUCER]);
    assert_int_equal(tokens % 4, 0);
    pipe_close(&stuck);
}

TEST_WITH(agent_looks_only_while_there_is_such_a_peer, setup, teardown)
{
    struct agent *a = n.agent.impl;
    struct shm_pipe p;
    uint64_t looks;

    assert_becomes(atomic_load(&a->shm.n) == 0);
    pipe_open(&p);
    call(&p, 1);
    assert_int_equal(atomic_load(&a->shm.n), 3);
    looks = node_counter(&n, "looks");
    assert_becomes(node_counter(&n, "looks") > looks + 10);
    pipe_close(&p);
    assert_becomes(atomic_load(&a->shm.n) == 0);
}

static uint64_t room_of(const struct wire *w)
{
    uint64_t room;

    assert_true(shm_ring_available(&w->link.outbox, &room));
    return room;
}

TEST_WITH(agent_notices_the_end_of_a_caller_that_left_its_answers_over_shm, setup, teardown)
{
    static unsigned char buf[16384], payload[8192];
    size_t len = raw_message(buf, TENREC_MSG_CALL, 1, payload, sizeof payload);
    struct shm_pipe p;

    node_close(&n);
    open_node(100000);
    pipe_open(&p);
    while (!node_is_clogged(&n)) {
        assert_becomes(room_of(&p.wire[0]) >= len || node_is_clogged(&n));
        if (room_of(&p.wire[0]) >= len)
            wire_send(&p.wire[0], buf, len);
    }
    pipe_close(&p);
    assert_becomes(node_counter(&n, "pipes_broken") == 1);
}
