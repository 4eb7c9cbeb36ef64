#include "agent/handshakes.h"

#include "agent/budget.h"

void handshakes_init(struct handshakes *all)
{
    *all = (struct handshakes){ .last = &all->first };
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
    if (h->source)
        atomic_fetch_sub(&h->source->handshakes, 1);
    source_put(h->source);
    h->source = NULL;
}

static void handshake_evict(struct handshakes *all, struct handshake *h, const char *why)
{
    handshakes_remove(all, h);
    h->evict(h, why);
}

bool handshakes_evict_oldest(struct handshakes *all, const char *why)
{
    if (!all->first)
        return false;
    handshake_evict(all, all->first, why);
    return true;
}

/* All of one source may be at other agents of the process. */
static void handshakes_evict_of(struct handshakes *all, const struct source *source)
{
    struct handshake *h = all->first;

    while (h && h->source != source)
        h = h->next;
    if (h)
        handshake_evict(all, h, "too many handshakes from its address are under way");
}

void handshakes_add(struct handshakes *all, struct handshake *h, struct source *source)
{
    if (source && atomic_load(&source->handshakes) >= HANDSHAKES_OF_SOURCE)
        handshakes_evict_of(all, source);
    if (all->n >= HANDSHAKES_MAX)
        handshakes_evict_oldest(all, "too many handshakes are under way");
    h->source = source;
    if (source)
        atomic_fetch_add(&source->handshakes, 1);
    h->next = NULL;
    h->prev = all->last;
    *all->last = h;
    all->last = &h->next;
    all->n++;
}
