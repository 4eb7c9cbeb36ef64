/* SPDX-License-Identifier: Apache-2.0 */
/* peer_table.c - the members by id. Most members of a large group are never called: a member of the
 * start is looked up where the core lists it, and becomes a peer then. */
#include "pipe/peer.h"

#include <stdlib.h>

static struct peer *peer_new(struct endpoint *ep, const struct tenrec_member *m)
{
    struct peer *peer = calloc(1, sizeof *peer);

    if (!peer)
        return NULL;
    peer->id = m->id;
    peer->rank = TENREC_HAS(m, linked) ? 0 : m->id;
    peer->incarnation = m->incarnation;
    peer->token = TENREC_HAS(m, token) ? m->token : 0;
    peer->name = m->name;
    peer->address = m->address;
    peer->lock = &ep->peer_locks[(uint32_t)m->id % ENDPOINT_LOCKS];
    return peer;
}

/* With all earlier members of the id. */
static void peer_free(struct peer *peer)
{
    struct peer *before;

    for (; peer; peer = before) {
        before = peer->before;
        free(peer);
    }
}

static tenrec_status peer_check_id(tenrec_peer id, tenrec_error *err)
{
    return id >= 0 && id < ENDPOINT_PEERS
               ? TENREC_OK
               : tenrec_fail(err, TENREC_EINVAL, "member id %d: expected 0 to %d", (int)id,
                             ENDPOINT_PEERS - 1);
}

tenrec_status peer_table_start(struct endpoint *ep, const struct tenrec_member *member, uint32_t n,
                               tenrec_error *err)
{
    const struct tenrec_member *at = member;
    tenrec_peer end = 0;

    for (uint32_t i = 0; i < n; i++) {
        const tenrec_status st = peer_check_id(at->id, err);
        if (st != TENREC_OK)
            return st;
        end = at->id >= end ? at->id + 1 : end;
        at = (const void *)((const char *)at + at->size);
    }
    ep->start = member;
    ep->n_start = n;
    atomic_store(&ep->peers_end, end);
    return TENREC_OK;
}

__attribute__((noinline)) static struct peer *peer_make(struct endpoint *ep, tenrec_peer id)
{
    const struct tenrec_member *const m = tenrec_member_find(ep->start, ep->n_start, id);
    pthread_mutex_t *lock;
    struct peer *peer;

    if (!m)
        return NULL;
    lock = &ep->peer_locks[(uint32_t)id % ENDPOINT_LOCKS];
    pthread_mutex_lock(lock);
    peer = atomic_load(&ep->peers[id]);
    if (!peer) {
        peer = peer_new(ep, m);
        atomic_store(&ep->peers[id], peer);
    }
    pthread_mutex_unlock(lock);
    return peer;
}

struct peer *peer_find(struct endpoint *ep, tenrec_peer id)
{
    struct peer *peer;

    if (id < 0 || id >= ENDPOINT_PEERS)
        return NULL;
    peer = atomic_load_explicit(&ep->peers[id], memory_order_acquire);
    return unlikely(!peer) ? peer_make(ep, id) : peer;
}

bool peer_is_known(const struct endpoint *ep, tenrec_peer id)
{
    return id >= 0 && id < ENDPOINT_PEERS &&
           (atomic_load(&ep->peers[id]) || tenrec_member_find(ep->start, ep->n_start, id));
}

tenrec_status peer_table_add(struct endpoint *ep, const struct tenrec_member *m,
                             struct peer **ret_before, tenrec_error *err)
{
    tenrec_status st = peer_check_id(m->id, err);
    pthread_mutex_t *lock;
    struct peer *peer;

    if (st != TENREC_OK)
        return st;
    peer = peer_new(ep, m);
    if (!peer)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for member %d", (int)m->id);
    if (m->id >= atomic_load(&ep->peers_end))
        atomic_store(&ep->peers_end, m->id + 1);
    lock = &ep->peer_locks[(uint32_t)m->id % ENDPOINT_LOCKS];
    pthread_mutex_lock(lock);
    peer->before = atomic_load(&ep->peers[m->id]);
    atomic_store(&ep->peers[m->id], peer);
    pthread_mutex_unlock(lock);
    *ret_before = peer->before;
    return TENREC_OK;
}

void peer_table_finish(struct endpoint *ep)
{
    for (int i = 0; i < atomic_load(&ep->peers_end); i++)
        peer_free(atomic_load(&ep->peers[i]));
    free(ep->peers);
}
