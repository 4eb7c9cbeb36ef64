/* SPDX-License-Identifier: Apache-2.0 */
/* process_group.h - barrier and gather over a store, for the core's own use:
 * with deadlines, and with names of the ranks in errors. */
#ifndef TENREC_MEETING_PROCESS_GROUP_H
#define TENREC_MEETING_PROCESS_GROUP_H

#include "group/membership/membership.h"
#include "group/store/store.h"

/* As tenrec_process_group_new, for a store view that is new for each life of
 * the group (generation.h), which needs no count of the lives.
 *
 * names: of the ranks, for errors; borrowed until the drop, or NULL */
tenrec_status process_group_new_once(struct tenrec_store *s, int32_t rank, int32_t world,
                                     const char *name, const char *const *names,
                                     struct tenrec_process_group **ret, tenrec_error *err);

/* From now on a round that waits for a lost member fails with EPEER_LOST and its name. */
void process_group_set_lost(struct tenrec_process_group *pg, const struct group_lost *lost);

tenrec_status process_group_barrier(struct tenrec_process_group *pg, uint64_t deadline_ns,
                                    tenrec_error *err);

/* Sends `len` bytes to all ranks and receives those of each. `operation` is for errors: "the
 * counts of calls".
 *
 * ret: owned: `world` values by rank; store_values_free and free
 * errors: ETIMEDOUT (names the missing ranks), EPEER_LOST, ENOMEM */
tenrec_status process_group_gather(struct tenrec_process_group *pg, const char *operation,
                                   const void *data, size_t len, uint64_t deadline_ns,
                                   struct store_value **ret, tenrec_error *err);

/* As tenrec_process_group_drop, with a deadline for the removal of the keys. */
void process_group_close(struct tenrec_process_group *pg, uint64_t deadline_ns);

#define PROCESS_GROUP_SUMS 8 /* counts of one sum, at most */

/* One wave of the termination detection at shutdown: contributes this worker's n counts, waits for
 * all, and returns the sum of each. The n-th calls of all ranks belong together.
 *
 * errors: ETIMEDOUT (names the missing ranks), EPROTOCOL */
tenrec_status process_group_sum(struct tenrec_process_group *pg, const int64_t *mine, size_t n,
                                uint64_t deadline_ns, int64_t *ret, tenrec_error *err);

#endif
