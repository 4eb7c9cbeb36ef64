/* SPDX-License-Identifier: Apache-2.0 */
/* words_test.c - rings, with each word of shared memory changed just before
 * each load of it (support/words.h). */
#include "../../support/words.h"
#include "../../testing.h"

#include "endpoint.h"
#include "transport/ring/ring.h"
#include "transport/ring/transport_ring.h"
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static unsigned char text[64 << 10], back[64 << 10];

static struct endpoint endpoint;
static const struct tp_options options = { .handshake_timeout_ms = 60000 };

static bool log_enabled(const void *a, enum tenrec_log_level level)
{
    (void)a;
    (void)level;
    return false;
}

static const struct tenrec_host host = { .size = sizeof host, .log_enabled = log_enabled };

static struct conn *ring_conn(int fd)
{
    static const union transport_address nowhere;
    struct conn *c = stream_ring_conn(&endpoint, &transport_ring, fd, &nowhere);

    assert_non_null(c);
    c->role = CONN_REPLY; /* the smallest ring */
    return c;
}

/* Both ends of one connection, in this process. */
static void ring_open(struct conn *c[2])
{
    int fd[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
    c[0] = ring_conn(fd[0]);
    c[1] = ring_conn(fd[1]);
    stream_ring_calls(c[0]);
    stream_ring_calls(c[0]);
    stream_ring_reached(c[0], 0);
    c[0]->stream->hear(c[0], HEARS_ALL);
    c[1]->stream->hear(c[1], HEARS_ALL);
    c[0]->stream->events(c[0], EPOLLOUT);
    c[1]->stream->events(c[1], EPOLLIN);
    assert_true(c[0]->stream->events(c[0], EPOLLIN) & EPOLLOUT);
    assert_int_equal(c[0]->stream->connected(c[0]), 0);
}

static void ring_shut(struct conn *c)
{
    c->stream->cut(c);
    reactor_disarm(&c->timer);
    c->stream->drop(c);
    c->stream->free(c);
    free(c);
}

/* In one piece, or in pieces as a message with tensors is. */
static ssize_t ring_put(struct conn *c, size_t len, bool whole)
{
    struct iovec iov[2] = { { text, whole ? len : len / 3 }, { text + len / 3, len - len / 3 } };

    return c->stream->write(c, iov, whole ? 1 : 2);
}

static ssize_t ring_get(struct conn *c, size_t len, bool whole)
{
    struct iovec iov[2] = { { back, whole ? len : len / 3 }, { back + len / 3, len - len / 3 } };
    ssize_t n = c->stream->read(c, iov, whole ? 1 : 2, false);

    assert_true(n <= (ssize_t)len);
    return n;
}

/* Full, a check for room, a bit of room, and full again; then all is read. */
static void ring_talk(struct conn *from, struct conn *to)
{
    ring_put(from, 100, true);
    ring_get(to, 40, true);
    ring_get(to, sizeof back, true);
    ring_put(from, sizeof text, false);
    from->stream->want_room(from, false);
    ring_put(from, sizeof text, true);
    to->stream->events(to, 0);
    ring_get(to, 3000, false);
    from->stream->events(from, 0);
    ring_put(from, 3000, true);
    ring_put(from, sizeof text, false);
    from->stream->want_room(from, false);
    ring_put(from, sizeof text, false);
    to->stream->hear(to, HEARS_ROOM);
    to->stream->hear(to, HEARS_ALL);
    ring_get(to, sizeof back, false);
    ring_get(to, sizeof back, true);
    ring_put(from, 10, true);
    ring_get(to, sizeof back, true);
}

/* With a reactor of its own, for tasks that no loop runs stay posted in it. */
static void ring_scenario(void)
{
    struct conn *c[2];

    endpoint = (struct endpoint){ .host = &host, .options = &options };
    assert_int_equal(reactor_init(&endpoint.reactor, NULL), TENREC_OK);
    ring_open(c);
    ring_talk(c[0], c[1]);
    ring_talk(c[1], c[0]);
    ring_shut(c[0]);
    ring_shut(c[1]);
    reactor_finish(&endpoint.reactor);
}

TEST(ring_stays_in_its_mapping_when_a_peer_writes_between_loads)
{
    assert_true(words_try(ring_scenario, RING_SIZE_MIN) > 40);
}
