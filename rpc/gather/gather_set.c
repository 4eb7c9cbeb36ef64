/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/gather/gather_set.h"

#include "core/base/fail.h"
#include "core/base/memory.h"

#include <stdlib.h>

struct gather_set *gather_set_find(struct gather_set *all, const struct set_hash *hash)
{
    struct gather_set *s;

    HASH_FIND(hh, all, hash, sizeof *hash, s);
    return s;
}

struct gather_set *gather_set_get(struct gather_set **all, struct participants *who)
{
    struct gather_set *s = gather_set_find(*all, &who->hash);

    if (s || !(s = memory_new(1, sizeof *s)))
        return s;
    s->who = participants_share(who);
    s->failed_upto = -1;
    HASH_ADD_KEYPTR(hh, *all, &s->who->hash, sizeof s->who->hash, s);
    if (hash_has(s))
        return s;
    participants_drop(s->who);
    free(s);
    return NULL;
}

static void gather_set_drop(struct gather_set **all, struct gather_set *s)
{
    HASH_DEL(*all, s);
    for (size_t i = 0; i < GATHER_SET_FAILED; i++)
        free(s->failed[i].why);
    participants_drop(s->who);
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

void gather_sets_forget(struct gather_set **all, tenrec_peer id)
{
    struct gather_set *s, *next;

    HASH_ITER(hh, *all, s, next)
    {
        if (participants_has(s->who, id))
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
