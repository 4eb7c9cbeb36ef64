/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/rref/rref_forks.h"

#include <stdlib.h>

#include "core/base/memory.h"

bool rref_forks_add(struct rref_forks *f, struct rref_id fork, tenrec_peer holder)
{
    struct rref_forks_entry *e;

    HASH_FIND(hh, f->table, &fork, sizeof fork, e);
    if (e)
        return true;
    e = memory_new(1, sizeof *e);
    if (!e)
        return false;
    e->fork = fork;
    e->holder = holder;
    HASH_ADD(hh, f->table, fork, sizeof fork, e);
    if (!hash_has(e)) {
        free(e);
        return false;
    }
    f->n++;
    return true;
}

static void forks_drop(struct rref_forks *f, struct rref_forks_entry *e)
{
    HASH_DEL(f->table, e);
    free(e);
    f->n--;
}

bool rref_forks_remove(struct rref_forks *f, struct rref_id fork, tenrec_peer holder)
{
    struct rref_forks_entry *e;

    HASH_FIND(hh, f->table, &fork, sizeof fork, e);
    if (!e || (holder >= 0 && e->holder != holder))
        return false;
    forks_drop(f, e);
    return true;
}

tenrec_peer rref_forks_holder(const struct rref_forks *f, struct rref_id fork)
{
    struct rref_forks_entry *e;

    HASH_FIND(hh, f->table, &fork, sizeof fork, e);
    return e ? e->holder : -1;
}

size_t rref_forks_remove_of(struct rref_forks *f, tenrec_peer holder)
{
    struct rref_forks_entry *e, *next;
    size_t n = 0;

    HASH_ITER(hh, f->table, e, next)
    {
        if (e->holder != holder)
            continue;
        forks_drop(f, e);
        n++;
    }
    return n;
}

void rref_forks_finish(struct rref_forks *f)
{
    struct rref_forks_entry *e, *next;

    HASH_ITER(hh, f->table, e, next)
    forks_drop(f, e);
}

/* ---- deleted forks ------------------------------------------------------------- */

struct tomb_key {
    struct rref_id id, fork;
    int64_t holder; /* 64 bits, so that the key has no padding */
};

struct rref_tomb {
    struct tomb_key key;
    enum rref_tomb_reason why;
    UT_hash_handle hh;
};

enum rref_tomb_reason rref_tombs_find(const struct rref_tombs *t, struct rref_id id,
                                      struct rref_id fork, tenrec_peer holder)
{
    const struct tomb_key key = { id, fork, holder };
    struct rref_tomb *e;

    /* The analyzer does not see that all 40 bytes of the key are set. */
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
    HASH_FIND(hh, t->table, &key, sizeof key, e);
    return e ? e->why : RREF_TOMB_NONE;
}

static void forget_oldest(struct rref_tombs *t)
{
    struct rref_tomb *e = t->table;

    HASH_DEL(t->table, e);
    free(e);
    t->n--;
}

void rref_tombs_add(struct rref_tombs *t, struct rref_id id, struct rref_id fork,
                    tenrec_peer holder, enum rref_tomb_reason why)
{
    struct rref_tomb *e;

    if (rref_tombs_find(t, id, fork, holder) || !(e = memory_new(1, sizeof *e)))
        return;
    e->why = why;
    e->key = (struct tomb_key){ id, fork, holder };
    HASH_ADD(hh, t->table, key, sizeof e->key, e);
    if (!hash_has(e)) {
        free(e);
        return;
    }
    if (++t->n > RREF_TOMBS_MAX)
        forget_oldest(t);
}

void rref_tombs_finish(struct rref_tombs *t)
{
    while (t->table)
        forget_oldest(t);
}
