/* SPDX-License-Identifier: Apache-2.0 */
/* gather_set.h - the sets of workers that gather, and the record of each: the number of our next
 * gather, and the failed ones. The lock of the gathers is held. */
#ifndef TENREC_GATHER_GATHER_SET_H
#define TENREC_GATHER_GATHER_SET_H

#include "core/base/hash.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <tenrec/agent.h>
#include <tenrec/error.h>
#include <tenrec/types.h>
#include <tenrec/value.h>

struct gathers;
struct tenrec_future;
struct tenrec_worker;
struct peers;

/* ---- participants.c: the workers of a gather ----------------------------------- */

/* XXH3 of a set, which all its members know it by. */
struct set_hash {
    char digits[33]; /* hex */
};

static inline bool set_hash_equals(const struct set_hash *a, const struct set_hash *b)
{
    return strcmp(a->digits, b->digits) == 0;
}

/* Shared, and never changed once it is made. */
struct participants {
    _Atomic size_t shares;
    uint64_t changes; /* of the peers, when it was made: later the names may mean others */
    bool whole;       /* all members */
    tenrec_peer *id;  /* owns; of the whole group by id, else by name: the tree's numbers */
    size_t n;
    size_t me; /* the number of this worker */
    struct set_hash hash;
    char *text; /* owns: the set in a message */
};

/* The workers that a program names; the whole group if names is NULL. The set must include this
 * worker. *ret is NULL after a failure. errors: EINVAL, EPEER_UNKNOWN, ENOMEM */
tenrec_status participants_of_names(const struct peers *p, const char *const *names, size_t n,
                                    struct participants **ret, tenrec_error *err);

/* The set whose names another worker has sent. errors: as above, EGROUP */
tenrec_status participants_of_lines(const struct peers *p, const char *lines,
                                    struct participants **ret, tenrec_error *err);

/* Reads the hash of a set from its text in a message. Returns false if that is the whole of a
 * static group, or malformed. */
bool participants_hash(const char *text, struct set_hash *ret);
/* Returns true if the text is a hash, and false if it has the names. */
bool participants_are_hashed(const char *text);

bool participants_has(const struct participants *s, tenrec_peer id);

struct participants *participants_share(struct participants *s);
void participants_drop(struct participants *s); /* NULL is allowed */

/* ---- gather_set.c: the record of a set ------------------------------------------ */

/* This many failed gathers are distinguished from gathers in progress. */
#define GATHER_SET_FAILED 64
#define GATHER_SET_WHOLE 64

struct gather_set {
    struct participants *who; /* owns a share */
    int64_t next;             /* number of our next gather */

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

    UT_hash_handle hh; /* by who->hash */
};

/* Finds or makes the record of a set. Returns NULL if out of memory. */
struct gather_set *gather_set_get(struct gather_set **all, struct participants *who);
struct gather_set *gather_set_find(struct gather_set *all, const struct set_hash *hash);
void gather_sets_drop(struct gather_set **all);

/* Forgets the sets with a worker that has left. */
void gather_sets_forget(struct gather_set **all, tenrec_peer id);

/* All workers have joined the gather. */
void gather_set_add_whole(struct gather_set *s, int64_t number);
bool gather_set_was_whole(const struct gather_set *s, int64_t number);

void gather_set_fail(struct gather_set *s, int64_t number, const tenrec_error *why);
/* For a gather that is not open. Returns TENREC_OK unless it has failed; else the error of its
 * members, which is ETIMEDOUT if the reason is forgotten. */
tenrec_status gather_set_verdict(const struct gather_set *s, int64_t number, tenrec_error *err);

/* ---- gather_tree.c: the tree of a set ------------------------------------------- */

/* A member has at most so many children. */
#define GATHER_DEGREE 32

/* The members of a set are numbered from 0, in the order of participants.id: member 0 is the root,
 * and the children of member i are the members i * degree + 1 to i * degree + degree. */
struct gather_tree {
    size_t n, degree;
};

size_t gather_tree_parent(const struct gather_tree *t, size_t i); /* i > 0 */
/* Returns how many children there are; *ret_first: the first. */
size_t gather_tree_children(const struct gather_tree *t, size_t i, size_t *ret_first);
/* How many members there are in the tree below and with member i; how many levels. */
size_t gather_tree_size(const struct gather_tree *t, size_t i);
unsigned gather_tree_height(const struct gather_tree *t, size_t i);

/* ---- gather_lead.c: gathers in which this worker has children, or is alone ------ */

/* A worker that has joined, with all below it in the tree. */
struct gather_part {
    bool joined;
    tenrec_peer id;
    struct tenrec_value *value;   /* owns; a list, first its own, then those of the parts below it,
                                     in the tree's order; nil for a list of nil */
    struct tenrec_future *future; /* shared; of the leader's own part */
    int64_t msg_id;               /* of a follower's */
    struct tenrec_route route;
};

/* A worker joins the gather `number` of the set, and waits until `limit`. With the last worker the
 * gather is completed, or passed on to our parent. Takes *part on success.
 *
 * errors: EINVAL (not in the set, or another number of values), EPROTOCOL (not our child), EEXIST
 * (joined before), EAGAIN, ENOMEM, and the error of a failed gather */
tenrec_status gather_join(struct tenrec_worker *w, struct participants *s, int64_t number,
                          uint64_t limit, const struct gather_part *part, tenrec_error *err);

/* The member `id`, or one below it, cannot join the gather `number` of the set: fails it for all
 * that have joined or will, with that reason. */
void gather_refuse(struct tenrec_worker *w, struct participants *s, int64_t number, tenrec_peer id,
                   const tenrec_error *why);

struct gather {
    struct gather *next;
    int64_t number;
    uint64_t deadline_ns;     /* the first limit of the arrived members */
    uint64_t contact_ns;      /* time of the next contact with the missing */
    bool contacted;           /* the next one is with all of them */
    struct participants *who; /* owns a share; the set */
    struct gather_tree tree;
    tenrec_peer parent;        /* -1 for the root */
    size_t n, arrived;         /* parts */
    struct gather_part part[]; /* n; first ours, then our children's */
};

/* Removes a failing gather from the open ones, and remembers why for late members. Lock held. */
void gather_lead_remove_failed(struct gathers *gs, struct gather *g, const tenrec_error *why);

/* ---- gather_limit.c ------------------------------------------------------------- */

/* A waiting leader contacts the missing members, so that a member that died unnoticed is named
 * before the limit: soon those whose connection broke, the others after a second, since each is
 * about to connect itself. */
enum { GATHER_CONTACT_LOST_MS = 20, GATHER_CONTACT_MS = 1000 };

/* ---- gather_end.c --------------------------------------------------------------- */

void gather_drop(struct gather *g);

/* The number of a part in the tree. */
size_t gather_number_of(const struct gather *g, size_t part);

/* Both take a gather that was removed. Fails it, also for those above and below us in the tree. */
void gather_end_fail(struct tenrec_worker *w, struct gather *g, const tenrec_error *why);
/* The root has the values of all. */
void gather_end_complete(struct tenrec_worker *w, struct gather *g);

/* Fails the gather for one part. */
void gather_part_fail(struct tenrec_worker *w, struct gather_part *p, const tenrec_error *why);
/* Gives all parts the result, which is encoded once. */
void gather_parts_complete(struct tenrec_worker *w, struct gather *g,
                           const struct tenrec_value *result);

/* The values of all parts, as one list; nil if all are. *ret_item: owns, free() it; the list
 * borrows it and the values of the parts. errors: ENOMEM */
tenrec_status gather_list(const struct gather *g, struct tenrec_value **ret_item,
                          struct tenrec_value *ret, tenrec_error *err);

/* ---- gather_rise.c -------------------------------------------------------------- */

/* A request to our parent. */
struct gather_rise {
    const struct participants *who;
    int64_t number, ms;
    uint64_t deadline_ns; /* of our wait for the answer */
    tenrec_peer parent;
    const struct tenrec_value *value; /* a list, as in gather_part */
    const tenrec_error *why;          /* we, or one below us, cannot join; NULL: we do */
    struct tenrec_future *result;     /* as in call_spec */
};
tenrec_status gather_rise_send(struct tenrec_worker *w, const struct gather_rise *r,
                               struct tenrec_future **ret, tenrec_error *err);

/* All parts have joined: sends them to our parent, and its answer to them. Takes `g`. */
void gather_rise_whole(struct tenrec_worker *w, struct gather *g);
/* Tells our parent that the gather has failed here. */
void gather_rise_failed(struct tenrec_worker *w, const struct participants *who, int64_t number,
                        tenrec_peer parent, const tenrec_error *why);

/* ---- gather_find.c: the set of a program, or of a message ----------------------- */

/* names: NULL for the whole group. errors: as of participants_of_names */
tenrec_status gather_find_set(struct tenrec_worker *w, const char *const *names, size_t n,
                              struct participants **ret, tenrec_error *err);

/* errors: as of participants_of_lines; EGROUP if it is known by its hash only, and is neither our
 * group of now nor the set of one of our gathers */
tenrec_status gather_find_text(struct tenrec_worker *w, const char *text, struct participants **ret,
                               tenrec_error *err);

#endif
