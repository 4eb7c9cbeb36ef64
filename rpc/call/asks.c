/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/call/service.h"

/* It does not wait again. */
static struct ask *asks_remove(struct ask **at)
{
    struct ask *a = *at;

    *at = a->next;
    a->next = NULL;
    a->version = 0;
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

static bool ask_is_ripe(const struct ask *a, int64_t version, uint64_t now_ns)
{
    return a->version <= version || a->deadline_ns <= now_ns;
}

struct ask *asks_take_ripe(struct asks *all, int64_t version, uint64_t now_ns, bool every)
{
    struct ask **at = &all->first, *list = NULL, *a;

    while (*at) {
        if (!every && !ask_is_ripe(*at, version, now_ns)) {
            at = &(*at)->next;
            continue;
        }
        a = asks_remove(at);
        a->next = list;
        list = a;
    }
    return list;
}

bool asks_have_ripe(const struct asks *all, int64_t version, uint64_t now_ns, uint64_t *next_ns)
{
    for (const struct ask *a = all->first; a; a = a->next) {
        if (ask_is_ripe(a, version, now_ns))
            return true;
        if (a->deadline_ns < *next_ns)
            *next_ns = a->deadline_ns;
    }
    return false;
}
