/* SPDX-License-Identifier: Apache-2.0 */
#include "admission/handshakes.h"

#include "admission/budget.h"

void handshakes_init(struct handshakes *all)
{
    *all = (struct handshakes){ .last = &all->first };
}

static void source_count(const struct handshake *h, int by)
{
    if (!h->source)
        return;
    atomic_fetch_add(&h->source->handshakes, (unsigned)by);
    if (h->kind != HANDSHAKE_CONN)
        atomic_fetch_add(&h->source->opening, (unsigned)by);
    if (h->kind == HANDSHAKE_MEMBER)
        atomic_fetch_add(&h->source->members, (unsigned)by);
}

void handshake_trust(struct handshake *h)
{
    if (!h->prev || h->kind != HANDSHAKE_PIPE)
        return;
    source_count(h, -1);
    h->kind = HANDSHAKE_MEMBER;
    source_count(h, 1);
}

bool handshake_is_awaited(const struct handshake *h)
{
    return h->source && atomic_load(&h->source->opening) > 0;
}

static bool handshake_goes_last(const struct handshake *h)
{
    return h->kind == HANDSHAKE_MEMBER || h->local ||
           (h->kind == HANDSHAKE_CONN && h->source && atomic_load(&h->source->members) > 0);
}

void handshakes_remove(struct handshakes *all, struct handshake *h)
{
    if (!h->prev)
        return;
    *h->prev = h->next;
    if (h->next)
        h->next->prev = h->prev;
    else
        all->last = h->prev;
    h->prev = NULL;
    all->n--;
    source_count(h, -1);
    source_put(h->source);
    h->source = NULL;
}

/* `source` NULL: of all. Returns NULL when there is none. */
static struct handshake *handshakes_oldest(const struct handshakes *all,
                                           const struct source *source)
{
    struct handshake *last = NULL;

    for (struct handshake *h = all->first; h; h = h->next) {
        if (source && h->source != source)
            continue;
        if (!handshake_goes_last(h))
            return h;
        if (!last)
            last = h;
    }
    return last;
}

static bool handshakes_evict(struct handshakes *all, const struct source *source, const char *why)
{
    struct handshake *h = handshakes_oldest(all, source);

    if (!h)
        return false;
    handshakes_remove(all, h);
    h->evict(h, why);
    return true;
}

bool handshakes_evict_oldest(struct handshakes *all, const char *why)
{
    return handshakes_evict(all, NULL, why);
}

void handshakes_add(struct handshakes *all, struct handshake *h, struct source *source)
{
    if (source && atomic_load(&source->handshakes) >= HANDSHAKES_OF_SOURCE)
        /* All of it may be at other agents of the process: then none is evicted. */
        handshakes_evict(all, source, "too many handshakes from its address are under way");
    if (all->n >= HANDSHAKES_MAX)
        handshakes_evict_oldest(all, "too many handshakes are under way");
    h->source = source;
    source_count(h, 1);
    h->next = NULL;
    h->prev = all->last;
    *all->last = h;
    all->last = &h->next;
    all->n++;
}
