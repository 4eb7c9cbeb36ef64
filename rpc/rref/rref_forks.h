/* SPDX-License-Identifier: Apache-2.0 */
/* rref_forks.h - two sets of forks: the live ones of a value, and the deleted ones of a context.
 * Guarded by the context's lock. */
#ifndef TENREC_RREF_RREF_FORKS_H
#define TENREC_RREF_RREF_FORKS_H

#include <stddef.h>
#include <tenrec/error.h>

#include "core/base/hash.h"
#include "rpc/value/value.h"

/* The forks of a value, and the holder of each. */
struct rref_forks {
    struct rref_forks_entry {
        struct rref_id fork;
        tenrec_peer holder;
        UT_hash_handle hh;
    } * table;
    size_t n;
};

/* Returns true also if the fork is present, with any holder; false if out of memory. */
bool rref_forks_add(struct rref_forks *f, struct rref_id fork, tenrec_peer holder);

/* Returns true if the fork was present; with `holder` >= 0 only if that worker held it. */
bool rref_forks_remove(struct rref_forks *f, struct rref_id fork, tenrec_peer holder);
size_t rref_forks_remove_of(struct rref_forks *f, tenrec_peer holder);

/* Returns the worker that holds `fork`; -1 if no worker does. */
tenrec_peer rref_forks_holder(const struct rref_forks *f, struct rref_id fork);

void rref_forks_finish(struct rref_forks *f);

/* Why a fork is in no table any more. */
enum rref_tomb_reason { RREF_TOMB_NONE, RREF_TOMB_DELETED, RREF_TOMB_LOST };

/* The last RREF_TOMBS_MAX deleted forks of any value, each with the worker that deleted it, or
 * whose connection broke. A late message of that worker finds its fork here and creates nothing; a
 * message of another worker finds nothing. A fork without memory is not remembered. */
enum { RREF_TOMBS_MAX = 8192 };

struct rref_tombs {
    struct rref_tomb *table; /* the oldest is first */
    size_t n;
};

void rref_tombs_add(struct rref_tombs *t, struct rref_id id, struct rref_id fork,
                    tenrec_peer holder, enum rref_tomb_reason why);
enum rref_tomb_reason rref_tombs_find(const struct rref_tombs *t, struct rref_id id,
                                      struct rref_id fork, tenrec_peer holder);
void rref_tombs_finish(struct rref_tombs *t);

/* Means all forks of a value, with the holder -1: the value itself was freed. */
#define RREF_ALL_FORKS ((struct rref_id){ -1, -1 })

#endif
