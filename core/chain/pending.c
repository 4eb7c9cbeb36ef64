/* SPDX-License-Identifier: Apache-2.0 */
/* pending.c - a table without a lock.
 *
 * A slot belongs to the thread that has popped it from the list of free slots, until the thread
 * stores the call's id there. From then on it belongs to the one thread that replaces the id,
 * which pushes it back. `head` is the top of the list and the number of pops so far: the
 * former value of `head` is the id of the call, so no two calls have the same id (before 2^43
 * calls), and a thread that was interrupted while it popped cannot mistake a slot that was popped
 * and pushed meanwhile for the former top. */
#include "core/chain/pending.h"

#include "core/base/clock.h"
#include "core/base/memory.h"

#include <stdlib.h>
#include <tenrec/future.h>

/* Each chunk has twice the slots of the chunk before: slots never move, and few allocations make a
 * million. */
enum { FIRST_CHUNK = 256 };
#define INDEX_MASK (PENDING_POP - 1)

_Static_assert(((UINT64_C(1) << PENDING_CHUNKS) - 1) * FIRST_CHUNK <= INDEX_MASK, "index + 1 fits");

struct pending_slot {
    /* 0: no call. Negative: the same, while a thread reads the entry. */
    _Atomic int64_t id;
    _Atomic uint64_t deadline_ns; /* this and `to` are read by any thread */
    _Atomic tenrec_peer to;
    _Atomic uint32_t next_free; /* index + 1 */
    struct tenrec_future *future;
    struct tenrec_tensor *into;
};

/* Slots of the chunks before chunk k. */
static uint32_t slots_before(unsigned k)
{
    return (((uint32_t)1 << k) - 1) * FIRST_CHUNK;
}

/* The slot of an id or of `head`, whose lower bits are its index + 1. */
static struct pending_slot *slot_of(const struct pending *p, uint64_t id)
{
    const uint32_t i = (uint32_t)(id & INDEX_MASK) - 1;
    unsigned k;

    if (i < FIRST_CHUNK)
        return &p->chunk[0][i];
    k = 31 - (unsigned)__builtin_clz(i / FIRST_CHUNK + 1);
    return &p->chunk[k][i - slots_before(k)];
}

void pending_init(struct pending *p)
{
    *p = (struct pending){ .n_chunks = 0 };
    pthread_mutex_init(&p->growing, NULL);
}

void pending_finish(struct pending *p)
{
    for (unsigned k = 0; k < p->n_chunks; k++)
        free(p->chunk[k]);
    pthread_mutex_destroy(&p->growing);
}

/* Pushes the slots from that with `first` as index + 1 to `last`, which are linked. */
static void pending_push(struct pending *p, uint64_t first, struct pending_slot *last)
{
    uint64_t head = atomic_load_explicit(&p->head, memory_order_relaxed), with;

    do {
        atomic_store_explicit(&last->next_free, (uint32_t)(head & INDEX_MASK),
                              memory_order_relaxed);
        with = (head & ~INDEX_MASK) | first;
    } while (!atomic_compare_exchange_weak_explicit(&p->head, &head, with, memory_order_release,
                                                    memory_order_relaxed));
}

/* Adds a chunk of free slots, unless another thread was first. */
static tenrec_status pending_grow(struct pending *p)
{
    const unsigned k = p->n_chunks;
    const uint32_t n = (uint32_t)FIRST_CHUNK << k, first = slots_before(k);
    struct pending_slot *slots;

    if (atomic_load(&p->head) & INDEX_MASK)
        return TENREC_OK;
    if (k == PENDING_CHUNKS)
        return TENREC_EAGAIN;
    slots = memory_new(n, sizeof *slots);
    if (!slots)
        return TENREC_ENOMEM;
    for (uint32_t i = 0; i + 1 < n; i++)
        atomic_init(&slots[i].next_free, first + i + 2);
    p->chunk[p->n_chunks++] = slots;
    atomic_store(&p->n_slots, first + n);
    pending_push(p, first + 1, &slots[n - 1]);
    return TENREC_OK;
}

/* Pops a slot, for the call with the id *ret_id. */
static tenrec_status pending_pop(struct pending *p, struct pending_slot **ret, int64_t *ret_id)
{
    uint64_t head = atomic_load_explicit(&p->head, memory_order_acquire), without;
    tenrec_status st;

    do {
        while (!(head & INDEX_MASK)) {
            pthread_mutex_lock(&p->growing);
            st = pending_grow(p);
            pthread_mutex_unlock(&p->growing);
            if (st != TENREC_OK)
                return st;
            head = atomic_load_explicit(&p->head, memory_order_acquire);
        }
        /* Another thread may have popped the slot and be changing it: then `head` has changed. */
        *ret = slot_of(p, head);
        without = ((head & ~INDEX_MASK) + PENDING_POP) & INT64_MAX;
        without |= atomic_load_explicit(&(*ret)->next_free, memory_order_relaxed);
    } while (!atomic_compare_exchange_weak_explicit(&p->head, &head, without, memory_order_acquire,
                                                    memory_order_acquire));
    *ret_id = (int64_t)head;
    return TENREC_OK;
}

tenrec_status pending_add(struct pending *p, const struct pending_entry *e, int64_t *ret_id)
{
    struct pending_slot *s;
    tenrec_status st = pending_pop(p, &s, ret_id);

    if (st != TENREC_OK)
        return st;
    s->future = e->future;
    s->into = e->into;
    atomic_store_explicit(&s->to, e->to, memory_order_relaxed);
    atomic_store_explicit(&s->deadline_ns, e->deadline_ns, memory_order_relaxed);
    /* Sequentially consistent, as are the loads of a sweep: a thread that adds an entry and then
     * finds the worker running is found by the sweep of a worker that stops. */
    atomic_store(&s->id, *ret_id);
    return TENREC_OK;
}

/* The slot of a live id; NULL for any other number. */
static struct pending_slot *pending_find(const struct pending *p, int64_t id)
{
    struct pending_slot *s;
    int64_t now;

    if (id <= 0 || ((uint64_t)id - 1) % PENDING_POP >= atomic_load(&p->n_slots))
        return NULL;
    s = slot_of(p, (uint64_t)id);
    now = atomic_load(&s->id);
    return now == id || now == -id ? s : NULL;
}

/* Replaces a live id: the entry belongs to this thread. Returns false if another thread has taken
 * the entry. */
static bool pending_claim(struct pending_slot *s, int64_t id, int64_t with)
{
    const struct timespec nap = { .tv_nsec = 1000 };
    int64_t now = id;

    while (!atomic_compare_exchange_weak(&s->id, &now, with)) {
        if (now != id && now != -id)
            return false;
        if (now == -id) /* for a few instructions, if its thread is not preempted */
            nanosleep(&nap, NULL);
        now = id;
    }
    return true;
}

static void pending_read(const struct pending_slot *s, struct pending_entry *ret)
{
    ret->future = s->future;
    ret->into = s->into;
    ret->deadline_ns = atomic_load_explicit(&s->deadline_ns, memory_order_relaxed);
    ret->to = atomic_load_explicit(&s->to, memory_order_relaxed);
}

static bool pending_take_entry(struct pending *p, struct pending_slot *s, int64_t id,
                               struct pending_entry *ret)
{
    if (!pending_claim(s, id, 0))
        return false;
    pending_read(s, ret);
    pending_push(p, (uint64_t)id & INDEX_MASK, s);
    return true;
}

bool pending_take(struct pending *p, int64_t id, struct pending_entry *ret)
{
    struct pending_slot *s = pending_find(p, id);

    return s && pending_take_entry(p, s, id, ret);
}

/* Ids are easily guessed, so the sender of an answer has to fit, too. If the entry is replaced
 * before its peer is read, so is the id. */
bool pending_take_from(struct pending *p, int64_t id, tenrec_peer from, struct pending_entry *ret)
{
    struct pending_slot *s = pending_find(p, id);

    return s && atomic_load_explicit(&s->to, memory_order_relaxed) == from &&
           pending_take_entry(p, s, id, ret);
}

void pending_each(struct pending *p, pending_fn *fn, void *arg)
{
    struct pending_entry e;

    for (uint32_t at = 0; at < atomic_load(&p->n_slots); at++) {
        struct pending_slot *s = slot_of(p, at + 1);
        const int64_t now = atomic_load(&s->id), id = now < 0 ? -now : now;

        if (!id || !pending_claim(s, id, -id))
            continue;
        pending_read(s, &e);
        fn(arg, id, &e);
        atomic_store(&s->id, id);
    }
}

bool pending_has(struct pending *p, int64_t id)
{
    return pending_find(p, id) != NULL;
}

bool pending_peek_from(struct pending *p, int64_t id, tenrec_peer from, struct pending_entry *ret)
{
    struct pending_slot *s = pending_find(p, id);

    if (!s || atomic_load_explicit(&s->to, memory_order_relaxed) != from ||
        !pending_claim(s, id, -id))
        return false;
    pending_read(s, ret);
    if (ret->into)
        tenrec_tensor_share(ret->into);
    atomic_store(&s->id, id);
    return true;
}

/* Takes the next entry from slot *at on, to `to` (to any peer if < 0), whose deadline has passed
 * at now_ns (any entry at CLOCK_NEVER). */
static bool pending_sweep(struct pending *p, tenrec_peer to, uint64_t now_ns, uint32_t *at,
                          struct pending_entry *ret, uint64_t *next_ns)
{
    while (*at < atomic_load(&p->n_slots)) {
        struct pending_slot *s = slot_of(p, ++*at);
        const int64_t now = atomic_load(&s->id), id = now < 0 ? -now : now;
        uint64_t deadline_ns;

        if (!id || (to >= 0 && atomic_load_explicit(&s->to, memory_order_relaxed) != to))
            continue;
        deadline_ns = atomic_load_explicit(&s->deadline_ns, memory_order_relaxed);
        if (now_ns != CLOCK_NEVER && (deadline_ns > now_ns || deadline_ns == CLOCK_NEVER)) {
            if (deadline_ns < *next_ns)
                *next_ns = deadline_ns;
        } else if (pending_take_entry(p, s, id, ret)) {
            return true;
        }
    }
    return false;
}

bool pending_take_peer(struct pending *p, tenrec_peer to, uint32_t *at, struct pending_entry *ret)
{
    uint64_t next_ns = CLOCK_NEVER;

    return pending_sweep(p, to, CLOCK_NEVER, at, ret, &next_ns);
}

bool pending_take_late(struct pending *p, uint64_t now_ns, uint32_t *at, struct pending_entry *ret,
                       uint64_t *next_ns)
{
    return pending_sweep(p, -1, now_ns, at, ret, next_ns);
}
