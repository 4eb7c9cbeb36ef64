/* SPDX-License-Identifier: Apache-2.0 */
/* rref_counts.h - how many references there are, for people and tests. */
#ifndef TENREC_RREF_RREF_COUNTS_H
#define TENREC_RREF_RREF_COUNTS_H

#include <tenrec/rpc.h>

struct rref_counts {
    size_t num_owner_rrefs;      /* values here that somebody refers to */
    size_t num_forks;            /* references to these, wherever they are */
    size_t num_pending_users;    /* references here that their owner does not know yet */
    size_t num_confirmed_users;  /* ... that it knows */
    size_t num_pending_children; /* references on their way to another worker */
    size_t num_pending_owners;   /* values that are asked for and not there yet */
    size_t num_pending_futures;  /* control messages under way or to be repeated */
    size_t num_tombstones;       /* references that are remembered as deleted */
};

/* All zero while the worker does not run. */
struct rref_counts rrefs_count(struct tenrec_worker *w);

/* Pushes them as "rref.num_owner_rrefs", "rref.num_forks" and so on. */
void rrefs_debug_info(struct tenrec_worker *w, tenrec_sink_fn *sink, void *arg);

#endif
