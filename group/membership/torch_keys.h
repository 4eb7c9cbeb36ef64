/* SPDX-License-Identifier: Apache-2.0 */
/* torch_keys.h - the members of a dynamic group once more, in the keys that workers of
 * torch.distributed.rpc read. A worker that changes the view writes these keys after it, under the
 * group's lock. Entries of other workers stay. */
#ifndef TENREC_MEMBERSHIP_TORCH_KEYS_H
#define TENREC_MEMBERSHIP_TORCH_KEYS_H

#include "group/membership/membership.h"

/* In the part of the store that torch_keys_open gives:
 *   names/<id>                    the name
 *   addrs/<name>                  the address
 *   names/_ALL_WORKER_INFOS       "<name>-<id>," of each member whose name has no '-' */
#define TORCH_KIND "rpcIsStaticGroup"         /* group_kind.c */
#define TORCH_TOKEN "RpcGroupManagementToken" /* group_lock.c */
#define TORCH_LIST "names/_ALL_WORKER_INFOS"

/* Opens the part of `whole` with torch's keys for that group: the prefix of a process's first
 * init_rpc for the group "default" without a run; else in `part`, that group's own. ret: owns. */
tenrec_status torch_keys_open(struct tenrec_store *whole, struct tenrec_store *part,
                              const char *group, const char *run, struct tenrec_store **ret,
                              tenrec_error *err);

/* An entry of that list. */
struct torch_entry {
    tenrec_peer id;
    char name[TENREC_NAME_MAX + 1];
};

/* Reads the next entry of such a list, a text, and moves *list behind it; skips malformed ones.
 * Returns false at the end. */
bool torch_keys_next(const char **list, struct torch_entry *ret);

/* Finds the first entry of torch's list that is no member in `v`; *ret_found is false when there is
 * none. */
tenrec_status torch_keys_find_other(struct tenrec_store *torch, const struct membership_view *v,
                                    uint64_t deadline_ns, struct torch_entry *ret, bool *ret_found,
                                    tenrec_error *err);

/* A new member, borrowed. */
struct torch_member {
    const struct membership_view_entry *joined;
    const char *address;
};

/* Writes the names and addresses of new members. */
tenrec_status torch_keys_set(struct tenrec_store *torch, const struct torch_member *member,
                             size_t n, uint64_t deadline_ns, tenrec_error *err);

/* Replaces the members of `before` in the list by those of `after`, and removes the names and
 * addresses of those that have left. Called before the view is replaced when members leave, and
 * after it when they join: so an entry that is in neither view is another's. */
tenrec_status torch_keys_replace(struct tenrec_store *torch, const struct membership_view *before,
                                 const struct membership_view *after, uint64_t deadline_ns,
                                 tenrec_error *err);

#endif
