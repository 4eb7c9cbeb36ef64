/* SPDX-License-Identifier: Apache-2.0 */
/* roster_kind.h - under one name a group is static or dynamic, as who comes first says;
 * when the last has left it may become the other. What roster.c and that share. */
#ifndef TENREC_GROUP_ROSTER_KIND_H
#define TENREC_GROUP_ROSTER_KIND_H

#include "group/roster.h"

/* Marks the group as dynamic. With the lock. errors: EGROUP, and the store's */
tenrec_status roster_claim_dynamic(struct roster *r, uint64_t deadline_ns, tenrec_error *err);

/* Reads whether a group of torch's own workers lives under these keys, in which none of
 * ours is: a worker of ours that joined would take their ids, and torch's workers fail at
 * members that do not answer as theirs do. Writes nothing. errors: EGROUP, the store's */
tenrec_status roster_check_torch(struct roster *r, uint64_t deadline_ns, tenrec_error *err);

/* For static groups: has `s` a dynamic one of that name, with members, or one who is
 * joining, or one of torch's own workers? Marks the group as static, and writes nothing
 * when there is. errors: EGROUP, EINVAL, and the store's */
tenrec_status roster_claim_static(struct tenrec_store *s, const char *group, const char *run,
                                  uint64_t deadline_ns, tenrec_error *err);

/* The list: *ret is zeroed when nobody ever joined; *ret_raw (may be NULL) is what
 * stands there. errors: EPROTOCOL, and the store's */
tenrec_status roster_list(struct tenrec_store *store, uint64_t deadline_ns, struct view *ret,
                          struct store_value *ret_raw, tenrec_error *err);

#endif
