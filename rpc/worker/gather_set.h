/* SPDX-License-Identifier: Apache-2.0 */
/* gather_set.h - the record of each set of workers that gathers: the number of our next gather, and
 * the failed ones. The lock of the gathers is held. */
#ifndef TENREC_WORKER_GATHER_SET_H
#define TENREC_WORKER_GATHER_SET_H

#include "core/base/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenrec/agent.h>
#include <tenrec/error.h>
#include <tenrec/types.h>
#include <tenrec/value.h>

struct participants;
struct tenrec_future;
struct tenrec_worker;
struct peers;

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

/* ---- gather_lead.c: gathers that this worker leads ----------------------------- */

/* A worker that has joined. */
struct gather_part {
    tenrec_peer id;
    struct tenrec_value *value;   /* owns */
    struct tenrec_future *future; /* shared; of the leader's own part */
    int64_t msg_id;               /* of a follower's */
    struct tenrec_route route;
};

/* A worker joins the gather `number` of the set, and waits until `limit`. Completes the gather with
 * the last worker. Takes *part on success.
 *
 * errors: EINVAL (not in the set), EEXIST (joined before), EAGAIN, ENOMEM, and the error of a
 * failed gather */
tenrec_status gather_join(struct tenrec_worker *w, const struct participants *s, int64_t number,
                          uint64_t limit, const struct gather_part *part, tenrec_error *err);

/* The member `id` cannot join the gather `number` of the set `key`: fails it for all that have
 * joined, with the reason that the member has. */
void gather_refuse(struct tenrec_worker *w, const char *key, int64_t number, tenrec_peer id,
                   const tenrec_error *why);

/* ---- participants.c: the workers of a gather ----------------------------------- */

struct participants {
    tenrec_peer *id; /* owns; ordered by name: the first leads */
    size_t n;
    char *key; /* owns: the names, one a line */
};

/* The workers that a program names; the whole group if names is NULL. The set must include this
 * worker. The caller finishes *ret, also after a failure. errors: EINVAL, EPEER_UNKNOWN, ENOMEM */
tenrec_status participants_of_names(const struct peers *p, const char *const *names, size_t n,
                                    struct participants *ret, tenrec_error *err);

/* The set of a key from another worker; this worker must lead it. errors: as above, EPROTOCOL */
tenrec_status participants_of_key(const struct peers *p, const char *key, struct participants *ret,
                                  tenrec_error *err);

void participants_finish(struct participants *s); /* safe on zeroed memory */

#endif
