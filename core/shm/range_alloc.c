/* SPDX-License-Identifier: Apache-2.0 */
#include "shm/range_alloc.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void extents_finish(struct extents *e)
{
    free(e->used);
    *e = (struct extents){ 0 };
}

/* The first that begins behind `at`. */
static size_t behind(const struct extents *e, size_t at)
{
    size_t low = 0, high = e->n;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (e->used[middle].at > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool has_room(struct extents *e)
{
    const size_t room = e->room ? e->room * 2 : 8;
    struct extent *grown;

    if (e->n < e->room)
        return true;
    grown = memory_resize(e->used, room, sizeof *grown);
    if (!grown)
        return false;
    e->used = grown;
    e->room = room;
    return true;
}

bool extents_take(struct extents *e, size_t len, void *owner, size_t *ret_at)
{
    size_t at = 0, i;

    for (i = 0; i < e->n && e->used[i].at - at < len; i++)
        at = e->used[i].at + e->used[i].len;
    if (e->length - at < len || !has_room(e))
        return false;
    memmove(&e->used[i + 1], &e->used[i], (e->n - i) * sizeof e->used[0]);
    e->used[i] = (struct extent){ at, len, owner };
    e->n++;
    *ret_at = at;
    return true;
}

void extents_give(struct extents *e, size_t at)
{
    const size_t next = behind(e, at);

    assert(next > 0 && e->used[next - 1].at == at);
    memmove(&e->used[next - 1], &e->used[next], (e->n - next) * sizeof e->used[0]);
    e->n--;
}

void *extents_owner(const struct extents *e, size_t at, size_t len)
{
    const size_t next = behind(e, at);
    const struct extent *x = next ? &e->used[next - 1] : NULL;

    return x && at - x->at < x->len && len <= x->len - (at - x->at) ? x->owner : NULL;
}

size_t extents_gap(const struct extents *e, size_t *at)
{
    for (size_t i = 0; i < e->n; i++) {
        const struct extent *x = &e->used[i];
        if (x->at > *at)
            return x->at - *at;
        if (x->at + x->len > *at)
            *at = x->at + x->len;
    }
    return *at < e->length ? e->length - *at : 0;
}
