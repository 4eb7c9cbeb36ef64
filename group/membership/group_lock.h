/* SPDX-License-Identifier: Apache-2.0 */
/* group_lock.h - the lock of a group's list. Tenrec workers exclude each other by a lease, which
 * expires when its holder dies. Its holder also acquires torch's token, in the name of all Tenrec
 * workers: so workers of torch.distributed.rpc wait while one of ours joins or leaves, and ours
 * while one of theirs does. */
#ifndef TENREC_MEMBERSHIP_GROUP_LOCK_H
#define TENREC_MEMBERSHIP_GROUP_LOCK_H

#include "group/membership/lease.h"

/* The value of torch's token while it is ours, and the key for which torch's workers wait then.
 * Names of torch's workers have no '.', so no such worker has this one. All Tenrec workers write
 * the same value: after the death of its holder the next worker acquires it. */
#define GROUP_LOCK_TOKEN "Token_for_tenrec.workers"

/* A torch worker gives no lease with the token, and the token survives its death. A waiter that has
 * seen the same token for so long takes it over. */
#define GROUP_LOCK_TORCH_MS 10000

struct group_lock {
    struct lease lease;
    struct tenrec_store *torch; /* borrowed: the part with torch's keys */
    bool others;                /* the last attempt failed because another worker holds it */
    /* The torch worker's token that the last attempt saw, and since when. */
    char seen[LEASE_TOKEN];
    uint64_t since_ns;
};

/* Acquires the lock; `holder` as in lease.h.
 *
 * errors: ETIMEDOUT (names the holder), and the store's */
tenrec_status group_lock_acquire(struct group_lock *l, const char *holder, uint64_t deadline_ns,
                                 tenrec_error *err);

/* Releases the lock, if we hold it, also after the deadline. */
void group_lock_release(struct group_lock *l, uint64_t deadline_ns);

#endif
