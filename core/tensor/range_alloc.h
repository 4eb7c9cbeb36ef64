/* SPDX-License-Identifier: Apache-2.0 */
/* range_alloc.h - an allocator of parts of a range.
 *
 * First fit, lowest offset first, so that used parts stay together. Freeing needs no
 * memory and never fails. Not locked. */
#ifndef TENREC_TENSOR_RANGE_ALLOC_H
#define TENREC_TENSOR_RANGE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

struct range_extent {
    size_t at, len;
    void *owner;
};

struct range_alloc {
    size_t length;             /* of the whole */
    struct range_extent *used; /* sorted by `at`; owns */
    size_t n, room;
};

/* Empty when zeroed with `length` set. */
void range_alloc_finish(struct range_alloc *e);

/* Allocates `len` (> 0) for `owner`. Returns false without room or memory. */
bool range_alloc_take(struct range_alloc *e, size_t len, void *owner, size_t *ret_at);

/* Frees the part that begins at `at`. */
void range_alloc_give(struct range_alloc *e, size_t at);

/* The owner of all of [at, at + len); NULL: none. */
void *range_alloc_owner(const struct range_alloc *e, size_t at, size_t len);

/* Finds the free part at or behind *at: sets *at to its beginning and returns its
 * length; 0: no such part. */
size_t range_alloc_gap(const struct range_alloc *e, size_t *at);

#endif
