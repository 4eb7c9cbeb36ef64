/* SPDX-License-Identifier: Apache-2.0 */
/* record_holder.c - the workers that have, publish or pull a version of a set. */
#include "rpc/weights/record_set.h"

#include "core/base/memory.h"

#include <stdlib.h>
#include <string.h>

struct record_holder *record_holder_find(const struct record_set *s, const char *worker,
                                         int64_t number)
{
    struct record_holder *h = s->holders;

    while (h && (h->number != number || strcmp(h->worker, worker) != 0))
        h = h->next;
    return h;
}

struct record_holder *record_holder_add(struct record_set *s, const struct record_ask *a,
                                        int64_t version, enum holder_state state)
{
    struct record_holder *h = memory_new(1, sizeof *h), **at = &s->holders;

    if (!h || !(h->worker = memory_text(a->worker))) {
        free(h);
        return NULL;
    }
    h->serial = ++s->n_holders;
    h->life = a->life;
    h->handle = a->handle;
    h->number = a->number;
    h->version = version;
    h->state = state;
    h->digest = a->digest;
    while (*at)
        at = &(*at)->next;
    *at = h;
    return h;
}

void record_holder_remove(struct record_set *s, struct record_holder *h)
{
    struct record_holder **at = &s->holders;

    while (*at != h)
        at = &(*at)->next;
    *at = h->next;
    free(h->worker);
    free(h->error);
    free(h);
}

void record_holder_replaces(struct record_set *s, const struct record_holder *h)
{
    for (struct record_holder *one = s->holders, *next; one; one = next) {
        next = one->next;
        if (one != h && one->handle == h->handle && one->state >= HOLDER_HAS &&
            strcmp(one->worker, h->worker) == 0)
            record_holder_remove(s, one);
    }
}

void record_forget_former(struct record_set *s, const char *worker, int64_t life)
{
    for (struct record_holder *h = s->holders, *next; h; h = next) {
        next = h->next;
        if (h->life == life || strcmp(h->worker, worker) != 0)
            continue;
        if (h->state > HOLDER_HAS)
            h->state = HOLDER_HAS; /* its report does not count */
        record_remove(s, worker, h->number);
    }
}

static size_t holder_readers(const struct record_set *s, int64_t version, uint64_t serial,
                             const struct record_holder *but)
{
    size_t n = 0;

    for (const struct record_holder *h = s->holders; h; h = h->next)
        n += h != but && h->state == HOLDER_PULLS && h->version == version && h->source == serial;
    return n;
}

const struct record_holder *record_source(const struct record_set *s, const struct record_holder *h,
                                          const struct record_version *v, bool only)
{
    size_t fewest = only ? SIZE_MAX : holder_readers(s, v->number, 0, h), n;
    const struct record_holder *best = NULL;
    bool before = true;

    for (const struct record_holder *one = s->holders; one; one = one->next) {
        if (one == h) {
            before = false;
            continue;
        }
        if (one->failed || one->left || one->version != h->version || one->digest != h->digest ||
            one->state == HOLDER_PUBLISHES || (one->state == HOLDER_PULLS && !before))
            continue;
        n = holder_readers(s, v->number, one->serial, h);
        if (n < fewest) {
            best = one;
            fewest = n;
        }
    }
    return best;
}
