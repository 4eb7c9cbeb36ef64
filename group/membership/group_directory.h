/* SPDX-License-Identifier: Apache-2.0 */
/* group_directory.h - the list of groups in a store, under one fixed key. Members do not need the
 * list; visitors from outside do. */
#ifndef TENREC_MEMBERSHIP_GROUP_DIRECTORY_H
#define TENREC_MEMBERSHIP_GROUP_DIRECTORY_H

#include <stdint.h>
#include <tenrec/store.h>

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

#endif
