/* SPDX-License-Identifier: Apache-2.0 */
/* groups.h - the list of groups in a store, under one key that everybody knows.
 * Members do not need it; it is there for those who come from outside. */
#ifndef TENREC_GROUP_GROUPS_H
#define TENREC_GROUP_GROUPS_H

#include <stdint.h>
#include <tenrec/store.h>

/* The latest start of one group. */
struct groups_entry {
    char name[128];
    char run[128]; /* of the launcher, or "" */
    int32_t world; /* 0: a dynamic group */
    int64_t incarnation;
};

/* Puts `e` to the front of the list, over what it said of that group before.
 * The oldest are forgotten beyond 32. errors: ENOMEM and the store's */
tenrec_status groups_announce(struct tenrec_store *s, const struct groups_entry *e,
                              uint64_t deadline_ns, tenrec_error *err);

/* Looks `name` up. errors: EGROUP (no such group: says which there are),
 * EPROTOCOL and the store's */
tenrec_status groups_find(struct tenrec_store *s, const char *name, uint64_t deadline_ns,
                          struct groups_entry *ret, tenrec_error *err);

#endif
