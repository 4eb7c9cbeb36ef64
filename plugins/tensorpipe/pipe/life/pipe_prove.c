/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_prove.c - the connector's connections prove to belong to the group before their hello. */
#include "pipe/life/pipe_life.h"
#include "proof/prover.h"

#define PLAIN_ASKS 50 /* 1 s in all */
#define PLAIN_ASK_NS UINT64_C(20000000)

static void prove_refused(struct conn *c, const tenrec_error *why)
{
    struct pipe *p = c->owner;

    if (why->code == TENREC_ECONNECT)
        pipe_connect_ended(p, c);
    else
        pipe_failf(p, why->code, 0, "%s", why->text);
}

static void prove_ask_again(struct reactor_timer *t)
{
    struct conn *c = CONTAINER(t, struct conn, timer);

    c->on_events(c, EPOLLOUT);
}

/* The kernel reports the user of a connection only after that user's process has accepted it. */
static void prove_ask_later(struct conn *c)
{
    c->pending = true;
    c->timer.fire = prove_ask_again;
    reactor_arm(&c->ep->reactor, &c->timer, clock_now_ns() + PLAIN_ASK_NS);
}

/* A proof would confuse another library. */
bool pipe_prove(struct pipe *p, struct conn *c)
{
    struct endpoint *ep = p->ep;
    tenrec_error err;

    if (!ep->proves || c->proof.done)
        return true;
    if (pipe_peer_is_plain(ep, p->to)) {
        if (prover_admits(c))
            return true;
        if (prover_admits_any(ep) && c->proof.asked++ < PLAIN_ASKS) {
            prove_ask_later(c);
            return false;
        }
        pipe_failf(p, TENREC_EPERM, 0,
                   "it cannot prove to be of the group, as its record has no token: security: { "
                   "plain_peers: same_user } lets in such peers of this host");
        return false;
    }
    c->pending = true;
    if (pipe_state(p) == PIPE_CONNECTING)
        reactor_arm(&ep->reactor, &p->timer,
                    clock_now_ns() + ep->options->handshake_timeout_ms * 1000000u);
    if (prover_dial(c, p->to->id, pipe_state(p) == PIPE_CONNECTING ? 0 : p->handshake.ids[c->role],
                    prove_refused, &err))
        prove_refused(c, &err);
    return false;
}
