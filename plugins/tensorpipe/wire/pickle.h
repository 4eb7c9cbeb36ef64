/* SPDX-License-Identifier: Apache-2.0 */
/* pickle.h - a machine for the few pickle operations of torch's tensor list.
 *
 * It has no heap and calls nothing: a stack, a place for the items of tuples,
 * and a memo, all of fixed size. What a tuple, a persistent id or a call
 * means is decided by its one user through `reduce` and `persistent`.
 */
#ifndef TENSORPIPE_PICKLE_H
#define TENSORPIPE_PICKLE_H

#include "wire/nop.h"

enum pickle_kind {
    PICKLE_NOTHING,
    PICKLE_MARK,
    PICKLE_INT,
    PICKLE_BOOL,
    PICKLE_STRING,
    PICKLE_GLOBAL,
    PICKLE_TUPLE,
    PICKLE_LIST,
    PICKLE_OBJECTS, /* a run of `count` objects that `reduce` has made */
    PICKLE_OTHER,   /* a value of the user's, distinguished by `tag` */
};

struct pickle_value {
    enum pickle_kind kind;
    int tag;               /* GLOBAL, OTHER: the user's */
    int64_t number;        /* INT, BOOL; TUPLE: its lowest item, those of nested ones included */
    uint32_t first, count; /* TUPLE: items; LIST, OBJECTS: count alone; OTHER: the user's */
    struct nop_bytes text; /* STRING; GLOBAL: its name */
};

#define PICKLE_STACK 96
#define PICKLE_ITEMS 192
#define PICKLE_MEMO 64

struct pickle;

/* What is named, called and looked up. Each fails the machine's reader, or
 * sets *ret. A tuple's items are valid during the call only. Names and strings the
 * machine keeps for later recalls itself; of the user's values it keeps none. */
struct pickle_user {
    void (*global)(struct pickle *p, struct nop_bytes module, struct nop_bytes name,
                   struct pickle_value *ret);
    void (*reduce)(struct pickle *p, const struct pickle_value *callable,
                   const struct pickle_value *args, struct pickle_value *ret);
    void (*persistent)(struct pickle *p, const struct pickle_value *id, struct pickle_value *ret);
    void (*remember)(struct pickle *p, uint32_t key, const struct pickle_value *other);
    /* Returns false if no value was remembered under `key`. */
    bool (*recall)(const struct pickle *p, uint32_t key, struct pickle_value *ret);
};

struct pickle {
    struct nop_reader r;
    const struct pickle_user *user;
    void *arg;
    uint32_t n_stack, n_items, n_memo;
    struct pickle_value stack[PICKLE_STACK];
    struct pickle_value items[PICKLE_ITEMS];
    struct {
        uint32_t key;
        struct pickle_value value;
    } memo[PICKLE_MEMO];
};

/* The i-th item of a tuple. */
static inline const struct pickle_value *pickle_item(const struct pickle *p,
                                                     const struct pickle_value *tuple, uint32_t i)
{
    return &p->items[tuple->first + i];
}

/* Runs to STOP and returns the one value that is left then. Bytes after it
 * are ignored. p->r must be at the start; the rest is set here.
 *
 * errors   EPROTOCOL, ETOOBIG, and what the user's functions raise
 */
tenrec_status pickle_run(struct pickle *p, const struct pickle_user *user, void *arg,
                         struct pickle_value *ret);

#endif
