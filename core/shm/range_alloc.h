/* SPDX-License-Identifier: Apache-2.0 */
/* range_alloc.h - which parts of something long are in use.
 *
 * First fit, lowest offset first, so that what is in use stays together. Giving
 * back never needs memory and never fails. Not locked. */
#ifndef TENREC_SHM_RANGE_ALLOC_H
#define TENREC_SHM_RANGE_ALLOC_H

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

/* Zeroed and `length` set is empty. */
void range_alloc_finish(struct range_alloc *e);

/* Finds room for `len` (> 0) and notes who has it. False: there is none, or no
 * memory to note it. */
bool range_alloc_take(struct range_alloc *e, size_t len, void *owner, size_t *ret_at);

/* What begins at `at` is free again. */
void range_alloc_give(struct range_alloc *e, size_t at);

/* Who has all of [at, at + len); NULL: nobody. */
void *range_alloc_owner(const struct range_alloc *e, size_t at, size_t len);

/* The free part at or behind *at: sets where it begins and returns its length;
 * 0: there is none. */
size_t range_alloc_gap(const struct range_alloc *e, size_t *at);

#endif
