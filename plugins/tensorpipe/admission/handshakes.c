/* SPDX-License-Identifier: Apache-2.0 */
#include "admission/handshakes.h"

#include <stdatomic.h>

/* Of a source, at all agents of the process: tenrec_account.own. */
struct counts {
    atomic_uint handshakes; /* under way */
    atomic_uint opening;    /* of these pipes, whose further connections arrive next */
    atomic_uint members;    /* of them pipes of members */
};

_Static_assert(sizeof(struct counts) <= sizeof(struct tenrec_account), "the counts have room");

void handshakes_init(struct handshakes *all, const struct tenrec_budget *budget)
{
    *all = (struct handshakes){ .budget = budget, .last = &all->first };
}

static struct counts *source_counts(struct tenrec_account *source)
{
    return (struct counts *)(void *)source->own;
}

static void source_count(const struct handshake *h, int by)
{
    struct counts *counts;

    if (!h->source)
        return;
    counts = source_counts(h->source);
    atomic_fetch_add(&counts->handshakes, (unsigned)by);
    if (h->kind != HANDSHAKE_CONN)
        atomic_fetch_add(&counts->opening, (unsigned)by);
    if (h->kind == HANDSHAKE_MEMBER)
        atomic_fetch_add(&counts->members, (unsigned)by);
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
    return h->source && atomic_load(&source_counts(h->source)->opening) > 0;
}

static bool handshake_goes_last(const struct handshake *h)
{
    return h->kind == HANDSHAKE_MEMBER || h->local ||
           (h->kind == HANDSHAKE_CONN && h->source &&
            atomic_load(&source_counts(h->source)->members) > 0);
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
    all->budget->close(h->source);
    h->source = NULL;
}

/* `source` NULL: of all. Returns NULL when there is none. */
static struct handshake *handshakes_oldest(const struct handshakes *all,
                                           const struct tenrec_account *source)
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

static bool handshakes_evict(struct handshakes *all, const struct tenrec_account *source,
                             const char *why)
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

void handshakes_add(struct handshakes *all, struct handshake *h, struct tenrec_account *source)
{
    if (source && atomic_load(&source_counts(source)->handshakes) >= HANDSHAKES_OF_SOURCE)
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
