/* SPDX-License-Identifier: Apache-2.0 */
/* newcomer.c - a connection that has not sent its hello yet.
 *
 * A silent stranger is closed after the hello's limit, or earlier when its place is needed, and
 * a stranger with a malformed hello at once. */
#include "admission/handshakes.h"
#include "agent/agent.h"
#include "agent/listener.h"
#include "pipe/life/pipe_life.h"
#include "proof/prover.h"
#include "wire/handshake/identity.h"

#include <string.h>

static void newcomer_unlist(struct conn *c)
{
    handshakes_remove(&c->ep->handshakes, &c->handshake);
    reactor_disarm(&c->timer);
}

TENREC_PRINTF(3, 4)
static void newcomer_refuse(struct conn *c, enum tenrec_log_level level, const char *fmt, ...)
{
    struct listener *l = c->owner;
    char where[TRANSPORT_TEXT_MAX], text[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    transport_format(&c->peer, where);
    counter_add(&c->ep->count.handshakes_failed, 1);
    agent_log(l->agent, level, "connection from %s closed: %s", where, text);
    newcomer_unlist(c);
    conn_drop(c);
}

static void newcomer_refuse_stranger(struct conn *c, const char *why)
{
    counter_add(&c->ep->count.proofs_refused, 1);
    newcomer_refuse(c, TENREC_LOG_WARN, "%s", why);
}

static void newcomer_hello_missing(struct reactor_timer *t)
{
    struct conn *c = CONTAINER(t, struct conn, timer);

    newcomer_refuse(c, TENREC_LOG_DEBUG, "its hello did not arrive in time");
}

static void newcomer_await_hello(struct conn *c, uint64_t limit_ms,
                                 void (*fire)(struct reactor_timer *t))
{
    c->timer.fire = fire;
    reactor_arm(&c->ep->reactor, &c->timer, clock_now_ns() + limit_ms * 1000000u);
}

/* A caller whose process is not run for a while connects, and sends its hello seconds later. */
static void newcomer_hello_late(struct reactor_timer *t)
{
    struct conn *c = CONTAINER(t, struct conn, timer);

    if (handshake_is_awaited(&c->handshake))
        newcomer_await_hello(c, c->ep->options->handshake_timeout_ms, newcomer_hello_missing);
    else
        newcomer_hello_missing(t);
}

static void newcomer_evict(struct handshake *h, const char *why)
{
    struct conn *c = CONTAINER(h, struct conn, handshake);

    newcomer_refuse(c, TENREC_LOG_DEBUG, "%s", why);
}

/* The id is a secret of the caller's, as long as the wire is not read: what else is known
 * of the caller must fit, too. */
static bool newcomer_is_the_callers(const struct conn *c, const struct pipe *p)
{
    return c->transport == p->terms.transport &&
           transport_same_host(&c->peer, &p->remote.address) &&
           (!p->remote.pid || p->remote.pid == c->pid) &&
           conn_peer_equal(&c->proof.peer, &p->caller.proved);
}

static void newcomer_take_requested(struct conn *c, uint64_t id, uint32_t end)
{
    struct listener *l = c->owner;
    const struct registration *at = wanted_find(&l->wanted, id);
    struct registration r;

    if (!at) {
        newcomer_refuse(c, TENREC_LOG_DEBUG, "no pipe waits for the connection of this id");
        return;
    }
    r = *at;
    if (!newcomer_is_the_callers(c, r.pipe)) {
        newcomer_refuse(c, TENREC_LOG_WARN, "the pipe of another caller waits for this connection");
        return;
    }
    wanted_remove(&l->wanted, id);
    newcomer_unlist(c);
    pipe_adopt(r.pipe, c, r.role);
    if (end)
        c->on_events(c, end);
}

/* Takes the connection's first frame, which has arrived as a whole. Its `end` may have been
 * reported with it, and is reported once. */
static void newcomer_take_hello(struct conn *c, const unsigned char *body, size_t len, uint32_t end)
{
    struct hello hello;
    struct pipe *p;
    tenrec_error err;

    counter_add(&c->ep->count.hellos, 1);
    if (hello_read(body, len, &hello, &err)) {
        newcomer_refuse(c, TENREC_LOG_WARN, "%s", err.text);
        return;
    }
    if (c->proof.peer.proved && hello.id != c->proof.label) {
        newcomer_refuse(c, TENREC_LOG_WARN, "its proof is of another connection");
        return;
    }
    switch (hello.kind) {
    case HELLO_EMPTY:
        newcomer_refuse(c, TENREC_LOG_DEBUG, "an empty hello");
        return;
    case HELLO_REQUESTED:
        c->pos += FRAME_HEAD + len;
        newcomer_take_requested(c, hello.id, end);
        return;
    case HELLO_SPONTANEOUS:
        newcomer_unlist(c);
        p = pipe_accept(c->ep, c, hello.name);
        if (p) {
            c->ep->host->budget->admit(p->budget.source); /* as long as the pipe has it */
            c->pos += FRAME_HEAD + len;
            pipe_accept_ready(p, c, end);
        }
        return;
    }
}

/* In mode none, from a peer that has a secret. */
static void newcomer_refuse_proof(struct conn *c)
{
    tenrec_error why;

    prover_explain(c, TENREC_ANONYMOUS, &why);
    newcomer_refuse_stranger(c, why.text);
}

/* A connection without pipe has something to read, or ends. */
static void newcomer_ready(struct conn *c, uint32_t events)
{
    uint64_t max = CONN_BUFFER - FRAME_HEAD; /* a name of no honest caller is longer */
    const unsigned char *body;
    bool is_short;
    size_t len = 0;

    for (;;) {
        enum frame f = conn_frame(c, max, &body, &len);
        ssize_t n;
        int e;

        if (f == FRAME_WHOLE) {
            newcomer_take_hello(c, body, len, events & CONN_END);
            return;
        }
        if (prover_begins(c)) {
            newcomer_refuse_proof(c);
            return;
        }
        if (f != FRAME_PARTIAL) {
            newcomer_refuse(c, TENREC_LOG_WARN, "a hello of %zu bytes", len);
            return;
        }
        n = conn_read(c, NULL, 0, false, &is_short, &e);
        if (n < 0) {
            newcomer_refuse(c, TENREC_LOG_DEBUG, "%s before its hello", e ? strerror(e) : "closed");
            return;
        }
        if (n == 0)
            return;
    }
}

static void newcomer_proof_refused(struct conn *c, const tenrec_error *why)
{
    newcomer_refuse(c, why->code == TENREC_ECONNECT ? TENREC_LOG_DEBUG : TENREC_LOG_WARN, "%s",
                    why->text);
}

void newcomer_take(struct listener_port *port, int fd, const union transport_address *from)
{
    struct listener *l = port->listener;
    struct agent *a = l->agent;
    struct conn *c = port->transport->accept(&a->ep, fd, from);
    const struct tenrec_budget *budget = a->ep.host->budget;
    struct tenrec_account *source;

    if (!c)
        return;
    conn_set_owner(c, newcomer_ready, l);
    source = conn_source(c);
    if (a->ep.proves && !budget->may_prove(source, HANDSHAKES_OF_SOURCE, clock_now_ns())) {
        budget->close(source);
        newcomer_refuse_stranger(c, "too many connections from its address have proved nothing");
        return;
    }
    c->handshake.evict = newcomer_evict;
    c->handshake.local = c->peer.any.sa_family == AF_UNIX;
    handshakes_add(&a->ep.handshakes, &c->handshake, source);
    if (c->handshake.local)
        newcomer_await_hello(c, a->ep.options->handshake_timeout_ms, newcomer_hello_missing);
    else
        newcomer_await_hello(c, a->ep.options->hello_timeout_ms, newcomer_hello_late);
    if (a->ep.proves)
        prover_listen(c, newcomer_proof_refused);
    if (c->stream->hear(c, HEARS_ALL))
        newcomer_refuse(c, TENREC_LOG_WARN, "cannot watch it");
}
