/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/profiler/trace.h"

#include "core/base/memory.h"

#include <stdlib.h>

struct trace *trace_new(size_t max)
{
    struct trace *t = memory_new(1, sizeof *t);

    if (!t)
        return NULL;
    atomic_init(&t->refs, 1);
    atomic_init(&t->open, true);
    pthread_mutex_init(&t->lock, NULL);
    t->max = max;
    return t;
}

struct trace *trace_share(struct trace *t)
{
    if (t)
        atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

void trace_drop(struct trace *t)
{
    while (t && atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) == 1) {
        struct trace *outer = t->outer;
        for (size_t i = 0; i < t->n; i++)
            event_drop(t->event[i]);
        free(t->event);
        pthread_mutex_destroy(&t->lock);
        free(t);
        t = outer;
    }
}

static void add_one(struct trace *t, const struct tenrec_event *e, const char *prefix)
{
    struct tenrec_event **more, *copy;

    pthread_mutex_lock(&t->lock);
    if (atomic_load(&t->open)) {
        more = t->n < t->max ? memory_grow(t->event, t->n, &t->room, sizeof *more) : NULL;
        if (more)
            t->event = more;
        copy = more ? event_copy(e, prefix) : NULL;
        if (copy)
            t->event[t->n++] = copy;
        else
            t->dropped++;
    }
    pthread_mutex_unlock(&t->lock);
}

void trace_add(struct trace *t, const struct tenrec_event *e, const char *prefix)
{
    for (; t; t = t->outer)
        if ((t->remote || !e->remote) && t->max > 0)
            add_one(t, e, prefix);
}

void trace_miss(struct trace *t, uint64_t n)
{
    for (; t; t = t->outer) {
        pthread_mutex_lock(&t->lock);
        if (atomic_load(&t->open))
            t->dropped += n;
        pthread_mutex_unlock(&t->lock);
    }
}

void trace_close(struct trace *t)
{
    pthread_mutex_lock(&t->lock);
    atomic_store(&t->open, false);
    pthread_mutex_unlock(&t->lock);
}

bool trace_is_open(const struct trace *t)
{
    while (t && !atomic_load(&t->open))
        t = t->outer;
    return t != NULL;
}

bool trace_wants_remote(const struct trace *t)
{
    while (t && !(atomic_load(&t->open) && t->remote))
        t = t->outer;
    return t != NULL;
}
