/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/gather/gather_set.h"

#include "core/base/fail.h"
#include "core/base/memory.h"

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

static void gather_set_drop(struct gather_set **all, struct gather_set *s)
{
    HASH_DEL(*all, s);
    for (size_t i = 0; i < GATHER_SET_FAILED; i++)
        free(s->failed[i].why);
    free(s);
}

void gather_sets_drop(struct gather_set **all)
{
    struct gather_set *s, *next;

    HASH_ITER(hh, *all, s, next)
    {
        gather_set_drop(all, s);
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
        gather_set_drop(all, s);
    }
}

/* Gathers of several threads overlap, so numbers fail in any order. */
void gather_set_fail(struct gather_set *s, int64_t number, const tenrec_error *why)
{
    struct gather_failed *f = &s->failed[s->n_failed++ % GATHER_SET_FAILED];

    if (s->n_failed > GATHER_SET_FAILED && f->number > s->failed_upto)
        s->failed_upto = f->number;
    free(f->why);
    f->number = number;
    if ((f->why = memory_new(1, sizeof *f->why)))
        *f->why = *why;
}

tenrec_status gather_set_verdict(const struct gather_set *s, int64_t number, tenrec_error *err)
{
    const struct gather_failed *f = NULL;

    for (uint64_t i = 0; i < s->n_failed && i < GATHER_SET_FAILED && !f; i++)
        if (s->failed[i].number == number)
            f = &s->failed[i];
    if (f && f->why)
        return fail_with(err, f->why);
    if (f || number <= s->failed_upto)
        return tenrec_fail(err, TENREC_ETIMEDOUT,
                           "this gather has failed before this worker joined it");
    return TENREC_OK;
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
