/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tensor/range_alloc.h"

#include "core/base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void range_alloc_finish(struct range_alloc *e)
{
    free(e->used);
    *e = (struct range_alloc){ 0 };
}

/* The index of the first extent that begins behind `at`. */
static size_t range_alloc_behind(const struct range_alloc *e, size_t at)
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

bool range_alloc_take(struct range_alloc *e, size_t len, void *owner, size_t *ret_at)
{
    struct range_extent *grown;
    size_t at = 0, i;

    for (i = 0; i < e->n && e->used[i].at - at < len; i++)
        at = e->used[i].at + e->used[i].len;
    if (e->length - at < len || !(grown = memory_grow(e->used, e->n, &e->room, sizeof *grown)))
        return false;
    e->used = grown;
    memmove(&e->used[i + 1], &e->used[i], (e->n - i) * sizeof e->used[0]);
    e->used[i] = (struct range_extent){ at, len, owner };
    e->n++;
    *ret_at = at;
    return true;
}

void range_alloc_give(struct range_alloc *e, size_t at)
{
    const size_t next = range_alloc_behind(e, at);

    assert(next > 0 && e->used[next - 1].at == at);
    memmove(&e->used[next - 1], &e->used[next], (e->n - next) * sizeof e->used[0]);
    e->n--;
}

void *range_alloc_owner(const struct range_alloc *e, size_t at, size_t len)
{
    const size_t next = range_alloc_behind(e, at);
    const struct range_extent *x = next ? &e->used[next - 1] : NULL;

    return x && at - x->at < x->len && len <= x->len - (at - x->at) ? x->owner : NULL;
}

size_t range_alloc_gap(const struct range_alloc *e, size_t *at)
{
    for (size_t i = 0; i < e->n; i++) {
        const struct range_extent *x = &e->used[i];
        if (x->at > *at)
            return x->at - *at;
        if (x->at + x->len > *at)
            *at = x->at + x->len;
    }
    return *at < e->length ? e->length - *at : 0;
}
