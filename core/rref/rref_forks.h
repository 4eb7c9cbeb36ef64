/* SPDX-License-Identifier: Apache-2.0 */
/* rref_forks.h - two sets of forks: those that live, per value, and those that
 * are remembered as deleted. */
#ifndef TENREC_RREF_RREF_FORKS_H
#define TENREC_RREF_RREF_FORKS_H

#include <stddef.h>
#include <tenrec/error.h>

#include "codec/rref_id.h"

struct rref_forks_entry;
struct rref_tomb;

/* The forks of one value, and who holds each. */
struct rref_forks {
    struct rref_forks_entry *table;
    size_t n;
};

/* Returns true also if it was there already, held by any worker; false if there is no memory. */
bool rref_forks_add(struct rref_forks *f, struct rref_id fork, tenrec_peer holder);

/* True when it was there; with `holder` >= 0 only if it is that worker's. */
bool rref_forks_remove(struct rref_forks *f, struct rref_id fork, tenrec_peer holder);
size_t rref_forks_remove_of(struct rref_forks *f, tenrec_peer holder);

/* Returns the worker that holds `fork`; -1 if no worker does. */
tenrec_peer rref_forks_holder(const struct rref_forks *f, struct rref_id fork);

/* Calls fn for each. */
void rref_forks_each(const struct rref_forks *f,
                     void (*fn)(void *arg, struct rref_id fork, tenrec_peer holder), void *arg);
void rref_forks_finish(struct rref_forks *f);

/* Deleted forks of any value, each with the worker that deleted it, the last RREF_TOMBS_MAX
 * of them. A message of that worker that arrives after the deletion finds its fork here
 * and creates nothing; another worker's finds nothing. A fork for which there is no memory
 * is not remembered. */
enum { RREF_TOMBS_MAX = 8192 };

struct rref_tombs {
    struct rref_tomb *table;
    struct rref_tomb *oldest, *youngest;
    size_t n;
};

void rref_tombs_add(struct rref_tombs *t, struct rref_id id, struct rref_id fork,
                    tenrec_peer holder);
bool rref_tombs_has(const struct rref_tombs *t, struct rref_id id, struct rref_id fork,
                    tenrec_peer holder);
void rref_tombs_finish(struct rref_tombs *t);

/* Stands for all forks of a value, with -1 as their holder: the value itself is gone. */
#define RREF_ALL_FORKS ((struct rref_id){ -1, -1 })

#endif
