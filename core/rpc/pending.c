#include "rpc/pending.h"

#include "base/clock.h"
#include "base/memory.h"

#include <stdlib.h>
#include <tenrec/future.h>

enum { CHUNK = 256, INDEX_BITS = 20, SLOTS_MAX = 1 << INDEX_BITS };

struct pending_slot {
    struct pending_entry e; /* e.future NULL: free */
    uint32_t generation;    /* 31 bits: ids stay positive */
    uint32_t next_free;     /* index + 1 */
};

void pending_init(struct pending *p)
{
    *p = (struct pending){ .free_head = 0 };
    pthread_mutex_init(&p->lock, NULL);
}

void pending_finish(struct pending *p)
{
    for (size_t i = 0; i < p->n_chunks; i++)
        free(p->chunk[i]);
    free(p->chunk);
    pthread_mutex_destroy(&p->lock);
}

static struct pending_slot *slot_at(struct pending *p, uint32_t i)
{
    return &p->chunk[i / CHUNK][i % CHUNK];
}

static tenrec_status grow(struct pending *p)
{
    struct pending_slot **chunk, *slots;
    uint32_t first = (uint32_t)p->n_chunks * CHUNK;

    if (first >= SLOTS_MAX)
        return TENREC_EAGAIN;
    chunk = memory_resize(p->chunk, p->n_chunks + 1, sizeof(struct pending_slot *));
    if (!chunk)
        return TENREC_ENOMEM;
    p->chunk = chunk;
    slots = memory_new(CHUNK, sizeof *slots);
    if (!slots)
        return TENREC_ENOMEM;
    p->chunk[p->n_chunks++] = slots;
    for (uint32_t i = CHUNK; i > 0; i--) {
        slots[i - 1].next_free = p->free_head;
        p->free_head = first + i;
    }
    return TENREC_OK;
}

tenrec_status pending_add(struct pending *p, const struct pending_entry *e, int64_t *ret_id)
{
    tenrec_status st = TENREC_OK;
    struct pending_slot *s;
    uint32_t i;

    pthread_mutex_lock(&p->lock);
    if (!p->free_head)
        st = grow(p);
    if (st == TENREC_OK) {
        i = p->free_head - 1;
        s = slot_at(p, i);
        p->free_head = s->next_free;
        s->e = *e;
        *ret_id = (int64_t)((uint64_t)s->generation << INDEX_BITS | i);
        p->n++;
        atomic_store_explicit(&p->added, atomic_load_explicit(&p->added, memory_order_relaxed) + 1,
                              memory_order_release);
    }
    pthread_mutex_unlock(&p->lock);
    return st;
}

/* The slot of a live id; NULL for any other number. */
static struct pending_slot *find(struct pending *p, int64_t id)
{
    uint64_t u = (uint64_t)id;
    uint32_t i = (uint32_t)(u & (SLOTS_MAX - 1));
    struct pending_slot *s;

    if (i >= p->n_chunks * CHUNK)
        return NULL;
    s = slot_at(p, i);
    return s->e.future && u >> INDEX_BITS == s->generation ? s : NULL;
}

static void take(struct pending *p, struct pending_slot *s, uint32_t i, struct pending_entry *ret)
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

    pthread_mutex_lock(&p->lock);
    s = find(p, id);
    if (s)
        take(p, s, (uint32_t)((uint64_t)id & (SLOTS_MAX - 1)), ret);
    pthread_mutex_unlock(&p->lock);
    return s != NULL;
}

bool pending_peek(struct pending *p, int64_t id, struct pending_entry *ret)
{
    struct pending_slot *s;

    pthread_mutex_lock(&p->lock);
    s = find(p, id);
    if (s) {
        *ret = s->e;
        if (ret->into)
            tenrec_tensor_share(ret->into);
    }
    pthread_mutex_unlock(&p->lock);
    return s != NULL;
}

bool pending_take_peer(struct pending *p, tenrec_peer to, uint32_t *at, struct pending_entry *ret)
{
    bool found = false;

    pthread_mutex_lock(&p->lock);
    for (; p->n > 0 && *at < p->n_chunks * CHUNK && !found; ++*at) {
        struct pending_slot *s = slot_at(p, *at);
        if (s->e.future && (to < 0 || s->e.to == to)) {
            take(p, s, *at, ret);
            found = true;
        }
    }
    pthread_mutex_unlock(&p->lock);
    return found;
}

bool pending_take_late(struct pending *p, uint64_t now_ns, uint32_t *at, struct pending_entry *ret,
                       uint64_t *next_ns)
{
    bool found = false;

    pthread_mutex_lock(&p->lock);
    for (; p->n > 0 && *at < p->n_chunks * CHUNK && !found; ++*at) {
        struct pending_slot *s = slot_at(p, *at);
        if (!s->e.future)
            continue;
        if (s->e.deadline_ns <= now_ns && s->e.deadline_ns != CLOCK_NEVER) {
            take(p, s, *at, ret);
            found = true;
        } else if (s->e.deadline_ns < *next_ns) {
            *next_ns = s->e.deadline_ns;
        }
    }
    pthread_mutex_unlock(&p->lock);
    return found;
}

size_t pending_count(struct pending *p)
{
    size_t n;

    pthread_mutex_lock(&p->lock);
    n = p->n;
    pthread_mutex_unlock(&p->lock);
    return n;
}
