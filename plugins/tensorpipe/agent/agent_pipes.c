/* SPDX-License-Identifier: Apache-2.0 */
/* agent_pipes.c - the pipes and peers of an agent. */
#include "agent/agent.h"
#include "pipe/pipe.h"
#include "pipe/pipe_services.h"

#include <stdlib.h>

/* ---- what pipes ask of the agent ---- */

static void agent_pipe_established(struct endpoint *ep, struct pipe *p)
{
    if (p->terms.transport->remote)
        keepalive_watch(agent_of(ep));
    if (p->outgoing)
        idle_watch(agent_of(ep));
}

/* Reports the loss of members that have not left or been replaced since: their ids may
 * belong to others. A caller is lost with the last of its pipes. */
static void agent_tell_lost(struct endpoint *ep, struct pipe *p)
{
    const struct peer *peer = p->to ? p->to : atomic_load(&p->caller.member);

    if (!peer || atomic_load(&ep->peers[peer->id]) != peer || atomic_load(&peer->left) ||
        (!p->to && peer->callers > 0))
        return;
    if (p->to)
        ep->host->peer_lost(ep->self, peer->id, &p->why);
    else if (TENREC_HAS(ep->host, caller_lost))
        ep->host->caller_lost(ep->self, peer->id, &p->why);
}

static void agent_leave_pipe(struct endpoint *ep, struct pipe *p)
{
    struct agent *a = agent_of(ep);

    wanted_withdraw(&a->listener.wanted, p);
    agent_cool(a, p);
    /* First, so that a caller that hears of the loss and retries gets a new pipe. */
    if (p->to)
        peer_forget(p->to, p);
    if (p->caller.counted)
        atomic_load(&p->caller.member)->callers--;
    if (p->end.was_established && !atomic_load(&p->idle.parted) &&
        atomic_load(&a->ep.state) == AGENT_STARTED)
        agent_tell_lost(ep, p);
}

static tenrec_status agent_want_conn(struct endpoint *ep, struct pipe *p, enum conn_role role,
                                     uint64_t *ret_id)
{
    return wanted_add(&agent_of(ep)->listener.wanted, p, role, ret_id);
}

static bool agent_has_room(const struct endpoint *ep, unsigned n)
{
    return listener_has_room(&CONTAINER(ep, const struct agent, ep)->listener, n);
}

const struct pipe_owner agent_pipe_owner = {
    .established = agent_pipe_established,
    .hot = agent_hot,
    .leave = agent_leave_pipe,
    .want = agent_want_conn,
    .has_room = agent_has_room,
    .told = agent_told,
};

/* ---- the agent's own ---- */

tenrec_status agent_add_member(struct agent *a, const struct tenrec_member *m, tenrec_error *err)
{
    struct peer *before = NULL;
    tenrec_status st = peer_table_add(&a->ep, m, &before, err);

    if (before)
        peer_retire(&a->ep, before, "another worker took its place");
    return st;
}

struct received {
    const struct endpoint *ep;
    uint64_t *bytes;
    uint32_t n;
};

static void received_add(struct pipe *p, void *arg)
{
    const struct received *r = arg;
    const struct peer *peer = p->to ? p->to : atomic_load(&p->caller.member);

    /* Before it is established the loop thread may be about to make a connection. */
    if (!peer || (uint32_t)peer->id >= r->n || atomic_load(&r->ep->peers[peer->id]) != peer ||
        pipe_state(p) != PIPE_ESTABLISHED)
        return;
    r->bytes[peer->id] += atomic_load(&p->tensors.pulled);
    for (unsigned i = 0; i < p->conns.n; i++)
        if (p->conns.of[i])
            r->bytes[peer->id] += atomic_load(&p->conns.of[i]->bytes_received);
}

void agent_received(struct tenrec_agent *self, uint64_t *received, uint32_t n)
{
    struct agent *a = self->impl;
    struct received r = { &a->ep, received, n };

    pipe_table_enter(&a->ep);
    pipe_table_each(&a->pipes, received_add, &r);
    pipe_table_leave(&a->ep);
}
