/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base/recycle.h"

#include "core/base/forks.h"

#include <stdlib.h>

#define DEPOT_MAX (8 * RECYCLE_BATCH)

_Thread_local struct recycle_cache recycle_cache;

static struct {
    struct spinlock lock; /* guards the list */
    struct recycle_list list;
} depot[RECYCLE_KINDS];

static void recycle_end(void)
{
    for (int kind = 0; kind < RECYCLE_KINDS; kind++)
        for (void *block; (block = recycle_pop(kind));)
            free(block);
}

/* In the child of a fork: another thread of the parent may have been changing a depot. */
static void recycle_forget(void)
{
    for (int kind = 0; kind < RECYCLE_KINDS; kind++) {
        spinlock_unlock(&depot[kind].lock);
        depot[kind].list = (struct recycle_list){ NULL, 0 };
    }
}

static struct fork_hook fork_hook = { .child = recycle_forget };

/* Before the thread keeps its first block. Returns true if it may. */
static bool recycle_begin(void)
{
    forks_follow(&fork_hook);
    return thread_end_follow(&recycle_cache.end, recycle_end);
}

/* Moves blocks until `to` has `max`, or `from` no more than `min`. */
static void recycle_move(struct recycle_list *from, unsigned min, struct recycle_list *to,
                         unsigned max)
{
    while (from->n > min && to->n < max) {
        void **block = from->first;

        from->first = *block;
        from->n--;
        *block = to->first;
        to->first = block;
        to->n++;
    }
}

void *recycle_fetch(enum recycle_kind kind)
{
    if (!RECYCLE || !recycle_begin())
        return NULL;
    spinlock_lock(&depot[kind].lock);
    recycle_move(&depot[kind].list, 0, &recycle_cache.of[kind], RECYCLE_BATCH);
    spinlock_unlock(&depot[kind].lock);
    return recycle_pop(kind);
}

bool recycle_make_room(enum recycle_kind kind)
{
    struct recycle_list *own = &recycle_cache.of[kind];

    if (!recycle_begin())
        return false;
    if (own->n < RECYCLE_MAX)
        return true;
    spinlock_lock(&depot[kind].lock);
    recycle_move(own, RECYCLE_BATCH, &depot[kind].list, DEPOT_MAX);
    spinlock_unlock(&depot[kind].lock);
    return own->n < RECYCLE_MAX;
}
