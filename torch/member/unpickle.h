/* SPDX-License-Identifier: Apache-2.0 */
/* unpickle.h - the machine behind unpickle: a stack, its marks, and a memo. unpickle.c has the
 * operations, unpickle_stack.c the objects that they move, unpickle_call.c the calls that they may
 * make. */
#ifndef TENREC_MEMBER_UNPICKLE_H
#define TENREC_MEMBER_UNPICKLE_H

#include "torch/member/pyobject.h"

/* A growing array of objects in the arena. */
struct unpickle_list {
    struct pyobject **item;
    uint32_t n, room;
};

struct unpickle {
    const uint8_t *start, *at, *end;
    const uint8_t *op; /* of the operation that runs; for errors */
    struct arena *arena;
    struct unpickle_list stack, memo;
    uint32_t *mark; /* heights of the stack */
    uint32_t n_marks, marks_room;
    uint32_t n_objects; /* and items */
    size_t budget;      /* of the arena's bytes */
    bool any_text;      /* a text that is no UTF-8 becomes BYTES */
    tenrec_status status;
    tenrec_error *err;
};

TENREC_PRINTF(3, 4)
void unpickle_fail(struct unpickle *u, tenrec_status code, const char *fmt, ...);

/* NULL after a failure, also an earlier one. */
struct pyobject *unpickle_new(struct unpickle *u, enum pyobject_kind kind);
/* A TEXT, with a copy of these bytes. */
struct pyobject *unpickle_text(struct unpickle *u, const void *text, size_t len);

/* Appends to the items of `o`. */
void unpickle_append(struct unpickle *u, struct pyobject *o, struct pyobject *item);

/* ---- unpickle_stack.c ---- */

void unpickle_push(struct unpickle *u, struct pyobject *o);
struct pyobject *unpickle_pop(struct unpickle *u);
struct pyobject *unpickle_top(struct unpickle *u); /* the object stays */

void unpickle_mark(struct unpickle *u);
/* Removes the topmost mark. Returns the place of the first object above it; the caller removes
 * these. */
uint32_t unpickle_unmark(struct unpickle *u);

/* Makes a tuple of the objects from `first` on / of the `n` on top, which it replaces. */
void unpickle_push_tuple(struct unpickle *u, uint32_t first);
void unpickle_push_tuple_of(struct unpickle *u, uint32_t n);

/* Moves these objects to the container below them: a LIST, or a DICT of keys and values. */
void unpickle_append_from(struct unpickle *u, uint32_t first, enum pyobject_kind kind);
void unpickle_append_top(struct unpickle *u, uint32_t n, enum pyobject_kind kind);

void unpickle_push_global(struct unpickle *u, struct pyobject *module, struct pyobject *name);

void unpickle_memo_put(struct unpickle *u, uint64_t key); /* the object on top */
void unpickle_memo_get(struct unpickle *u, uint64_t key);

/* ---- unpickle_call.c ---- */

/* What calling `callable` with the tuple `args` makes; what a class makes of them without its
 * constructor; and an object with `state` set. NULL after a failure. */
struct pyobject *unpickle_reduce(struct unpickle *u, struct pyobject *callable,
                                 struct pyobject *args);
struct pyobject *unpickle_instance(struct unpickle *u, struct pyobject *class,
                                   struct pyobject *args);
void unpickle_build(struct unpickle *u, struct pyobject *o, struct pyobject *state);

#endif
