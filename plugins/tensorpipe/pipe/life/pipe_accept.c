/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_accept.c - the acceptor's side of the handshake. */
#include "channel/channels.h"
#include "pipe/life/pipe_life.h"
#include "pipe/life/pipe_table.h"
#include "pipe/pipe_services.h"
#include "proof/prover.h"

#include <errno.h>
#include <stdlib.h>

/* A few dozen ids and some names of ours: below. */
#define ANSWER_MAX 2048
#define CONNECTIONS_OF_RINGS 4 /* descriptor, reply and the two of a channel */

/* Only an entry of a member's present life is believed. Of a dynamic group it may be
 * one that we are about to hear of. */
static tenrec_status accept_identity(struct pipe *p, const struct identity *identity,
                                     tenrec_error *err)
{
    const struct conn_peer claimed = { true, identity->rank, identity->incarnation };

    if (p->caller.proved.proved &&
        (!identity->version || !conn_peer_equal(&claimed, &p->caller.proved)))
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "its Brochure names another worker than its proof");
    pipe_take_identity(p, identity);
    if (!identity->version && pipe_recognise_name(p))
        handshake_trust(&p->handshake.entry);
    if (!identity->version || identity->rank < 0)
        return TENREC_OK;
    /* Else a member would be a stranger for the life of this pipe. */
    if (!peer_find(p->ep, identity->rank) && peer_is_known(p->ep, identity->rank))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for member %d", (int)identity->rank);
    p->caller.id = identity->rank;
    p->caller.incarnation = identity->incarnation;
    p->caller.proof = identity->proof;
    /* First: a member that joins now sees the claim, or is found. */
    atomic_store(&p->caller.claims, p->ep->dynamic);
    if (pipe_recognise(p))
        handshake_trust(&p->handshake.entry);
    return TENREC_OK;
}

/* Rings take more connections than TCP: without descriptors for them the answer names TCP. */
static void leave_transports_out(struct wire_offer *offer,
                                 struct wire_transport left[TRANSPORTS_MAX], const struct pipe *p)
{
    const struct endpoint *ep = p->ep;
    const bool rings = ep->owner->has_room(ep, CONNECTIONS_OF_RINGS);

    for (unsigned i = 0; i < offer->n_transports; i++) {
        const struct transport *t = ep->transports[i];

        left[i] = offer->transports[i];
        if ((!rings && !t->remote) || !prover_suits(ep, t, p->caller.proved.proved))
            left[i].address = NULL;
    }
    offer->transports = left;
}

static tenrec_status accept_brochure(struct pipe *p, const unsigned char *frame, size_t len,
                                     tenrec_error *err)
{
    struct endpoint *ep = p->ep;
    struct conn *c = p->conns.of[CONN_DESCRIPTOR];
    unsigned char buf[FRAME_HEAD + ANSWER_MAX];
    char text[IDENTITY_MAX];
    struct wire_transport left[TRANSPORTS_MAX];
    struct wire_channel shown[CHANNELS_MAX];
    struct wire_offer offer = ep->offer;
    struct wire_selection selection;
    struct wire_ids ids = { .has_descriptor = false };
    struct identity identity;
    const struct channel *channel;
    bool devices;
    struct brochure brochure;
    uint64_t channel_id[CHANNEL_CONNECTIONS];
    size_t n;
    tenrec_status st;
    int e;

    leave_transports_out(&offer, left, p);
    if (ep->proves && !p->caller.proved.proved)
        channels_leave_shared_out(&offer, shown);
    st = brochure_read(frame, len, &brochure, err);
    if (!st)
        st = identity_of_client(&brochure, &identity, err);
    if (!st)
        st = brochure_select(&brochure, &offer, &selection, err);
    if (!st)
        st = accept_identity(p, &identity, err);
    if (st)
        return st;
    channel = channels_selected(ep->channels, &selection, &devices);
    pipe_use_channel(p, channel, devices);
    p->terms.transport = ep->transports[selection.transport];
    pipe_settle_conns(p);
    ids.has_descriptor = p->terms.transport != c->transport;
    if (ids.has_descriptor)
        st = ep->owner->want(ep, p, CONN_DESCRIPTOR, &ids.descriptor);
    if (!st && !p->conns.lacks_reply)
        st = ep->owner->want(ep, p, CONN_REPLY, &ids.reply);
    for (unsigned i = CONN_CHANNEL; i < p->conns.all && !st; i++)
        st = ep->owner->want(ep, p, (enum conn_role)i, &channel_id[i - CONN_CHANNEL]);
    if (st)
        return tenrec_fail(err, st, "no %s for the handshake",
                           st == TENREC_ENOMEM ? "memory" : "random ids");
    ids.channels = channel_id;
    pipe_write_identity(ep, atomic_load(&p->caller.member), PROOF_OF_LISTENER, text);
    offer.identity = text;
    n = answer_write(buf + FRAME_HEAD, ANSWER_MAX, &offer, &selection, &ids, identity.version != 0);
    if (n > ANSWER_MAX)
        return tenrec_fail(err, TENREC_EPROTOCOL, "the answer to this Brochure takes %zu bytes", n);
    put_le64(buf, n);
    e = conn_send_small(c, buf, FRAME_HEAD + n);
    if (e)
        return tenrec_fail_errno(err, TENREC_ECONNECT, e, "cannot send the answer");
    /* The caller closes it once it has read that. */
    if (ids.has_descriptor) {
        c->role = CONN_BOOTSTRAP;
        p->handshake.bootstrap = c;
        p->conns.of[CONN_DESCRIPTOR] = NULL;
    }
    return TENREC_OK;
}

static void read_brochure(struct pipe *p)
{
    struct conn *c = p->conns.of[CONN_DESCRIPTOR];
    const unsigned char *body;
    tenrec_error err;
    size_t len;

    if (!pipe_read_greeting(p, c, "Brochure", &body, &len))
        return;
    if (accept_brochure(p, body, len, &err)) {
        pipe_failf(p, err.code, 0, "%s", err.text);
        return;
    }
    c->pos += FRAME_HEAD + len;
    pipe_advance(p, PIPE_OPENING);
    if (pipe_is_complete(p))
        pipe_established(p);
}

/* Early bytes of a client stay in the socket until all connections are open. */
void pipe_accept_ready(struct pipe *p, struct conn *c, uint32_t events)
{
    if (c->role == CONN_DESCRIPTOR && pipe_state(p) == PIPE_GREETING)
        read_brochure(p);
    if ((events & CONN_END) && pipe_state(p) != PIPE_ESTABLISHED)
        pipe_failf(p, TENREC_ECONNECT, 0, "closed a connection during the handshake");
}

static void pipe_evict(struct handshake *h, const char *why)
{
    struct pipe *p = CONTAINER(h, struct pipe, handshake.entry);

    pipe_failf(p, TENREC_ECONNECT, 0, "%s", why);
}

struct pipe *pipe_accept(struct endpoint *ep, struct conn *c, struct nop_bytes name)
{
    struct pipe *p = pipe_new(ep, false);
    size_t len = name.len < TENREC_NAME_MAX ? name.len : TENREC_NAME_MAX;

    if (!p || !pipe_begin_budget(p, c) || pipe_table_add(ep->pipes, p)) {
        endpoint_log(ep, TENREC_LOG_WARN, "no memory for another pipe");
        pipe_unref(p);
        conn_drop(c);
        return NULL;
    }
    p->handshake.entry.evict = pipe_evict;
    p->handshake.entry.kind = HANDSHAKE_PIPE;
    p->handshake.entry.local = c->proof.peer.proved;
    handshakes_add(&ep->handshakes, &p->handshake.entry, conn_source(c));
    p->remote.address = c->peer;
    p->terms.transport = c->transport;
    p->remote.pid = c->pid;
    p->caller.proved = c->proof.peer;
    transport_format(&p->remote.address, p->remote.text);
    /* Free text of a stranger. */
    for (size_t i = 0; i < len; i++)
        p->remote.name[i] = name.data[i] >= ' ' && name.data[i] < 127 ? (char)name.data[i] : '?';
    pipe_own(p, c, CONN_DESCRIPTOR);
    reactor_arm(&ep->reactor, &p->timer,
                clock_now_ns() + ep->options->handshake_timeout_ms * 1000000u);
    pipe_unref(p); /* the agent's reference stays */
    return p;
}

void pipe_adopt(struct pipe *p, struct conn *c, enum conn_role role)
{
    const bool deferred = role >= p->conns.n;

    pipe_own(p, c, role);
    p->remote.pid = c->pid;
    if (pipe_state(p) == PIPE_BROKEN)
        return;
    if (deferred && pipe_state(p) != PIPE_ESTABLISHED)
        pipe_failf(p, TENREC_EPROTOCOL, 0, "opened a connection for tensors before the pipe");
    else if (deferred)
        pipe_complete_deferred(p);
    else if (pipe_is_complete(p))
        pipe_established(p);
}
