/* SPDX-License-Identifier: Apache-2.0 */
/* prover.c - reads and writes the records of a proof on a connection.
 *
 * The dialler sends nothing after its answer until the listener has accepted: so no byte of what
 * follows is read before it is known whose it is, and descriptors that follow over a Unix socket
 * are not lost in this buffer. */
#include "proof/prover.h"
#include "wire/little_endian.h"

#include <errno.h>

static const struct tenrec_proof_service *prover_service(const struct conn *c)
{
    return c->ep->proof;
}

/* The connection's events are the owner's again. */
static void prover_end(struct conn *c)
{
    prover_service(c)->close(c->ep->self, c->proof.open);
    c->proof.open = NULL;
    c->on_events = c->proof.on_events;
}

/* Returns 0 or an errno. A new connection without room for one record is not that of an honest
 * peer. */
static int prover_send(struct conn *c)
{
    size_t len;
    const void *out = prover_service(c)->output(c->ep->self, c->proof.open, &len);

    return len ? conn_send_small(c, out, len) : 0;
}

static void prover_refuse(struct conn *c, const tenrec_error *why)
{
    /* Counted before the peer hears of it. */
    if (!c->proof.dialled && why->code != TENREC_ECONNECT)
        counter_add(&c->ep->count.proofs_refused, 1);
    if (c->proof.open)
        prover_send(c); /* the reason */
    prover_end(c);
    c->proof.refused(c, why);
}

TENREC_PRINTF(4, 5)
static void prover_fail(struct conn *c, tenrec_status code, int e, const char *fmt, ...)
{
    tenrec_error why;
    va_list ap;

    va_start(ap, fmt);
    tenrec_vfail(&why, code, fmt, ap);
    va_end(ap);
    why.os_errno = e;
    prover_refuse(c, &why);
}

static void prover_hand_on(struct conn *c, uint32_t end)
{
    const uint32_t events = (c->proof.dialled ? EPOLLOUT : EPOLLIN) | end;
    int e = 0;

    if (c->stream->share && conn_buffered(c)) {
        prover_fail(c, TENREC_EPROTOCOL, 0, "sent bytes behind its proof");
        return;
    }
    prover_end(c); /* before the session that it is bound to */
    if (c->stream->share)
        e = c->stream->share(c);
    if (e) {
        prover_fail(c, TENREC_ECONNECT, e, "cannot set up the connection");
        return;
    }
    c->proof.done = true;
    if (!c->stream->share)
        c->on_events(c, events);
}

/* Returns false if the label is none of ours. */
static bool prover_learn(struct conn *c, const struct tenrec_proved *peer)
{
    if (peer->label_len != 0 && peer->label_len != sizeof(uint64_t))
        return false;
    if (!c->proof.dialled && peer->label_len)
        c->proof.label = get_le64(peer->label);
    c->proof.peer = (struct conn_peer){ true, peer->id, peer->incarnation, "" };
    snprintf(c->proof.peer.name, sizeof c->proof.peer.name, "%s", peer->name);
    /* Handshakes of strangers are evicted first. */
    c->handshake.local = true;
    if (!c->proof.dialled)
        counter_add(&c->ep->count.proofs, 1);
    return true;
}

/* Returns true while more must be read. */
static bool prover_take(struct conn *c, uint32_t events)
{
    const struct tenrec_proof_service *s = prover_service(c);
    struct tenrec_agent *self = c->ep->self;
    struct tenrec_proved peer = { .size = sizeof peer };
    size_t used = 0;
    tenrec_error err;
    int e;

    if (s->take(self, c->proof.open, c->buf + c->pos, conn_buffered(c), &used, &err)) {
        prover_refuse(c, &err);
        return false;
    }
    c->pos += used;
    e = prover_send(c);
    if (e)
        prover_fail(c, TENREC_ECONNECT, e, "cannot send the proof of the group secret");
    else if (!s->proved(self, c->proof.open, &peer))
        return true;
    else if (prover_learn(c, &peer))
        prover_hand_on(c, events & CONN_END);
    else
        prover_fail(c, TENREC_EPROTOCOL, 0, "the label of its proof is no registration id");
    return false;
}

static bool prover_admits_plain(const struct conn *c)
{
    return prover_service(c)->admits_plain(c->ep->self, c->source.fd);
}

/* Opens the dialler's proof, whose first record it sends. */
static tenrec_status prover_call(struct conn *c, tenrec_error *err)
{
    unsigned char id[sizeof c->proof.label];
    tenrec_status st;
    int e;

    put_le64(id, c->proof.label);
    st = prover_service(c)->dial(c->ep->self, c->proof.member, c->tls, id,
                                 c->proof.label ? sizeof id : 0, &c->proof.open, err);
    if (st)
        return st;
    e = prover_send(c);
    return e ? tenrec_fail_errno(err, TENREC_ECONNECT, e,
                                 "cannot send the proof of the group secret")
             : TENREC_OK;
}

/* The handshake of the stream, if it has one, and then our first record. EAGAIN: not yet. */
static tenrec_status prover_open(struct conn *c, tenrec_error *err)
{
    tenrec_status st = c->stream->shake ? c->stream->shake(c, err) : TENREC_OK;

    if (st)
        return st;
    c->proof.shaken = true;
    return c->proof.dialled ? prover_call(c, err) : TENREC_OK;
}

/* Handles the first bytes of an incoming connection. Returns false if no more bytes are to be
 * read. */
static bool prover_meet(struct conn *c, uint32_t events)
{
    tenrec_error err;

    /* A ring's memory arrives with these bytes: it is for members only. */
    if (!prover_begins(c) && !c->stream->share && prover_admits_plain(c)) {
        prover_hand_on(c, events & CONN_END);
        return false;
    }
    if (!prover_service(c)->listen(c->ep->self, c->tls, &c->proof.open, &err))
        return true;
    prover_refuse(c, &err);
    return false;
}

static void prover_ready(struct conn *c, uint32_t events)
{
    bool is_short;
    tenrec_error err;
    tenrec_status st = c->proof.shaken ? TENREC_OK : prover_open(c, &err);
    ssize_t n;
    int e;

    if (st == TENREC_EAGAIN)
        return;
    if (st) {
        prover_refuse(c, &err);
        return;
    }
    do {
        if (!c->proof.open && conn_buffered(c) >= TENREC_PROOF_MAGIC_LEN && !prover_meet(c, events))
            return;
        if (c->proof.open && conn_buffered(c) && !prover_take(c, events))
            return;
        n = conn_read(c, NULL, 0, false, &is_short, &e);
    } while (n > 0);
    if (n < 0 && c->tls && *c->ep->tls->reason(c->tls))
        prover_fail(c, TENREC_EPERM, 0, "%s", c->ep->tls->reason(c->tls));
    else if (n < 0)
        prover_fail(c, TENREC_ECONNECT, e ? e : ECONNRESET,
                    "closed the connection before it proved to belong to the group");
}

static void prover_begin(struct conn *c, prover_refused_fn *refused)
{
    c->proof.on_events = c->on_events;
    c->proof.refused = refused;
    c->on_events = prover_ready;
}

void prover_listen(struct conn *c, prover_refused_fn *refused)
{
    prover_begin(c, refused);
}

tenrec_status prover_dial(struct conn *c, tenrec_peer member, uint64_t label,
                          prover_refused_fn *refused, tenrec_error *err)
{
    tenrec_status st;

    c->proof.dialled = true;
    c->proof.member = member;
    c->proof.label = label;
    prover_begin(c, refused);
    st = prover_open(c, err);
    if (st == TENREC_OK || st == TENREC_EAGAIN)
        return TENREC_OK;
    prover_end(c);
    return st;
}

bool prover_admits(const struct conn *c)
{
    return !c->ep->proves || prover_admits_plain(c);
}

bool prover_admits_any(const struct endpoint *ep)
{
    return !ep->proves || ep->proof->admits_plain(ep->self, -1);
}

bool prover_suits(const struct endpoint *ep, const struct transport *t, bool proved)
{
    return !ep->proves || proved || t->remote;
}

void prover_explain(struct conn *c, tenrec_peer dialled, tenrec_error *err)
{
    const struct tenrec_proof_service *s = prover_service(c);
    struct tenrec_agent *self = c->ep->self;
    struct tenrec_proof *p = NULL;
    tenrec_error why;
    size_t used, len = 0;
    const void *out;

    tenrec_fail(err, TENREC_EPERM,
                "it demands a proof of a group secret, and this worker has no secret");
    if (!s || (dialled == TENREC_ANONYMOUS ? s->listen(self, NULL, &p, &why)
                                           : s->dial(self, dialled, NULL, NULL, 0, &p, &why)))
        return;
    if (s->take(self, p, c->buf + c->pos, conn_buffered(c), &used, &why)) {
        *err = why;
        out = dialled == TENREC_ANONYMOUS ? s->output(self, p, &len) : NULL;
        if (len)
            conn_send_small(c, out, len);
    }
    s->close(self, p);
}
