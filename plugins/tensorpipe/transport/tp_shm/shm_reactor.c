/* SPDX-License-Identifier: Apache-2.0 */
/* shm_reactor.c - tokens into a peer's ring, and out of ours. */
#include "transport/tp_shm/shm_reactor.h"

#include <endian.h>
#include <sched.h>

#define TRIES 100 /* before another thread is let run: it may hold the lock */
#define YIELDS 20 /* then it is left for later */
#define TOKEN_SIZE ((uint64_t)sizeof(uint32_t))

static bool shm_reactor_lock(atomic_uchar *in_use, bool patient)
{
    for (int yields = 0; yields < YIELDS; yields++) {
        for (int i = 0; i < TRIES; i++)
            if (!atomic_load_explicit(in_use, memory_order_relaxed) &&
                !atomic_exchange_explicit(in_use, 1, memory_order_acquire))
                return true;
        if (!patient)
            return false;
        sched_yield();
    }
    return false;
}

bool shm_reactor_push(const struct shm_ring *peer, uint32_t token, bool patient)
{
    struct shm_ring_header *h = peer->header;
    /* Others put tokens in too: our place is where the last one ended. */
    struct shm_ring at = *peer;
    uint64_t room;
    bool fits;

    if (!shm_reactor_lock(&h->in_use[SHM_PRODUCER], patient))
        return false;
    at.own = atomic_load_explicit(&h->marker[SHM_PRODUCER], memory_order_relaxed);
    /* Markers that cannot be are as good as no room: nothing but this token
     * depends on them. */
    fits = shm_ring_available(&at, &room) && room >= TOKEN_SIZE;
    if (fits) {
        token = htole32(token);
        shm_ring_put(&at, 0, &token, sizeof token);
        shm_ring_advance(&at, TOKEN_SIZE);
    }
    atomic_store_explicit(&h->in_use[SHM_PRODUCER], 0, memory_order_release);
    return fits;
}

void shm_reactor_empty(const struct shm_ring *own)
{
    struct shm_ring_header *h = own->header;
    uint64_t head = atomic_load_explicit(&h->marker[SHM_PRODUCER], memory_order_relaxed);

    /* Two threads at once may set it back a little: then the next thread sees
     * tokens that no thread reads anyway. */
    if (atomic_load_explicit(&h->marker[SHM_CONSUMER], memory_order_relaxed) != head)
        atomic_store_explicit(&h->marker[SHM_CONSUMER], head, memory_order_release);
}
