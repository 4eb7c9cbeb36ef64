/* SPDX-License-Identifier: Apache-2.0 */
#include "pipe/life/pipe_life.h"
#include "pipe/life/pipe_table.h"
#include "pipe/pipe_send.h"
#include "pipe/pipe_services.h"

#include <stdlib.h>

static const char no_member[] = "no member of the group has that id";

/* Every user of `p` at its removal was inside on one of the sides: once each side has
 * been empty, all of them have left. */
static bool is_unused(const struct pipe *p)
{
    return p->end.seen_empty[0] && p->end.seen_empty[1];
}

/* Releases pipes that no thread uses any more, and directs new users to the empty side.
 * Under the lock. */
static void drop_unused(struct peer *peer)
{
    const bool empty[2] = { !atomic_load(&peer->users[0]), !atomic_load(&peer->users[1]) };
    struct pipe *kept = NULL, *next;

    for (struct pipe *p = atomic_load(&peer->old); p; p = next) {
        next = p->end.next_old;
        for (int side = 0; side < 2; side++)
            if (empty[side])
                p->end.seen_empty[side] = true;
        if (is_unused(p)) {
            pipe_unref(p);
        } else {
            p->end.next_old = kept;
            kept = p;
        }
    }
    if (kept && (empty[0] || empty[1]))
        atomic_store(&peer->side, empty[0] ? 0 : 1);
    atomic_store(&peer->old, kept);
}

void peer_drop_old(struct peer *peer)
{
    pthread_mutex_lock(peer->lock);
    drop_unused(peer);
    pthread_mutex_unlock(peer->lock);
}

bool peer_has_left(struct peer *peer, const struct pipe *p)
{
    bool left;

    pthread_mutex_lock(peer->lock);
    drop_unused(peer);
    left = is_unused(p);
    pthread_mutex_unlock(peer->lock);
    return left;
}

/* Under the lock. */
static void take_out(struct peer *peer)
{
    struct pipe *p = atomic_load(&peer->out);

    atomic_store(&peer->out, NULL);
    p->end.next_old = atomic_load(&peer->old);
    /* Set before the users are counted: a user that leaves at the same time sees it. */
    atomic_store(&peer->old, p);
    drop_unused(peer);
}

void peer_forget(struct peer *peer, struct pipe *p)
{
    pthread_mutex_lock(peer->lock);
    if (atomic_load(&peer->out) == p)
        take_out(peer);
    pthread_mutex_unlock(peer->lock);
}

unsigned peer_enter(struct peer *peer)
{
    unsigned side = atomic_load_explicit(&peer->side, memory_order_relaxed);

    /* Before any load of `out` and of the agent's state. */
    atomic_fetch_add(&peer->users[side], 1);
    return side;
}

void peer_leave(struct endpoint *ep, struct peer *peer, unsigned side)
{
    if (unlikely(atomic_fetch_sub(&peer->users[side], 1) != 1))
        return;
    if (unlikely(atomic_load(&peer->old) != NULL))
        peer_drop_old(peer);
    /* A shutdown may wait until this side is empty. */
    if (unlikely(atomic_load(&ep->state) != AGENT_STARTED))
        ep->owner->told(ep);
}

/* Returns true if the pipe was never established: a caller that saw it fail may retry
 * before the loop thread has removed it. (The core must first hear of the loss of an
 * established pipe.) */
static bool came_to_nothing(struct pipe *p)
{
    return pipe_state(p) == PIPE_BROKEN && !p->end.was_established;
}

static struct pipe *peer_connect(struct endpoint *ep, struct peer *peer)
{
    struct pipe *p;

    pthread_mutex_lock(peer->lock);
    p = atomic_load(&peer->out);
    if (p && came_to_nothing(p)) {
        take_out(peer);
        p = NULL;
    }
    if (!p && !atomic_load(&peer->left)) {
        p = pipe_connect(ep, peer);
        atomic_store(&peer->out, p);
    }
    pthread_mutex_unlock(peer->lock);
    return p;
}

__attribute__((noinline)) static void peer_refuse(tenrec_peer to, struct tenrec_msg *msg,
                                                  struct tenrec_done done, tenrec_status code,
                                                  const char *text)
{
    tenrec_error err;

    tenrec_fail(&err, code, "worker %d: %s", (int)to, text);
    err.worker = to;
    pipe_refuse(msg, done, &err);
}

__attribute__((noinline)) static void answer_drop(struct endpoint *ep, struct tenrec_msg *msg,
                                                  struct tenrec_done done)
{
    tenrec_error err;

    counter_add(&ep->count.answers_dropped, 1);
    tenrec_fail(&err, TENREC_EPEER_LOST, "the caller's connection is gone");
    pipe_refuse(msg, done, &err);
}

/* Along the route of its request. */
static inline void answer_send(struct endpoint *ep, struct tenrec_msg *msg, struct tenrec_done done)
{
    struct pipe *p = batch_now ? batch_now->reading : NULL;

    /* From an inline handler: the pipe that is being read. */
    if (p && p->ep == ep && p->route.generation == msg->route.generation &&
        atomic_load(&ep->state) == AGENT_STARTED) {
        pipe_send(p, msg, done);
        return;
    }
    pipe_table_enter(ep);
    if (atomic_load(&ep->state) != AGENT_STARTED) {
        peer_refuse(TENREC_ANONYMOUS, msg, done, TENREC_ESHUTDOWN, "this worker does not run");
    } else if ((p = pipe_table_find(ep->pipes, msg->route))) {
        pipe_send(p, msg, done);
        pipe_unref(p);
    } else {
        answer_drop(ep, msg, done);
    }
    pipe_table_leave(ep);
}

void peer_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
               struct tenrec_done done)
{
    struct endpoint *ep = self->impl; /* the first part of the agent */
    struct peer *peer = peer_find(ep, to);
    struct pipe *p = batch_now ? batch_now->reading : NULL;
    unsigned side;

    if (msg->route.generation) {
        answer_send(ep, msg, done);
        return;
    }
    /* The next request from the callback of an answer: that pipe lives, as shutdown waits for
     * threads that deliver for this agent. */
    if (p && p->outgoing && p->to == peer && p->ep == ep && pipe_state(p) == PIPE_ESTABLISHED &&
        atomic_load(&ep->state) == AGENT_STARTED) {
        pipe_send(p, msg, done);
        return;
    }
    if (!peer) {
        if (peer_is_known(ep, to))
            peer_refuse(to, msg, done, TENREC_ENOMEM, "no memory for a connection");
        else
            peer_refuse(to, msg, done, TENREC_EPEER_UNKNOWN, no_member);
        return;
    }
    side = peer_enter(peer);
    p = atomic_load(&peer->out);
    if (atomic_load(&ep->state) != AGENT_STARTED)
        peer_refuse(to, msg, done, TENREC_ESHUTDOWN, "this worker does not run");
    else if (atomic_load_explicit(&peer->left, memory_order_relaxed))
        peer_refuse(to, msg, done, TENREC_EPEER_UNKNOWN, no_member);
    else if ((p && atomic_load(&p->state) != PIPE_BROKEN) || (p = peer_connect(ep, peer)))
        pipe_send(p, msg, done);
    else
        peer_refuse(to, msg, done, TENREC_ENOMEM, "no memory for a connection");
    peer_leave(ep, peer, side);
}

tenrec_status peer_poll(struct tenrec_agent *self, tenrec_peer from, const struct tenrec_wait *wait)
{
    struct endpoint *ep = self->impl;
    struct peer *peer = peer_find(ep, from);
    tenrec_status st = TENREC_EUNSUPPORTED;
    struct pipe *p;
    unsigned side;

    if (!peer || reactor_mine == &ep->reactor)
        return st;
    side = peer_enter(peer);
    p = atomic_load(&peer->out);
    if (p && atomic_load(&ep->state) == AGENT_STARTED) {
        atomic_store_explicit(&ep->polls,
                              atomic_load_explicit(&ep->polls, memory_order_relaxed) + 1,
                              memory_order_relaxed);
        st = pipe_poll(p, wait);
    }
    peer_leave(ep, peer, side);
    return st;
}

void peer_retire(struct endpoint *ep, struct peer *peer, const char *why)
{
    struct pipe *p;
    unsigned side;

    atomic_store(&peer->left, true);
    side = peer_enter(peer);
    p = peer_out(peer);
    if (p)
        pipe_failf(p, TENREC_EPEER_LOST, 0, "%s", why);
    peer_leave(ep, peer, side);
}
