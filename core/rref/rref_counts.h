/* SPDX-License-Identifier: Apache-2.0 */
/* rref_counts.h - counts of references, for users and tests. */
#ifndef TENREC_RREF_RREF_COUNTS_H
#define TENREC_RREF_RREF_COUNTS_H

#include <tenrec/rpc.h>

struct rref_counts {
    size_t num_owner_rrefs;      /* local values with references */
    size_t num_forks;            /* references to these, at any worker */
    size_t num_pending_users;    /* local references, unknown to their owner */
    size_t num_confirmed_users;  /* ... known to their owner */
    size_t num_pending_children; /* references in flight to another worker */
    size_t num_pending_owners;   /* values requested and not made yet */
    size_t num_pending_futures;  /* control messages in flight or to be retried */
    size_t num_tombstones;       /* references remembered as deleted */
};

/* All zero unless the worker runs. */
struct rref_counts rrefs_count(struct tenrec_worker *w);

/* Pushes them as "rref.num_owner_rrefs", "rref.num_forks" and so on. */
void rrefs_debug_info(struct tenrec_worker *w, tenrec_sink_fn *sink, void *arg);

#endif
