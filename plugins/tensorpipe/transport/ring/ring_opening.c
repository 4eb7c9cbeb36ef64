/* SPDX-License-Identifier: Apache-2.0 */
/* ring_opening.c - the states of a connection over rings until it is open. */
#include "endpoint.h"
#include "transport/ring/ring_medium.h"
#include "transport/ring/transport_ring.h"

#include <errno.h>

/* Messages and small tensors should stay in a processor's own cache; large tensors
 * go through the channel's first rings, where more room lets both sides copy at
 * their own pace. */
static const uint64_t ring_size[] = {
    [CONN_DESCRIPTOR] = 128u << 10,
    [CONN_REPLY] = RING_SIZE_MIN,
    [CONN_CHANNEL] = 1u << 20,
    [CONN_CHANNEL + 1] = 16u << 10,
};

size_t ring_opening_most(void)
{
    uint64_t most = 0;

    for (size_t i = 0; i < sizeof ring_size / sizeof *ring_size; i++)
        most = ring_size[i] > most ? ring_size[i] : most;
    return ring_setup_bytes(most);
}

static int opening_done(struct ring_medium *m)
{
    struct reactor *r = &m->conn->ep->reactor;
    /* Bells that arrived with the answer are an edge once more. */
    int e = m->caller ? reactor_rewatch(r, &m->conn->source, RING_EVENTS) : 0;

    if (e)
        return e;
    m->state = RING_OPEN;
    reactor_look_add(r, &m->look);
    return 0;
}

void ring_opening_listener(struct ring_medium *m)
{
    const char *why;
    int e = ring_setup_take(m->conn->source.fd, &m->end, &why);

    if (e == EAGAIN)
        return;
    if (!e) {
        why = "cannot watch its socket";
        e = opening_done(m);
    }
    if (!e)
        return;
    m->error = e;
    if (e != ECONNRESET) /* EPIPE: the peer has left */
        endpoint_log(m->conn->ep, e == EPIPE ? TENREC_LOG_DEBUG : TENREC_LOG_WARN,
                     "ring with process %d refused: %s", (int)m->conn->pid, why);
}

/* The caller: from here on there is an answer, or none in time. */
static uint32_t opening_ended(struct ring_medium *m, int e, const char *why)
{
    reactor_disarm(&m->conn->timer);
    m->error = e;
    m->conn->why = why;
    return e ? EPOLLERR : EPOLLOUT;
}

static void opening_late(struct reactor_timer *t)
{
    struct conn *c = CONTAINER(t, struct conn, timer);

    c->on_events(c, opening_ended(c->medium, ETIMEDOUT, "the peer does not answer"));
}

/* For the answer to the memory. A peer that is not run for seconds is no reason to do without
 * rings; half of the handshake's limit is left for the next transport. */
static uint64_t opening_limit_ns(const struct endpoint *ep)
{
    return ep->options->handshake_timeout_ms * 500000u;
}

static uint32_t opening_send_memory(struct ring_medium *m)
{
    struct conn *c = m->conn;
    struct reactor *r = &c->ep->reactor;
    size_t role = c->role < CONN_CHANNEL + 1 ? c->role : CONN_CHANNEL + 1;
    int e = ring_setup_call(c->source.fd, ring_size[role], &m->end);

    if (e)
        return opening_ended(m, e, NULL);
    m->state = RING_ASKED;
    c->timer.fire = opening_late;
    reactor_arm(r, &c->timer, clock_now_ns() + opening_limit_ns(c->ep));
    e = reactor_rewatch(r, &c->source, RING_EVENTS);
    return e ? opening_ended(m, e, NULL) : 0;
}

static uint32_t opening_take_answer(struct ring_medium *m)
{
    const char *why;
    int e = ring_setup_answered(m->conn->source.fd, &why);

    if (e == EAGAIN)
        return 0;
    if (!e)
        e = opening_done(m);
    return opening_ended(m, e, why);
}

uint32_t ring_opening_caller(struct ring_medium *m, uint32_t fetched)
{
    if (m->error)
        return EPOLLERR;
    switch (m->state) {
    case RING_REACHED:
        return fetched & (EPOLLOUT | CONN_END) ? opening_send_memory(m) : 0;
    case RING_ASKED:
        return opening_take_answer(m);
    default:
        return 0;
    }
}

/* Events of the socket, until the rings are open. */
static uint32_t opening_events(const struct ring_medium *m)
{
    if (m->bare)
        return RING_EVENTS | EPOLLOUT;
    return m->caller ? EPOLLOUT | EPOLLRDHUP | EPOLLET : RING_EVENTS;
}

int ring_opening_share(struct conn *c)
{
    struct ring_medium *m = c->medium;

    ring_session_close(c);
    m->bare = false;
    return reactor_rewatch(&c->ep->reactor, &c->source, opening_events(m));
}

int ring_opening_watch(struct ring_medium *m)
{
    struct conn *c = m->conn;

    m->watched = true;
    if (m->caller && m->state != RING_REACHED)
        return 0; /* stream_ring_reached does */
    return reactor_watch(&c->ep->reactor, &c->source, opening_events(m));
}

void stream_ring_calls(struct conn *c)
{
    struct ring_medium *m = c->medium;

    m->caller = true;
}

void stream_ring_reached(struct conn *c, int e)
{
    struct ring_medium *m = c->medium;

    m->error = e;
    m->state = RING_REACHED;
    if (!m->watched)
        return;
    if (!e)
        e = m->error = reactor_watch(&c->ep->reactor, &c->source, opening_events(m));
    if (e)
        c->on_events(c, EPOLLERR);
}
