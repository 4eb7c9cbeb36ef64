/* SPDX-License-Identifier: Apache-2.0 */
/* group_directory.h - the list of groups in a store, under one fixed key. Members do not need the
 * list; visitors from outside do. */
#ifndef TENREC_MEMBERSHIP_GROUP_DIRECTORY_H
#define TENREC_MEMBERSHIP_GROUP_DIRECTORY_H

#include <stdint.h>
#include <tenrec/store.h>

#include "group/membership/membership.h"

/* The latest start of one group. */
struct group_directory_entry {
    char name[128];
    char run[128]; /* of the launcher, or "" */
    int32_t world; /* 0: a dynamic group */
    int64_t incarnation;
};

/* Puts an entry at the front of the list, in place of an older one of that group. Entries beyond 32
 * are dropped, the oldest first. errors: ENOMEM and the store's */
tenrec_status group_directory_announce(struct tenrec_store *s, const char *name, const char *run,
                                       int32_t world, int64_t incarnation, uint64_t deadline_ns,
                                       tenrec_error *err);

/* Opens the part of the store that belongs to that group, and to that run unless it is "". ret:
 * owns. errors: EINVAL (the name), and those of tenrec_store_open_prefix */
tenrec_status group_directory_part(struct tenrec_store *s, const char *name, const char *run,
                                   struct tenrec_store **ret, tenrec_error *err);

/* Finds `name`. errors: EGROUP (no such group; names the groups), EINVAL (the name), EPROTOCOL and
 * the store's */
tenrec_status group_directory_find(struct tenrec_store *s, const char *name, uint64_t deadline_ns,
                                   struct group_directory_entry *ret, tenrec_error *err);

/* Under one name a group is static or dynamic, as its first worker decides; after
 * the last has left it may become the other kind. */

/* Marks the group as dynamic. The caller holds the lock. errors: EGROUP, and the store's */
tenrec_status group_kind_claim_dynamic(struct membership_list *r, uint64_t deadline_ns,
                                       tenrec_error *err);

/* Refuses a group under these keys that has workers of torch but none of ours: a worker of ours
 * would use their ids, and torch's workers fail at members that do not answer as theirs. Writes
 * nothing.
 * ret_n    may be NULL; the number of our members
 * errors   EGROUP, the store's */
tenrec_status group_kind_check_torch(struct membership_list *r, uint64_t deadline_ns, size_t *ret_n,
                                     tenrec_error *err);

/* For static groups: marks the group as static. errors: EGROUP (a dynamic group of that name has
 * members or a worker that is joining, or torch's own workers are in it; then nothing is written),
 * EINVAL, and the store's */
tenrec_status group_kind_claim_static(struct tenrec_store *s, const char *group, const char *run,
                                      uint64_t deadline_ns, tenrec_error *err);

#endif
