/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ring/ring.h"

#include <string.h>

static void copy_in(struct ring_writer *w, const void *data, size_t len)
{
    size_t at = (size_t)(w->head & (w->size - 1)), n = (size_t)w->size - at;

    if (n > len)
        n = len;
    memcpy(w->data + at, data, n);
    if (len > n)
        memcpy(w->data, (const char *)data + n, len - n);
    w->head += len;
}

/* Loads the reader's cursor. Returns false, and keeps the cursor that was seen last, if the reader
 * is ahead of us or further behind than there is room. */
static bool ring_see_tail(struct ring_writer *w)
{
    const uint64_t tail = atomic_load_explicit(&w->words->tail, memory_order_acquire);

    if (w->head - tail > w->size)
        return false;
    w->tail = tail;
    return true;
}

/* Loads the writer's cursor. Returns false, and keeps the cursor that was seen last, if the writer
 * is behind us or further ahead than there is room. */
static bool ring_see_head(struct ring_reader *r)
{
    const uint64_t head = ring_head(r);

    if (head - r->released > r->size || head - r->tail > r->size)
        return false;
    r->head = head;
    return true;
}

long ring_stage(struct ring_writer *w, const void *data, size_t len)
{
    uint64_t room = w->size - (w->head - w->tail);

    if (room < len) {
        if (!ring_see_tail(w))
            return -1;
        room = w->size - (w->head - w->tail);
        if (len > room)
            len = (size_t)room;
    }
    if (len)
        copy_in(w, data, len);
    return (long)len;
}

bool ring_is_full(struct ring_writer *w)
{
    /* An impossible cursor is no reason to sleep: the next write reports it. */
    return ring_see_tail(w) && w->head - w->tail == w->size;
}

long ring_take(struct ring_reader *r, void *to, size_t len, size_t whole)
{
    size_t at = (size_t)(r->tail & (r->size - 1)), n = (size_t)r->size - at;
    uint64_t there = r->head - r->tail;

    if (there < len) {
        if (!ring_see_head(r))
            return -1;
        there = r->head - r->tail;
        if (len > there)
            len = (size_t)there;
    }
    if (!len)
        return 0;
    if (n > len)
        n = len;
    copy_part(to, r->data + at, n, whole);
    if (len > n)
        copy_part((char *)to + n, r->data, len - n, whole);
    r->tail += len;
    return (long)len;
}

void ring_sleep(_Atomic uint32_t *word, uint32_t how)
{
    atomic_fetch_or(word, how);
    atomic_thread_fence(memory_order_seq_cst);
}

void ring_awake(_Atomic uint32_t *word, uint32_t how)
{
    if (atomic_load_explicit(word, memory_order_relaxed) & how)
        atomic_fetch_and(word, ~how);
}
