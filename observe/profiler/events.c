/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/profiler/events.h"

#include "core/base/memory.h"

#include <stdlib.h>

struct events *events_new(size_t max)
{
    struct events *all = memory_new(1, sizeof *all);

    if (!all)
        return NULL;
    atomic_init(&all->refs, 1);
    atomic_init(&all->open, true);
    pthread_mutex_init(&all->lock, NULL);
    all->max = max;
    return all;
}

struct events *events_share(struct events *all)
{
    if (all)
        atomic_fetch_add_explicit(&all->refs, 1, memory_order_relaxed);
    return all;
}

void events_drop(struct events *all)
{
    while (all && atomic_fetch_sub_explicit(&all->refs, 1, memory_order_acq_rel) == 1) {
        struct events *outer = all->outer;
        for (size_t i = 0; i < all->n; i++)
            event_drop(all->event[i]);
        free(all->event);
        pthread_mutex_destroy(&all->lock);
        free(all);
        all = outer;
    }
}

static void add_one(struct events *all, const struct tenrec_event *e, const char *prefix)
{
    struct tenrec_event **more, *copy;

    pthread_mutex_lock(&all->lock);
    if (atomic_load(&all->open)) {
        more = all->n < all->max ? memory_grow(all->event, all->n, &all->room, sizeof *more) : NULL;
        if (more)
            all->event = more;
        copy = more ? event_copy(e, prefix) : NULL;
        if (copy)
            all->event[all->n++] = copy;
        else
            all->dropped++;
    }
    pthread_mutex_unlock(&all->lock);
}

void events_add(struct events *all, const struct tenrec_event *e, const char *prefix)
{
    for (; all; all = all->outer)
        if ((all->remote || !e->remote) && all->max > 0)
            add_one(all, e, prefix);
}

void events_miss(struct events *all, uint64_t n)
{
    for (; all; all = all->outer) {
        pthread_mutex_lock(&all->lock);
        if (atomic_load(&all->open))
            all->dropped += n;
        pthread_mutex_unlock(&all->lock);
    }
}

void events_close(struct events *all)
{
    pthread_mutex_lock(&all->lock);
    atomic_store(&all->open, false);
    pthread_mutex_unlock(&all->lock);
}

bool events_are_open(const struct events *all)
{
    while (all && !atomic_load(&all->open))
        all = all->outer;
    return all != NULL;
}

bool events_want_remote(const struct events *all)
{
    while (all && !(atomic_load(&all->open) && all->remote))
        all = all->outer;
    return all != NULL;
}
