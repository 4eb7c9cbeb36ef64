/* SPDX-License-Identifier: Apache-2.0 */
#include "call/asks.h"

#include <stdlib.h>

static struct ask *asks_remove(struct ask **at)
{
    struct ask *a = *at;

    *at = a->next;
    a->next = NULL;
    return a;
}

struct ask *asks_add(struct asks *all, struct ask *a)
{
    const unsigned max = a->from < 0 ? ASKS_OF_STRANGERS : ASKS_OF_MEMBER;
    struct ask **at = &all->first, **oldest = NULL;
    unsigned n = 0;

    for (; *at; at = &(*at)->next) {
        if ((*at)->from != a->from)
            continue;
        oldest = n++ ? oldest : at;
    }
    a->next = NULL;
    *at = a;
    return n < max ? NULL : asks_remove(oldest);
}

struct ask *asks_take_ripe(struct asks *all, int64_t version, bool every)
{
    struct ask **at = &all->first, *list = NULL, *a;

    while (*at) {
        if (!every && (*at)->version > version) {
            at = &(*at)->next;
            continue;
        }
        a = asks_remove(at);
        a->next = list;
        list = a;
    }
    return list;
}

bool asks_have_ripe(const struct asks *all, int64_t version)
{
    for (const struct ask *a = all->first; a; a = a->next)
        if (a->version <= version)
            return true;
    return false;
}

void asks_finish(struct asks *all)
{
    while (all->first)
        free(asks_remove(&all->first));
}
