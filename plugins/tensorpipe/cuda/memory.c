/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - pieces of device memory, by device and size. */
#include "cuda/device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define BUCKETS 1024 /* of those in use, by address */
#define SIZE_MIN 512 /* the driver's own step */
#define STEP_SHIFT 3 /* eighths of a power of two: an eighth is wasted at most */
#define LOOK_MAX 16  /* pieces of a size that are examined */

struct piece {
    struct piece *next;
    uintptr_t at;
    uint64_t bytes;
    uint64_t stream;            /* on which it was used last */
    struct device_event *event; /* while it is kept: what was queued there */
};

static struct pool {
    pthread_mutex_t lock;
    struct piece *used[BUCKETS];
    struct piece *kept; /* the latest first */
    uint64_t kept_bytes;
} pools[DEVICES_MAX];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_uint_fast64_t keep_max;

static void memory_init(void)
{
    for (int i = 0; i < DEVICES_MAX; i++)
        pthread_mutex_init(&pools[i].lock, NULL);
}

static unsigned memory_bucket(uintptr_t at)
{
    return (unsigned)(at >> 9) % BUCKETS;
}

static uint64_t round_size(uint64_t bytes)
{
    uint64_t step = SIZE_MIN;

    while (bytes > step << (STEP_SHIFT + 1))
        step <<= 1;
    return (bytes + step - 1) / step * step;
}

void device_memory_keep(uint64_t bytes)
{
    uint64_t before = atomic_load(&keep_max);

    while (before < bytes && !atomic_compare_exchange_weak(&keep_max, &before, bytes))
        continue;
}

static void memory_use(struct pool *pool, struct piece *p)
{
    struct piece **to = &pool->used[memory_bucket(p->at)];

    p->next = *to;
    *to = p;
}

/* The best of the kept ones: used last on that stream, else done with, else any. */
static struct piece **find_kept(struct pool *pool, uint64_t bytes, uint64_t stream)
{
    struct piece **best = NULL;
    unsigned looked = 0;

    for (struct piece **p = &pool->kept; *p && looked < LOOK_MAX; p = &(*p)->next) {
        if ((*p)->bytes != bytes)
            continue;
        looked++;
        if ((*p)->stream == stream)
            return p;
        if (!best)
            best = p;
    }
    return best;
}

/* Frees a piece without an owner after the queued work, as cuMemFree does too. */
static void free_piece(struct piece *p)
{
    driver()->stream_sync((void *)(uintptr_t)p->stream);
    driver()->memory_drop(p->at);
    device_event_give(p->event);
    free(p);
}

void device_memory_trim(int index)
{
    struct pool *pool = &pools[index];
    struct piece *p;

    pthread_once(&once, memory_init);
    pthread_mutex_lock(&pool->lock);
    p = pool->kept;
    pool->kept = NULL;
    pool->kept_bytes = 0;
    pthread_mutex_unlock(&pool->lock);
    if (!p || device_enter(index, NULL))
        return;
    while (p) {
        struct piece *next = p->next;

        free_piece(p);
        p = next;
    }
    device_leave();
}

static tenrec_status memory_make(int index, uint64_t bytes, struct piece **ret, tenrec_error *err)
{
    struct piece *p = calloc(1, sizeof *p);
    driver_address at = 0;
    tenrec_status st;

    if (!p)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a tensor of cuda:%d", index);
    st = DRIVER(memory_new, index, err, &at, (size_t)bytes);
    if (st == TENREC_ENOMEM) {
        /* Kept blocks of other sizes may suffice. */
        device_memory_trim(index);
        st = DRIVER(memory_new, index, err, &at, (size_t)bytes);
    }
    if (st) {
        tenrec_error_prefix(err, "a tensor of %llu bytes", (unsigned long long)bytes);
        free(p);
        return st;
    }
    p->at = (uintptr_t)at;
    p->bytes = bytes;
    *ret = p;
    return TENREC_OK;
}

/* Work queued on the piece's stream precedes work queued on `s` from now on. *ret NULL: no piece of
 * that size is kept. */
static tenrec_status take_kept(struct pool *pool, const struct tenrec_stream *s, uint64_t bytes,
                               struct piece **ret, tenrec_error *err)
{
    struct piece **at, *p = NULL;
    tenrec_status st = TENREC_OK;

    pthread_mutex_lock(&pool->lock);
    at = find_kept(pool, bytes, s->stream);
    if (at) {
        p = *at;
        *at = p->next;
        pool->kept_bytes -= p->bytes;
    }
    pthread_mutex_unlock(&pool->lock);
    if (p && p->stream != s->stream)
        st = device_event_wait(s, p->event, err);
    if (st) {
        if (device_enter(s->device.index, NULL) == TENREC_OK) {
            free_piece(p);
            device_leave();
        }
        return st;
    }
    if (p) {
        device_event_give(p->event);
        p->event = NULL;
    }
    *ret = p;
    return TENREC_OK;
}

static tenrec_status memory_make_new(int index, uint64_t bytes, struct piece **ret,
                                     tenrec_error *err)
{
    tenrec_status st = device_enter(index, err);

    if (st)
        return st;
    st = memory_make(index, bytes, ret, err);
    device_leave();
    return st;
}

tenrec_status device_memory_new(const struct tenrec_stream *s, uint64_t bytes, void **ret,
                                tenrec_error *err)
{
    const int index = s->device.index;
    struct piece *p = NULL;
    struct pool *pool;
    tenrec_status st = device_check(index, err);

    if (st)
        return st;
    pthread_once(&once, memory_init);
    pool = &pools[index];
    bytes = round_size(bytes);
    st = take_kept(pool, s, bytes, &p, err);
    if (!st && !p)
        st = memory_make_new(index, bytes, &p, err);
    if (!st) {
        p->stream = s->stream;
        *ret = (void *)p->at;
        pthread_mutex_lock(&pool->lock);
        memory_use(pool, p);
        pthread_mutex_unlock(&pool->lock);
    }
    return st;
}

static struct piece *take_used(struct pool *pool, uintptr_t at)
{
    struct piece **p = &pool->used[memory_bucket(at)], *found;

    pthread_mutex_lock(&pool->lock);
    while (*p && (*p)->at != at)
        p = &(*p)->next;
    found = *p;
    if (found)
        *p = found->next;
    pthread_mutex_unlock(&pool->lock);
    return found;
}

/* Returns false if there is no room, or no event to be had. */
static bool memory_keep(struct pool *pool, const struct tenrec_stream *s, struct piece *p)
{
    bool room;

    if (p->bytes > atomic_load(&keep_max) || device_event_mark(s, false, &p->event, NULL))
        return false;
    pthread_mutex_lock(&pool->lock);
    room = pool->kept_bytes + p->bytes <= atomic_load(&keep_max);
    if (room) {
        p->next = pool->kept;
        pool->kept = p;
        pool->kept_bytes += p->bytes;
    }
    pthread_mutex_unlock(&pool->lock);
    return room;
}

void device_memory_drop(const struct tenrec_stream *s, void *data)
{
    const int index = s->device.index;
    struct piece *p;

    pthread_once(&once, memory_init);
    p = take_used(&pools[index], (uintptr_t)data);
    if (!p || device_enter(index, NULL))
        return;
    p->stream = s->stream;
    if (!devices_held() || !memory_keep(&pools[index], s, p))
        free_piece(p);
    device_leave();
}
