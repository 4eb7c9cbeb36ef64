/* SPDX-License-Identifier: Apache-2.0 */
/* gather_set.h - the record of each set of workers that gathers: the number of our next gather, and
 * the failed ones. The lock of the gathers is held. */
#ifndef TENREC_MEMBER_GATHER_SET_H
#define TENREC_MEMBER_GATHER_SET_H

#include "core/base/hash.h"

#include <stdbool.h>
#include <stdint.h>
#include <tenrec/error.h>

/* This many failed gathers are distinguished from gathers in progress. */
#define GATHER_SET_FAILED 64
#define GATHER_SET_WHOLE 64

struct gather_set {
    int64_t next; /* number of our next gather */

    /* As leader: all gathers up to `failed_upto` are over; of the later ones, these have failed. */
    int64_t failed_upto;
    struct gather_failed {
        int64_t number;
        tenrec_error *why; /* owns; NULL: no memory */
    } failed[GATHER_SET_FAILED];
    uint64_t n_failed; /* a ring once full */

    /* As leader, a ring of the latest completed gathers: a message for them is a duplicate. */
    int64_t whole[GATHER_SET_WHOLE];
    uint64_t n_whole;

    UT_hash_handle hh;
    char key[]; /* the names */
};

/* Finds or makes the set. Returns NULL if out of memory. */
struct gather_set *gather_set_get(struct gather_set **all, const char *key);
void gather_sets_drop(struct gather_set **all);

/* Forgets the sets that include this incarnation of a worker. */
void gather_sets_forget(struct gather_set **all, const char *name, uint64_t incarnation);

/* All workers have joined the gather. */
void gather_set_add_whole(struct gather_set *s, int64_t number);
bool gather_set_was_whole(const struct gather_set *s, int64_t number);

void gather_set_fail(struct gather_set *s, int64_t number, const tenrec_error *why);
/* For a gather that is not open. Returns TENREC_OK unless it has failed; else the error of its
 * members, which is ETIMEDOUT if the reason is forgotten. */
tenrec_status gather_set_verdict(const struct gather_set *s, int64_t number, tenrec_error *err);

#endif
