/* SPDX-License-Identifier: Apache-2.0 */
/* agent_send.c - messages that the core sends, and callers that wait for
 * answers. These two run for each call: they find the pipe without a lock. */
#include "agent/agent_ops.h"
#include "pipe/pipe.h"

static const char no_member[] = "no member of the group has that id";
static const char not_running[] = "this worker does not run";

static void agent_send_failed(struct tenrec_msg *msg, struct tenrec_done done, tenrec_status code,
                              const char *text, tenrec_peer to)
{
    tenrec_error err;

    tenrec_fail(&err, code, "worker %d: %s", (int)to, text);
    err.worker = to;
    if (done.fn)
        done.fn(done.arg, &err);
    msg->release(msg);
}

static void agent_send_request(struct agent *a, tenrec_peer to, struct tenrec_msg *msg,
                               struct tenrec_done done)
{
    struct peer *peer = endpoint_peer(&a->ep, to);
    struct pipe *p = batch_reading();
    unsigned side;

    /* The next request from the callback of an answer: that pipe lives,
     * as shutdown waits for threads that deliver for this agent. */
    if (p && p->outgoing && p->to == peer && p->ep == &a->ep && pipe_state(p) == PIPE_ESTABLISHED &&
        agent_runs(a)) {
        pipe_send(p, msg, done);
        return;
    }
    if (!peer) {
        agent_send_failed(msg, done, TENREC_EPEER_UNKNOWN, no_member, to);
        return;
    }
    side = peer_enter(peer);
    p = atomic_load(&peer->out);
    if (atomic_load(&a->state) != AGENT_STARTED)
        agent_send_failed(msg, done, TENREC_ESHUTDOWN, not_running, to);
    else if (atomic_load_explicit(&peer->left, memory_order_relaxed))
        agent_send_failed(msg, done, TENREC_EPEER_UNKNOWN, no_member, to);
    else if ((p && atomic_load(&p->state) != PIPE_BROKEN) || (p = peer_connect(&a->ep, peer)))
        pipe_send(p, msg, done);
    else
        agent_send_failed(msg, done, TENREC_ENOMEM, "no memory for a connection", to);
    agent_leave_peer(a, peer, side);
}

static void agent_send_answer(struct agent *a, struct tenrec_msg *msg, struct tenrec_done done)
{
    struct pipe *p = batch_reading();

    /* From an inline handler: the pipe that is being read. */
    if (p && p->ep == &a->ep && p->route.generation == msg->route.generation && agent_runs(a)) {
        pipe_send(p, msg, done);
        return;
    }
    agent_enter(a);
    if (atomic_load(&a->state) != AGENT_STARTED) {
        agent_send_failed(msg, done, TENREC_ESHUTDOWN, not_running, TENREC_ANONYMOUS);
    } else if ((p = agent_find_pipe(a, msg->route))) {
        pipe_send(p, msg, done);
        pipe_unref(p);
    } else {
        counter_add(&a->ep.count.answers_dropped, 1);
        tenrec_done_fail(done, TENREC_EPEER_LOST, "the caller's connection is gone");
        msg->release(msg);
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
        agent_send_request(a, to, msg, done);
}

tenrec_status agent_poll(struct tenrec_agent *self, tenrec_peer id, const struct tenrec_wait *wait)
{
    struct agent *a = self->impl;
    struct peer *peer = endpoint_peer(&a->ep, id);
    tenrec_status st = TENREC_EUNSUPPORTED;
    struct pipe *p;
    unsigned side;

    if (!peer || reactor_is_me(&a->ep.reactor))
        return st;
    side = peer_enter(peer);
    p = atomic_load(&peer->out);
    if (p && atomic_load(&a->state) == AGENT_STARTED) {
        atomic_store_explicit(&a->polls, atomic_load_explicit(&a->polls, memory_order_relaxed) + 1,
                              memory_order_relaxed);
        st = pipe_poll(p, wait);
    }
    agent_leave_peer(a, peer, side);
    return st;
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
    } else if ((peer = agent_peer(a, id))) {
        const unsigned side = peer_enter(peer);
        p = peer_out(peer);
        maps = p && pipe_maps(p);
        agent_leave_peer(a, peer, side);
    } else {
        maps = false;
    }
    return maps;
}
