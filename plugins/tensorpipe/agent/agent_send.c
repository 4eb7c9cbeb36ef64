/* SPDX-License-Identifier: Apache-2.0 */
/* agent_send.c - messages that the core sends, and guests that lead the loop. A request goes by
 * its peer (pipe/peer.c), an answer by its route. */
#include "agent/agent_ops.h"
#include "pipe/pipe.h"

static void agent_send_answer(struct agent *a, struct tenrec_msg *msg, struct tenrec_done done)
{
    struct pipe *p = batch_now ? batch_now->reading : NULL;
    tenrec_error err;

    /* From an inline handler: the pipe that is being read. */
    if (p && p->ep == &a->ep && p->route.generation == msg->route.generation && agent_runs(a)) {
        pipe_send(p, msg, done);
        return;
    }
    agent_enter(a);
    if (atomic_load(&a->ep.state) != AGENT_STARTED) {
        tenrec_fail(&err, TENREC_ESHUTDOWN, "this worker does not run");
        pipe_refuse(msg, done, &err);
    } else if ((p = agent_find_pipe(a, msg->route))) {
        pipe_send(p, msg, done);
        pipe_unref(p);
    } else {
        counter_add(&a->ep.count.answers_dropped, 1);
        tenrec_fail(&err, TENREC_EPEER_LOST, "the caller's connection is gone");
        pipe_refuse(msg, done, &err);
    }
    agent_leave(a);
}

void agent_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                struct tenrec_done done)
{
    struct agent *a = self->impl;

    if (msg->route.generation)
        agent_send_answer(a, msg, done);
    else
        peer_send(&a->ep, to, msg, done);
}

/* A guest leaves when its wait is over, or the agent stops. */
struct visit {
    struct agent *agent;
    const struct tenrec_wait *wait;
};

static bool visit_is_over(void *arg)
{
    const struct visit *v = arg;

    return v->wait->done(v->wait->arg) || !agent_runs(v->agent);
}

tenrec_status agent_lead(struct tenrec_agent *self, const struct tenrec_wait *wait)
{
    struct agent *a = self->impl;
    struct visit v = { a, wait };
    struct tenrec_wait until = { .size = sizeof until,
                                 .wake_fd = wait->wake_fd,
                                 .deadline_ns = wait->deadline_ns,
                                 .done = visit_is_over,
                                 .arg = &v };
    tenrec_status st = TENREC_EUNSUPPORTED;

    agent_enter(a);
    /* A loop that is to spin all the time does so by itself. */
    if (agent_runs(a) && a->ep.progress != PROGRESS_BUSY)
        st = reactor_lead(&a->ep.reactor, &until);
    agent_leave(a);
    return st;
}

static bool pipe_maps(struct pipe *p)
{
    bool maps;

    pthread_mutex_lock(&p->lock);
    maps = p->sharing != NULL;
    pthread_mutex_unlock(&p->lock);
    return maps;
}

bool agent_maps(struct tenrec_agent *self, tenrec_peer id, struct tenrec_route route)
{
    struct agent *a = self->impl;
    struct peer *peer;
    struct pipe *p;
    bool maps;

    if (route.generation) {
        agent_enter(a);
        p = agent_find_pipe(a, route);
        maps = p && pipe_maps(p);
        if (p)
            pipe_unref(p);
        agent_leave(a);
    } else if ((peer = peer_find(&a->ep, id))) {
        const unsigned side = peer_enter(peer);
        p = peer_out(peer);
        maps = p && pipe_maps(p);
        peer_leave(&a->ep, peer, side);
    } else {
        maps = false;
    }
    return maps;
}
