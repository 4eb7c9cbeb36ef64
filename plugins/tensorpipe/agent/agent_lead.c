/* SPDX-License-Identifier: Apache-2.0 */
/* agent_lead.c - guests that lead the loop, and which peers map tensors. */
#include "agent/agent.h"
#include "channel/channel.h"
#include "pipe/pipe_end.h"

tenrec_status agent_lead(struct tenrec_agent *self, const struct tenrec_wait *wait)
{
    struct agent *a = self->impl;
    tenrec_status st = TENREC_EUNSUPPORTED;

    pipe_table_enter(&a->ep);
    /* A loop that is to spin all the time does so by itself. */
    if (agent_runs(a) && a->ep.progress != PROGRESS_BUSY)
        st = reactor_lead(&a->ep.reactor, wait);
    pipe_table_leave(&a->ep);
    return st;
}

bool agent_maps(struct tenrec_agent *self, tenrec_peer id, struct tenrec_route route)
{
    struct agent *a = self->impl;
    struct peer *peer;
    struct pipe *p;
    bool maps;

    if (route.generation) {
        pipe_table_enter(&a->ep);
        p = pipe_table_find(&a->pipes, route);
        maps = p && shm_handoff_maps(p);
        if (p)
            pipe_unref(p);
        pipe_table_leave(&a->ep);
    } else if ((peer = peer_find(&a->ep, id))) {
        const unsigned side = peer_enter(peer);
        p = peer_out(peer);
        maps = p && shm_handoff_maps(p);
        peer_leave(&a->ep, peer, side);
    } else {
        maps = false;
    }
    return maps;
}
