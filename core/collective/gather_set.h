/* SPDX-License-Identifier: Apache-2.0 */
/* gather_set.h - what is remembered of each set of workers that gathers: the
 * number of our next gather, and which have failed. Needs the lock of the
 * gathers. */
#ifndef TENREC_COLLECTIVE_GATHER_SET_H
#define TENREC_COLLECTIVE_GATHER_SET_H

#include "base/hash.h"

#include <stdbool.h>
#include <stdint.h>
#include <tenrec/types.h>

/* So many that failed are known apart from others that are still under way. */
#define GATHER_SET_FAILED 64
#define GATHER_SET_WHOLE 64

struct gather_set {
    int64_t next; /* number of our next gather */

    /* As leader. All up to `failed_upto` are over; of those that came after
     * it, these have failed. */
    int64_t failed_upto;
    int64_t failed[GATHER_SET_FAILED];
    tenrec_peer lost[GATHER_SET_FAILED]; /* whose loss it was; -1: a limit ran out */
    unsigned n_failed, oldest;           /* a ring when it is full */

    /* As leader, the last that all had come to: who comes again is a message
     * that came twice. A ring. */
    int64_t whole[GATHER_SET_WHOLE];
    unsigned n_whole;

    UT_hash_handle hh;
    char key[]; /* the names */
};

/* Finds or makes it; NULL when there is no memory. */
struct gather_set *gather_set_get(struct gather_set **all, const char *key);
void gather_sets_drop(struct gather_set **all);

/* Forgets those that this life of a worker was in. */
void gather_sets_forget(struct gather_set **all, const char *name, uint64_t incarnation);

/* All have come to it. */
void gather_set_add_whole(struct gather_set *s, int64_t number);
bool gather_set_was_whole(const struct gather_set *s, int64_t number);

void gather_set_fail(struct gather_set *s, int64_t number, tenrec_peer lost);
/* Of one that is not open; *ret_lost as it was told, -1 when that is forgotten. */
bool gather_set_has_failed(const struct gather_set *s, int64_t number, tenrec_peer *ret_lost);

#endif
