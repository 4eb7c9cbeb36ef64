/* SPDX-License-Identifier: Apache-2.0 */
/* record_set.h - one set of the record. All functions need the record's lock. */
#ifndef TENREC_WEIGHTS_RECORD_SET_H
#define TENREC_WEIGHTS_RECORD_SET_H

#include "rpc/weights/later.h"
#include "rpc/weights/record.h"

/* What one worker has published of a version. */
struct record_part {
    struct record_part *next;
    char *worker;
    int64_t number;
    struct tenrec_value *pieces;
};

struct record_version {
    struct record_version *next; /* an older one */
    int64_t number;
    int64_t publishers;
    size_t n_parts;
    struct record_part *parts;
    bool visible;
    bool broken; /* a part was withdrawn, or its worker is lost */
};

enum holder_state { HOLDER_PUBLISHES, HOLDER_PULLS, HOLDER_HAS, HOLDER_APPLIED, HOLDER_FAILED };

/* A worker that has a version, or is getting it. */
struct record_holder {
    struct record_holder *next; /* a later holder */
    char *worker;
    int64_t life, handle, number; /* of the worker */
    int64_t version;
    enum holder_state state;
    int64_t digest;          /* of its boxes: equal ones can read from it */
    uint64_t serial;         /* in the set, from 1 on: `number` is of the worker */
    uint64_t source;         /* the serial that it reads from; 0: the publishers */
    uint64_t lease_until_ns; /* while it pulls */
    char *error;             /* of a report; may be NULL */
    bool failed;             /* a reader could not read from it */
    bool left;               /* is listed for its report alone */
};

struct record_ask;

struct record_set {
    struct record_set *next;
    char *name;
    struct record_version *versions; /* the newest first */
    struct record_holder *holders;   /* in the order in which they came */
    uint64_t n_holders;              /* so far */
    struct later *asks;              /* record_ask, that wait */
};

/* Finds the set with that name, and makes it if there is none. NULL: out of memory. */
struct record_set *record_set_get(struct record *r, const char *name);
void record_set_free(struct record_set *s);

/* The newest visible version; NULL: none. */
struct record_version *record_newest(const struct record_set *s);
struct record_version *record_version_find(const struct record_set *s, int64_t number);

/* Adds a part; the last one makes the version visible. errors: EEXIST, EINVAL, ENOMEM */
tenrec_status record_add_part(struct record_set *s, const struct record_ask *a, tenrec_error *err);
/* Removes the part of the ask's worker from a version that is not visible. */
void record_remove_part(struct record_set *s, const struct record_ask *a);
/* Removes what has this number, a holder and a part. */
void record_remove(struct record_set *s, const char *worker, int64_t number);

struct record_holder *record_holder_find(const struct record_set *s, const char *worker,
                                         int64_t number);
/* Adds a holder for the ask. NULL: out of memory. */
struct record_holder *record_holder_add(struct record_set *s, const struct record_ask *a,
                                        int64_t version, enum holder_state state);
void record_holder_remove(struct record_set *s, struct record_holder *h);
/* Removes the other holders of the same handle that have pulled. */
void record_holder_replaces(struct record_set *s, const struct record_holder *h);
/* Removes those of a former life of the worker. */
void record_forget_former(struct record_set *s, const char *worker, int64_t life);

/* A holder for `h` to read from in place of the publishers: has, or pulls, the same boxes of the
 * version, came before `h` if it pulls, and has the fewest readers. NULL: the publishers have no
 * more readers than it, or there is none; with `only` the publishers do not count. */
const struct record_holder *record_source(const struct record_set *s, const struct record_holder *h,
                                          const struct record_version *v, bool only);

/* Removes expired leases, holders that have left the group, and versions without a use. */
void record_set_sweep(struct record_set *s, struct tenrec_worker *w, uint64_t now_ns);

/* ---- record_ops.c: a request -------------------------------------------------------- */

struct record_op;

struct record_ask {
    struct later later; /* first */
    const struct record_op *op;
    const char *worker; /* borrowed from the worker's peers */
    struct record_set *set;
    int64_t life, handle, number; /* of the caller */
    int64_t version;
    uint64_t until_ns;
    /* publish */
    int64_t publishers;
    const struct tenrec_value *pieces; /* borrowed from the call */
    /* pull */
    int64_t after, digest, lease_ms, failed;
    const char *failed_worker;
    bool publisher_failed;
    /* done, report, wait */
    int64_t status, reports;
    const char *text;
};

struct record_op {
    const char *name;
    /* Reads the arguments that follow the common ones. errors: EINVAL */
    tenrec_status (*read)(struct record_ask *a, const struct tenrec_value *v, size_t n,
                          tenrec_error *err);
    /* Changes the set, once. errors: any, which is the answer */
    tenrec_status (*begin)(struct record_ask *a, tenrec_error *err);
    /* Answers the ask if it can be: returns true with its value, or with an error in later.why.
     * NULL:
     * nil at once */
    bool (*ready)(struct record_ask *a);
};

extern const struct record_op record_ops[]; /* the last has no name */

#endif
