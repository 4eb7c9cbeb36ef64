/* SPDX-License-Identifier: Apache-2.0 */
#include "pipe/peer.h"
#include "pipe/pipe.h"

#include <stdlib.h>

struct peer *peer_new(const struct tenrec_member *m)
{
    struct peer *peer = calloc(1, sizeof *peer);

    if (!peer)
        return NULL;
    peer->id = m->id;
    peer->incarnation = m->incarnation;
    peer->token = TENREC_HAS(m, token) ? m->token : 0;
    peer->name = m->name;
    peer->address = m->address;
    pthread_mutex_init(&peer->lock, NULL);
    return peer;
}

void peer_free(struct peer *peer)
{
    struct peer *before;

    for (; peer; peer = before) {
        before = peer->before;
        pthread_mutex_destroy(&peer->lock);
        free(peer);
    }
}

/* Every user of `p` at its removal was inside on one of the sides: once each side has
 * been empty, all of them have left. */
static bool is_unused(const struct pipe *p)
{
    return p->seen_empty[0] && p->seen_empty[1];
}

/* Releases pipes that no thread uses any more, and directs new users to the empty side.
 * Under the lock. */
static void drop_unused(struct peer *peer)
{
    const bool empty[2] = { !atomic_load(&peer->users[0]), !atomic_load(&peer->users[1]) };
    struct pipe *kept = NULL, *next;

    for (struct pipe *p = atomic_load(&peer->old); p; p = next) {
        next = p->next_old;
        for (int side = 0; side < 2; side++)
            if (empty[side])
                p->seen_empty[side] = true;
        if (is_unused(p)) {
            pipe_unref(p);
        } else {
            p->next_old = kept;
            kept = p;
        }
    }
    if (kept && (empty[0] || empty[1]))
        atomic_store(&peer->side, empty[0] ? 0 : 1);
    atomic_store(&peer->old, kept);
}

void peer_drop_old(struct peer *peer)
{
    pthread_mutex_lock(&peer->lock);
    drop_unused(peer);
    pthread_mutex_unlock(&peer->lock);
}

/* Under the lock. */
static void take_out(struct peer *peer)
{
    struct pipe *p = atomic_load(&peer->out);

    atomic_store(&peer->out, NULL);
    p->next_old = atomic_load(&peer->old);
    /* Set before the users are counted: a user that leaves meanwhile sees it. */
    atomic_store(&peer->old, p);
    drop_unused(peer);
}

void peer_forget(struct peer *peer, struct pipe *p)
{
    pthread_mutex_lock(&peer->lock);
    if (atomic_load(&peer->out) == p)
        take_out(peer);
    pthread_mutex_unlock(&peer->lock);
}

/* Returns true if the pipe was never established: a caller that saw it fail may retry
 * before the loop thread has removed it. (The core must first hear of the loss of an
 * established pipe.) */
static bool came_to_nothing(struct pipe *p)
{
    return pipe_state(p) == PIPE_BROKEN && !p->was_established;
}

struct pipe *peer_connect(struct endpoint *ep, struct peer *peer)
{
    struct pipe *p;

    pthread_mutex_lock(&peer->lock);
    p = atomic_load(&peer->out);
    if (p && came_to_nothing(p)) {
        take_out(peer);
        p = NULL;
    }
    if (!p && !atomic_load(&peer->left)) {
        p = pipe_connect(ep, peer);
        atomic_store(&peer->out, p);
    }
    pthread_mutex_unlock(&peer->lock);
    return p;
}

void peer_retire(struct peer *peer, const char *why)
{
    struct pipe *p;
    unsigned side;

    atomic_store(&peer->left, true);
    side = peer_enter(peer);
    p = peer_out(peer);
    if (p)
        pipe_failf(p, TENREC_EPEER_LOST, 0, "%s", why);
    peer_leave(peer, side);
}
