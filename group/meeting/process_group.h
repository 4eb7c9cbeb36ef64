/* SPDX-License-Identifier: Apache-2.0 */
/* process_group.h - barrier and sum over a store, for the core's own use: with deadlines, and with
 * names of the ranks in errors. */
#ifndef TENREC_MEETING_PROCESS_GROUP_H
#define TENREC_MEETING_PROCESS_GROUP_H

#include "group/membership/membership.h"
#include "group/store/store.h"

/* As tenrec_process_group_new, for a store view that is new for each life of
 * the group (generation.h), which needs no count of the lives. Its last keys stay, for
 * process_group_tidy.
 *
 * member: by rank, whose names errors tell; borrowed until the drop, or NULL */
tenrec_status process_group_new_once(struct tenrec_store *s, int32_t rank, int32_t world,
                                     const char *name, const struct tenrec_member *member,
                                     struct tenrec_process_group **ret, tenrec_error *err);

/* The name of that group of a worker's shutdown. */
#define PROCESS_GROUP_SHUTDOWN "shutdown"

/* Removes the last keys that `rank` has written in a group of process_group_new_once with this name
 * in `s`, which all ranks have left. */
void process_group_tidy(struct tenrec_store *s, int32_t rank, const char *name,
                        uint64_t deadline_ns);

/* From now on a round that waits for a lost member fails with EPEER_LOST and its name. */
void process_group_set_lost(struct tenrec_process_group *pg, const struct group_lost *lost);

tenrec_status process_group_barrier(struct tenrec_process_group *pg, uint64_t deadline_ns,
                                    tenrec_error *err);

/* As tenrec_process_group_drop, with a deadline for the removal of the keys. */
void process_group_close(struct tenrec_process_group *pg, uint64_t deadline_ns);

#define PROCESS_GROUP_SUMS 8 /* counts of one sum, at most */

/* The rank that has added up calls it before any rank learns of the sums. */
struct process_group_summed {
    tenrec_status (*fn)(void *arg, const int64_t *sum, uint64_t deadline_ns, tenrec_error *err);
    void *arg;
};

/* One wave of the termination detection at shutdown: contributes this worker's n counts, waits for
 * all, and returns the sum of each. The n-th calls of all ranks belong together.
 *
 * before: or NULL
 * errors: ETIMEDOUT (names the missing ranks), EPEER_LOST, EPROTOCOL */
tenrec_status process_group_sum(struct tenrec_process_group *pg, const int64_t *mine, size_t n,
                                const struct process_group_summed *before, uint64_t deadline_ns,
                                int64_t *ret, tenrec_error *err);

#endif
