/* SPDX-License-Identifier: Apache-2.0 */
/* generation.h - the part of the store that belongs to one life of a group, in which the
 * n-th starts of all ranks meet. */
#ifndef TENREC_MEMBERSHIP_GENERATION_H
#define TENREC_MEMBERSHIP_GENERATION_H

#include "group/membership/group_directory.h"
#include "group/store/store.h"

enum generation_end {
    GENERATION_GIVEN_UP, /* no member saw this rank: the next attempt is in the same life */
    GENERATION_LEFT,     /* the next start is the next life */
};

struct generation {
    struct tenrec_store *whole; /* borrowed: the store that both are views of */
    struct tenrec_store *base;  /* owns; view of the group */
    struct tenrec_store *store; /* owns; view of this life of the group */
    int32_t rank, world;
    int64_t incarnation; /* counts from 1 */
    uint64_t token;      /* as in member_record.h; 0 of a visitor */
    const char *backend; /* likewise; borrowed, set by the user. NULL: not compared */
    enum generation_end end;
    bool over;   /* left already, alone or with all */
    bool copies; /* reads what another worker of this host has read of the store */
    char group[128], run[128];
    char hint[192]; /* a possible cause, for an error; or "" */
};

/* Counts this start of `rank`. `s` is borrowed until generation_close; `group`: 1..127 of
 * [A-Za-z0-9_:-]; `run`: distinguishes one start of all processes from the next, or "".
 *
 * errors: EGROUP (a living process has the rank), EINVAL, and the store's */
tenrec_status generation_open(struct tenrec_store *s, const char *group, const char *run,
                              int32_t rank, int32_t world, uint64_t deadline_ns,
                              struct generation *ret, tenrec_error *err);

/* The same for a visitor: the life of the group that `e` names, which need not be complete; rank is
 * TENREC_ANONYMOUS. Nothing is written, then or later. */
tenrec_status generation_visit(struct tenrec_store *s, const struct group_directory_entry *e,
                               struct generation *ret, tenrec_error *err);

/* Returns true if `rank` has left its life `n` in good order; `base` is the view of the group. */
bool generation_rank_left(struct tenrec_store *base, int32_t rank, int64_t n, uint64_t deadline_ns);

/* Marks all ranks as left: none has anything to do in this life any more. Later starts of ranks
 * need no mark of their own; the caller sets `over` of each. */
tenrec_status generation_mark_left(const struct generation *m, uint64_t deadline_ns,
                                   tenrec_error *err);

/* Marks the rank as left, or undoes its start, by `end`; once. */
void generation_leave(struct generation *m, uint64_t deadline_ns);

/* Leaves, if not done yet, and releases the views. */
void generation_close(struct generation *m, uint64_t deadline_ns);

#endif
