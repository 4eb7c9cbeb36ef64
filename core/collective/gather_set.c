/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/gather_set.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenrec/types.h>

struct gather_set *gather_set_get(struct gather_set **all, const char *key)
{
    size_t len = strlen(key);
    struct gather_set *s;

    HASH_FIND(hh, *all, key, len, s);
    if (s || !(s = memory_new(1, sizeof *s + len + 1)))
        return s;
    memcpy(s->key, key, len + 1);
    s->failed_upto = -1;
    HASH_ADD_KEYPTR(hh, *all, s->key, len, s);
    if (hash_has(s))
        return s;
    free(s);
    return NULL;
}

void gather_sets_drop(struct gather_set **all)
{
    struct gather_set *s, *next;

    HASH_ITER(hh, *all, s, next)
    {
        HASH_DEL(*all, s);
        free(s);
    }
}

void gather_sets_forget(struct gather_set **all, const char *name, uint64_t incarnation)
{
    char line[TENREC_NAME_MAX + 24];
    struct gather_set *s, *next;
    const char *at;

    snprintf(line, sizeof line, "%s#%" PRIx64 "\n", name, incarnation);
    HASH_ITER(hh, *all, s, next)
    {
        /* Not the end of a longer name. */
        for (at = strstr(s->key, line); at && at > s->key && at[-1] != '\n';)
            at = strstr(at + 1, line);
        if (!at)
            continue;
        HASH_DEL(*all, s);
        free(s);
    }
}

/* Gathers of several threads overlap, so numbers fail in any order. */
void gather_set_fail(struct gather_set *s, int64_t number, tenrec_peer lost)
{
    const uint64_t at = s->n_failed++ % GATHER_SET_FAILED;

    if (s->n_failed > GATHER_SET_FAILED && s->failed[at] > s->failed_upto)
        s->failed_upto = s->failed[at];
    s->failed[at] = number;
    s->lost[at] = lost;
}

bool gather_set_has_failed(const struct gather_set *s, int64_t number, tenrec_peer *ret_lost)
{
    *ret_lost = -1;
    for (uint64_t i = 0; i < s->n_failed && i < GATHER_SET_FAILED; i++)
        if (s->failed[i] == number) {
            *ret_lost = s->lost[i];
            return true;
        }
    return number <= s->failed_upto;
}

void gather_set_add_whole(struct gather_set *s, int64_t number)
{
    s->whole[s->n_whole++ % GATHER_SET_WHOLE] = number;
}

bool gather_set_was_whole(const struct gather_set *s, int64_t number)
{
    for (uint64_t i = 0; i < s->n_whole && i < GATHER_SET_WHOLE; i++)
        if (s->whole[i] == number)
            return true;
    return false;
}
