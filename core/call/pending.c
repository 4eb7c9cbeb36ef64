/* SPDX-License-Identifier: Apache-2.0 */
#include "call/pending.h"

#include "base/clock.h"
#include "base/memory.h"

#include <stdlib.h>
#include <tenrec/future.h>

/* Each chunk has twice the slots of the chunk before: slots never move, and few allocations make a
 * million. */
enum { FIRST_CHUNK = 256, INDEX_BITS = 20, INDEX_MASK = (1 << INDEX_BITS) - 1 };
#define SWEEP 256 /* slots per acquisition of the lock */

struct pending_slot {
    struct pending_entry e; /* e.future NULL: free */
    uint32_t generation;    /* 31 bits: ids stay positive */
    uint32_t next_free;     /* index + 1 */
};

/* Slots of the chunks before chunk k. */
static uint32_t slots_before(unsigned k)
{
    return (((uint32_t)1 << k) - 1) * FIRST_CHUNK;
}

static struct pending_slot *slot_at(struct pending *p, uint32_t i)
{
    unsigned k;

    if (i < FIRST_CHUNK)
        return &p->chunk[0][i];
    k = 31 - (unsigned)__builtin_clz(i / FIRST_CHUNK + 1);
    return &p->chunk[k][i - slots_before(k)];
}

void pending_init(struct pending *p)
{
    *p = (struct pending){ .free_head = 0 };
}

void pending_finish(struct pending *p)
{
    for (unsigned k = 0; k < p->n_chunks; k++)
        free(p->chunk[k]);
}

/* Allocates without the lock, which is a spin lock. */
static tenrec_status pending_grow(struct pending *p, unsigned k)
{
    const uint32_t n = (uint32_t)FIRST_CHUNK << k, first = slots_before(k);
    struct pending_slot *slots;

    if (k == PENDING_CHUNKS)
        return TENREC_EAGAIN;
    slots = memory_new(n, sizeof *slots);
    if (!slots)
        return TENREC_ENOMEM;
    for (uint32_t i = 0; i + 1 < n; i++)
        slots[i].next_free = first + i + 2;
    spinlock_lock(&p->lock);
    if (p->n_chunks == k) {
        slots[n - 1].next_free = p->free_head;
        p->free_head = first + 1;
        p->chunk[p->n_chunks++] = slots;
        p->n_slots = first + n;
        slots = NULL;
    }
    spinlock_unlock(&p->lock);
    free(slots); /* another thread was first */
    return TENREC_OK;
}

tenrec_status pending_add(struct pending *p, const struct pending_entry *e, int64_t *ret_id)
{
    tenrec_status st;
    struct pending_slot *s;
    unsigned k;
    uint32_t i;

    spinlock_lock(&p->lock);
    while (!p->free_head) {
        k = p->n_chunks;
        spinlock_unlock(&p->lock);
        st = pending_grow(p, k);
        if (st != TENREC_OK)
            return st;
        spinlock_lock(&p->lock);
    }
    i = p->free_head - 1;
    s = slot_at(p, i);
    p->free_head = s->next_free;
    s->e = *e;
    *ret_id = (int64_t)((uint64_t)s->generation << INDEX_BITS | i);
    p->n++;
    atomic_store_explicit(&p->added, atomic_load_explicit(&p->added, memory_order_relaxed) + 1,
                          memory_order_release);
    spinlock_unlock(&p->lock);
    return TENREC_OK;
}

/* The slot of a live id; NULL for any other number. */
static struct pending_slot *pending_find(struct pending *p, int64_t id)
{
    uint64_t u = (uint64_t)id;
    uint32_t i = (uint32_t)(u & INDEX_MASK);
    struct pending_slot *s;

    if (i >= p->n_slots)
        return NULL;
    s = slot_at(p, i);
    return s->e.future && u >> INDEX_BITS == s->generation ? s : NULL;
}

static void pending_take_entry(struct pending *p, struct pending_slot *s, uint32_t i,
                               struct pending_entry *ret)
{
    *ret = s->e;
    s->e.future = NULL;
    s->generation = (s->generation + 1) & 0x7fffffffu;
    s->next_free = p->free_head;
    p->free_head = i + 1;
    p->n--;
}

bool pending_take(struct pending *p, int64_t id, struct pending_entry *ret)
{
    struct pending_slot *s;

    spinlock_lock(&p->lock);
    s = pending_find(p, id);
    if (s)
        pending_take_entry(p, s, (uint32_t)((uint64_t)id & INDEX_MASK), ret);
    spinlock_unlock(&p->lock);
    return s != NULL;
}

/* Ids are easily guessed, so the sender of an answer has to fit, too. */
bool pending_take_from(struct pending *p, int64_t id, tenrec_peer from, struct pending_entry *ret)
{
    struct pending_slot *s;
    bool found;

    spinlock_lock(&p->lock);
    s = pending_find(p, id);
    found = s && s->e.to == from;
    if (found)
        pending_take_entry(p, s, (uint32_t)((uint64_t)id & INDEX_MASK), ret);
    spinlock_unlock(&p->lock);
    return found;
}

bool pending_has(struct pending *p, int64_t id)
{
    bool has;

    spinlock_lock(&p->lock);
    has = pending_find(p, id) != NULL;
    spinlock_unlock(&p->lock);
    return has;
}

bool pending_peek_from(struct pending *p, int64_t id, tenrec_peer from, struct pending_entry *ret)
{
    struct pending_slot *s;
    bool found;

    spinlock_lock(&p->lock);
    s = pending_find(p, id);
    found = s && s->e.to == from;
    if (found) {
        *ret = s->e;
        if (ret->into)
            tenrec_tensor_share(ret->into);
    }
    spinlock_unlock(&p->lock);
    return found;
}

/* Criteria of a sweep. */
struct pending_wanted {
    tenrec_peer to;  /* any if < 0 */
    uint64_t now_ns; /* CLOCK_NEVER: any deadline */
};

/* Searches the slots from *at to `end`. Lock held. */
static bool pending_sweep(struct pending *p, const struct pending_wanted *w, uint32_t end,
                          uint32_t *at, struct pending_entry *ret, uint64_t *next_ns)
{
    while (p->n > 0 && *at < end) {
        const uint32_t i = (*at)++;
        struct pending_slot *s = slot_at(p, i);

        if (!s->e.future || (w->to >= 0 && s->e.to != w->to))
            continue;
        if (w->now_ns == CLOCK_NEVER ||
            (s->e.deadline_ns <= w->now_ns && s->e.deadline_ns != CLOCK_NEVER)) {
            pending_take_entry(p, s, i, ret);
            return true;
        }
        if (s->e.deadline_ns < *next_ns)
            *next_ns = s->e.deadline_ns;
    }
    return false;
}

static bool take_one(struct pending *p, const struct pending_wanted *w, uint32_t *at,
                     struct pending_entry *ret, uint64_t *next_ns)
{
    bool found = false, more = true;

    while (!found && more) {
        uint32_t end;

        spinlock_lock(&p->lock);
        end = p->n_slots;
        if (end - *at > SWEEP)
            end = *at + SWEEP;
        found = pending_sweep(p, w, end, at, ret, next_ns);
        more = p->n > 0 && *at < p->n_slots;
        spinlock_unlock(&p->lock);
    }
    return found;
}

bool pending_take_peer(struct pending *p, tenrec_peer to, uint32_t *at, struct pending_entry *ret)
{
    uint64_t next_ns = CLOCK_NEVER;

    return take_one(p, &(struct pending_wanted){ to, CLOCK_NEVER }, at, ret, &next_ns);
}

bool pending_take_late(struct pending *p, uint64_t now_ns, uint32_t *at, struct pending_entry *ret,
                       uint64_t *next_ns)
{
    return take_one(p, &(struct pending_wanted){ -1, now_ns }, at, ret, next_ns);
}
