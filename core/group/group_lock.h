/* SPDX-License-Identifier: Apache-2.0 */
/* group_lock.h - who changes the list of a group. Tenrec workers keep each other out by a
 * lease, which ends when its holder dies. Who has it takes torch's token besides, in the
 * name of us all: so workers of torch.distributed.rpc wait while one of ours joins or
 * leaves, and ours while one of theirs does. */
#ifndef TENREC_GROUP_GROUP_LOCK_H
#define TENREC_GROUP_GROUP_LOCK_H

#include "group/lease.h"

/* What stands under torch's token while it is ours, and the key that torch's workers wait
 * for then. None of theirs can have it: names have no '.'. That it is the same for all of
 * us makes it free for the next of ours when its holder died. */
#define GROUP_LOCK_TOKEN "Token_for_tenrec.workers"

/* A worker of torch says for no time how long it holds the token, and dies with it. Who
 * has seen it for so long takes it over. */
#define GROUP_LOCK_TORCH_MS 10000

struct group_lock {
    struct lease lease;
    struct tenrec_store *torch; /* borrowed: the part with torch's keys */
    bool others;                /* the last take failed as somebody else holds it */
    /* Whose token it was at our last look, if it was a torch worker's, and since when. */
    char seen[LEASE_TOKEN];
    uint64_t since_ns;
};

/* Waits until the lock is ours; `holder` as in lease.h.
 *
 * errors: ETIMEDOUT (who holds it), and the store's */
tenrec_status group_lock_acquire(struct group_lock *l, const char *holder, uint64_t deadline_ns,
                                 tenrec_error *err);

/* Is it ours still, or were we too slow? */
bool group_lock_kept(const struct group_lock *l, uint64_t deadline_ns);

/* Lets go, if we hold it; for that there is always some time. */
void group_lock_release(struct group_lock *l, uint64_t deadline_ns);

#endif
