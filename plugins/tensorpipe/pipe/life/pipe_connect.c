/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_connect.c - the connector's side of the handshake.
 *
 * hello and Brochure go out with one write as soon as the connection is open; from the answer on
 * the reply and channel connections are opened. Messages wait for those, because the listener reads
 * none before all are open.
 *
 * The answer may name a better transport than was dialled. If that fails in spite of equal domains,
 * the handshake is repeated without it. */
#include "channel/channels.h"
#include "pipe/life/pipe_life.h"
#include "pipe/life/pipe_table.h"
#include "pipe/pipe_services.h"
#include "proof/prover.h"
#include "wire/handshake/identity.h"

#include <errno.h>
#include <stdlib.h>

#define BROCHURE_MAX 2048
#define REDIALS_MAX 6
#define REDIAL_NS UINT64_C(20000000) /* doubled each time: 1.3 s in all */

static bool connect_one(struct pipe *p, enum conn_role role);

static unsigned port_of(const struct endpoint *ep, const struct transport *t)
{
    unsigned i = 0;

    while (ep->transports[i] && ep->transports[i] != t)
        i++;
    return i;
}

/* Those of the same option, by bit: what a peer lacks for one it lacks for the other. */
static unsigned ports_alike(const struct endpoint *ep, const struct transport *t)
{
    unsigned alike = 0;

    for (unsigned i = 0; ep->transports[i]; i++)
        if (strcmp(ep->transports[i]->option, t->option) == 0)
            alike |= 1u << i;
    return alike;
}

/* All but what was tried in vain, and what does not suit a peer that proves itself, or a peer that
 * does not. */
static struct wire_offer offer_of(const struct pipe *p, struct wire_transport left[TRANSPORTS_MAX],
                                  struct wire_channel shown[CHANNELS_MAX])
{
    const struct endpoint *ep = p->ep;
    const bool proves = ep->proves && !pipe_peer_is_plain(ep, p->to);
    struct wire_offer offer = ep->offer;
    uint32_t n = 0;

    for (unsigned i = 0; i < offer.n_transports; i++)
        if (!(p->handshake.avoided & 1u << i) && prover_suits(ep, ep->transports[i], proves))
            left[n++] = offer.transports[i];
    offer.transports = left;
    offer.n_transports = n;
    if (ep->proves && !proves)
        channels_leave_shared_out(&offer, shown);
    return offer;
}

static void connect_dismiss(struct pipe *p, enum conn_role role)
{
    struct conn *c = p->conns.of[role];

    if (!c)
        return;
    c->role = CONN_BOOTSTRAP; /* events that were fetched already mean nothing */
    p->conns.of[role] = NULL;
    conn_drop(c);
}

/* Errors name the dialled address, which the user configured; the answer may have named another. */
static void fail_unreachable(struct pipe *p, int e)
{
    const tenrec_status code = e == ENOMEM ? TENREC_ENOMEM : TENREC_ECONNECT;
    char there[TRANSPORT_TEXT_MAX];

    transport_format(&p->handshake.there, there);
    if (strcmp(there, p->remote.text) == 0)
        pipe_failf(p, code, e, "cannot connect over %s", p->terms.transport->name);
    else
        pipe_failf(p, code, e, "cannot connect over %s to %s, the address that its answer names",
                   p->terms.transport->name, there);
}

static void begin_again(struct pipe *p)
{
    for (unsigned i = 0; i < CONN_ROLES; i++)
        connect_dismiss(p, (enum conn_role)i);
    pipe_use_channel(p, NULL, false);
    p->terms.transport = p->handshake.dialled;
    p->handshake.there = p->remote.address;
    pipe_advance(p, PIPE_CONNECTING);
}

static void redial_fire(struct reactor_timer *t)
{
    struct pipe *p = CONTAINER(t, struct pipe, handshake.redial);

    if (pipe_state(p) == PIPE_CONNECTING)
        connect_one(p, CONN_DESCRIPTOR);
}

/* A listener that is short of places or descriptors closes handshakes, and the kernel of one with a
 * full queue resets connections (tcp_abort_on_overflow). No message was sent yet, so the handshake
 * can be repeated. */
bool pipe_redial(struct pipe *p)
{
    struct reactor *r = &p->ep->reactor;

    if (p->handshake.redials == REDIALS_MAX || pipe_state(p) == PIPE_BROKEN)
        return false;
    begin_again(p);
    p->handshake.redial.fire = redial_fire;
    reactor_arm(r, &p->handshake.redial, clock_now_ns() + (REDIAL_NS << p->handshake.redials++));
    reactor_arm(r, &p->timer, clock_now_ns() + p->ep->options->connect_timeout_ms * 1000000u);
    return true;
}

/* No connection over the transport that was agreed: `e`. The one that was
 * dialled works, so the handshake is made again without the other. */
static void lead_nowhere(struct pipe *p, int e, const char *why)
{
    struct endpoint *ep = p->ep;

    if (pipe_state(p) == PIPE_ESTABLISHED) {
        pipe_give_deferred_up(p, why ? why : strerror(e));
        return;
    }
    if (p->terms.transport == p->handshake.dialled) {
        if (e != ECONNRESET || !pipe_redial(p))
            fail_unreachable(p, e);
        return;
    }
    snprintf(p->handshake.avoided_why, sizeof p->handshake.avoided_why, "%s",
             why ? why : strerror(e));
    endpoint_log(ep, TENREC_LOG_WARN,
                 "worker \"%s\" cannot be reached over %s, which is left out: %s", p->to->name,
                 p->terms.transport->name, p->handshake.avoided_why);
    p->handshake.avoided |=
        why ? ports_alike(ep, p->terms.transport) : 1u << port_of(ep, p->terms.transport);
    begin_again(p);
    connect_one(p, CONN_DESCRIPTOR);
}

static bool connect_one(struct pipe *p, enum conn_role role)
{
    struct endpoint *ep = p->ep;
    struct conn *c;
    int e;

    e = p->terms.transport->connect(ep, &p->handshake.there, &c);
    if (e) {
        lead_nowhere(p, e, NULL);
        return false;
    }
    pipe_own(p, c, role);
    c->pending = true; /* also if it is open already: EPOLLOUT reports that at once */
    e = c->stream->hear(c, HEARS_ALL);
    if (e)
        pipe_failf(p, TENREC_EOS, e, "cannot watch a connection");
    return e == 0;
}

static void start_run(struct reactor_task *t)
{
    struct pipe *p = CONTAINER(t, struct pipe, handshake.connect_task);
    const char *address;
    tenrec_error err;

    if (pipe_state(p) == PIPE_BROKEN)
        goto out;
    p->terms.transport = p->handshake.dialled =
        transport_of(p->ep->transports, p->to->address, &address);
    if (!p->terms.transport) {
        pipe_failf(p, TENREC_ECONNECT, 0,
                   "the address is of no transport that is in use here; expected %s://...",
                   p->ep->transports[p->ep->offer.n_transports - 1]->name);
    } else if (p->terms.transport->parse(address, strlen(address), &p->remote.address, &err)) {
        pipe_failf(p, TENREC_ECONNECT, 0, "%s", err.text);
    } else if (!transport_complete(&p->remote.address, p->ep->scope)) {
        pipe_failf(p, TENREC_ECONNECT, 0,
                   "link-local address needs %%interface: set ifname, or reach the store by an "
                   "address that has it");
    } else {
        p->handshake.there = p->remote.address;
        transport_format(&p->remote.address, p->remote.text);
        reactor_arm(&p->ep->reactor, &p->timer,
                    clock_now_ns() + p->ep->options->connect_timeout_ms * 1000000u);
        connect_one(p, CONN_DESCRIPTOR);
    }
out:
    pipe_unref(p);
}

struct pipe *pipe_connect(struct endpoint *ep, struct peer *to)
{
    struct pipe *p = pipe_new(ep, true);

    if (!p)
        return NULL;
    p->to = to;
    p->from = to->id;
    p->handshake.connect_task.run = start_run;
    if (pipe_table_add(ep->pipes, p)) {
        pipe_unref(p);
        return NULL;
    }
    pipe_post(p, &p->handshake.connect_task);
    return p;
}

static void connect_greet(struct pipe *p, struct conn *c)
{
    struct endpoint *ep = p->ep;
    unsigned char buf[FRAME_HEAD + HELLO_MAX(TENREC_NAME_MAX) + FRAME_HEAD + BROCHURE_MAX];
    struct wire_transport left[TRANSPORTS_MAX];
    struct wire_channel shown[CHANNELS_MAX];
    struct wire_offer offer = offer_of(p, left, shown);
    char identity[IDENTITY_MAX];
    size_t hello, brochure;
    int e;

    /* The address is that of a record, and the proof of use to that member alone. */
    pipe_write_identity(ep, p->to, PROOF_OF_CALLER, identity);
    offer.identity = identity;
    hello =
        hello_write_spontaneous(buf + FRAME_HEAD, HELLO_MAX(TENREC_NAME_MAX), nop_text(ep->name));
    put_le64(buf, hello);
    hello += FRAME_HEAD;
    brochure = brochure_write(buf + hello + FRAME_HEAD, BROCHURE_MAX, &offer);
    put_le64(buf + hello, brochure);
    e = conn_send_small(c, buf, hello + FRAME_HEAD + brochure);
    if (e) {
        pipe_greeting_ended(p, c, e);
        return;
    }
    pipe_advance(p, PIPE_GREETING);
    reactor_arm(&ep->reactor, &p->timer,
                clock_now_ns() + ep->options->handshake_timeout_ms * 1000000u);
}

/* Another process may have the address by now. A member of a dynamic group may not have heard
 * of us yet, and then shows nothing. */
static tenrec_status check_listener(const struct pipe *p, const struct identity *identity,
                                    tenrec_error *err)
{
    const struct endpoint *ep = p->ep;
    const struct peer *to = p->to;

    if (identity->version && to->incarnation &&
        (identity->rank == to->rank ? identity->incarnation != to->incarnation : ep->dynamic))
        return tenrec_fail(err, TENREC_EPEER_LOST, "another life of that worker listens there now");
    if (!pipe_shares_tokens(ep, to) || (ep->dynamic && identity->version && !identity->proof) ||
        pipe_is_shown(ep, to, PROOF_OF_LISTENER, identity->proof))
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EPEER_LOST,
                       "the process that listens there is not that worker: it does not know the "
                       "token in the worker's record");
}

static tenrec_status take_answer(struct pipe *p, const unsigned char *frame, size_t len,
                                 tenrec_error *err)
{
    struct endpoint *ep = p->ep;
    struct wire_transport left[TRANSPORTS_MAX];
    struct wire_channel shown[CHANNELS_MAX];
    const struct wire_offer offer = offer_of(p, left, shown);
    struct wire_selection selection;
    struct identity identity;
    const struct transport *transport;
    const struct channel *channel;
    bool devices;
    struct answer answer;
    struct nop_bytes ids;
    tenrec_status st;

    st = answer_read(frame, len, &answer, err);
    if (!st)
        st = answer_check(&answer, &offer, p->handshake.dialled->name, &selection, err);
    if (!st)
        st = identity_of_listener(&answer, &identity, err);
    if (st)
        return st;
    transport = transport_named(ep->transports, offer.transports[selection.transport].name);
    st = transport->parse((const char *)answer.address.data, answer.address.len,
                          &p->handshake.there, err);
    if (st)
        return st;
    st = check_listener(p, &identity, err);
    if (st)
        return st;
    pipe_take_identity(p, &identity);
    p->handshake.ids[CONN_DESCRIPTOR] = answer.descriptor_id;
    p->handshake.ids[CONN_REPLY] = answer.reply_id;
    channel = channels_selected(ep->channels, &selection, &devices);
    pipe_use_channel(p, channel, devices);
    /* As many as the channel needs: answer_check has counted them. */
    if (channel && answer_find_ids(&answer, channel->name, &ids))
        for (unsigned i = 0; i < channel->connections; i++)
            p->handshake.ids[CONN_CHANNEL + i] = nop_uint64_at(ids, i);
    if (devices && answer_find_ids(&answer, CHANNEL_CUDA, &ids))
        p->handshake.ids[p->devices.role] = nop_uint64_at(ids, 0);
    /* The host that was dialled is known to be reachable; only the port can
     * be another one. */
    if (transport == p->terms.transport && transport->remote) {
        uint16_t port = transport_port(&p->handshake.there);

        p->handshake.there = p->remote.address;
        transport_set_port(&p->handshake.there, port);
    }
    p->terms.transport = transport;
    pipe_settle_conns(p);
    return TENREC_OK;
}

/* The reply connection, unless there is none, and those of the channel. */
static bool connect_up_to(struct pipe *p, unsigned end)
{
    for (unsigned i = p->conns.lacks_reply ? CONN_CHANNEL : CONN_REPLY; i < end; i++)
        if (!connect_one(p, (enum conn_role)i))
            return false;
    return true;
}

static void read_answer(struct pipe *p, struct conn *c)
{
    const unsigned char *body;
    tenrec_error err;
    size_t len;

    if (!pipe_read_greeting(p, c, "answer to the Brochure", &body, &len))
        return;
    if (take_answer(p, body, len, &err)) {
        pipe_failf(p, err.code == TENREC_EPEER_LOST ? TENREC_ECONNECT : err.code, 0, "%s",
                   err.text);
        return;
    }
    c->pos += FRAME_HEAD + len;
    pipe_advance(p, PIPE_OPENING);
    if (c->transport != p->terms.transport) {
        /* It has done its work: the descriptors take the better way too. */
        connect_dismiss(p, CONN_DESCRIPTOR);
        if (!connect_one(p, CONN_DESCRIPTOR))
            return;
    }
    if (!connect_up_to(p, p->conns.n))
        return;
    if (pipe_is_complete(p))
        pipe_established(p);
}

void pipe_connect_deferred(struct pipe *p)
{
    connect_up_to(p, p->conns.all);
}

/* A connection that the answer requested is open. */
static void connect_introduce(struct pipe *p, struct conn *c)
{
    unsigned char buf[FRAME_HEAD + HELLO_MAX(0)];
    size_t len = hello_write_requested(buf + FRAME_HEAD, HELLO_MAX(0), p->handshake.ids[c->role]);
    int e;

    put_le64(buf, len);
    if (pipe_state(p) == PIPE_ESTABLISHED)
        pipe_publish_deferred(p);
    e = conn_send_small(c, buf, FRAME_HEAD + len);
    if (e) {
        pipe_greeting_ended(p, c, e);
        return;
    }
    p->remote.pid = c->pid;
    if (pipe_state(p) == PIPE_ESTABLISHED)
        pipe_complete_deferred(p);
    else if (pipe_is_complete(p))
        pipe_established(p);
}

void pipe_connect_ended(struct pipe *p, struct conn *c)
{
    if (pipe_state(p) == PIPE_OPENING && p->terms.transport != p->handshake.dialled)
        lead_nowhere(p, ECONNRESET, "the peer closed a connection that it had taken");
    else
        pipe_greeting_ended(p, c, ECONNRESET);
}

void pipe_connect_ready(struct pipe *p, struct conn *c, uint32_t events)
{
    if (c->pending) {
        int e;

        if (!(events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
            return;
        e = c->stream->connected(c);
        if (e) {
            lead_nowhere(p, e, c->why);
            return;
        }
        c->pending = false;
        if (!pipe_prove(p, c))
            return;
        if (pipe_state(p) == PIPE_CONNECTING)
            connect_greet(p, c);
        else
            connect_introduce(p, c);
    }
    if (c->role == CONN_DESCRIPTOR && pipe_state(p) == PIPE_GREETING)
        read_answer(p, c);
    /* That of a connection that was dismissed means nothing, and that of an established pipe is for
     * its reader. */
    if (!(events & CONN_END) || c->role == CONN_BOOTSTRAP ||
        (c->role == CONN_DESCRIPTOR && pipe_state(p) == PIPE_ESTABLISHED))
        return;
    pipe_connect_ended(p, c);
}
