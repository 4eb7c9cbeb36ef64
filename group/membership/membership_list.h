/* SPDX-License-Identifier: Apache-2.0 */
/* membership_list.h - the members of a dynamic group in its store: a worker that joins, leaves or
 * finds another one dead changes one list under the group's lock. */
#ifndef TENREC_MEMBERSHIP_MEMBERSHIP_LIST_H
#define TENREC_MEMBERSHIP_MEMBERSHIP_LIST_H

#include "group/membership/group_lock.h"
#include "group/membership/member_record.h"
#include "group/membership/membership_view.h"

/* Keys below tenrec/<group>[/<run>]:
 *   lock            lease.h, in group_lock.h
 *   incarnations    number of lives so far
 *   view            membership_view.h
 *   member/<n>      the record of the member in life n
 * and those that torch knows, in a part of their own: torch_keys.h. */
struct membership_list {
    struct tenrec_store *whole; /* borrowed: the store that `store` is a view of */
    struct tenrec_store *store; /* owns */
    struct tenrec_store *torch; /* owns */
    struct group_lock lock;
    char group[128], run[128];
    tenrec_peer id; /* ours; -1: none yet */
    int64_t incarnation;
    uint64_t token; /* as in member_record.h; 0: none yet */
    char name[TENREC_NAME_MAX + 1];
    const char *backend; /* borrowed until membership_list_join returns; NULL: not compared */
    bool joined;         /* other workers may see us: after a failure the caller must leave */
};

/* `s` is borrowed until membership_list_close. errors: EINVAL, ENOMEM */
tenrec_status membership_list_open(struct tenrec_store *s, const char *group, const char *run,
                                   uint64_t lease_ms, struct membership_list *ret,
                                   tenrec_error *err);

/* Acquires the lock and determines our id and name; the lock stays ours until membership_list_join
 * or membership_list_leave.
 *
 * wished   an id, or -1 for the lowest that is free
 * pattern  the name; "{rank}" in it becomes the id
 * errors   EGROUP (static group; id or name is taken by a worker that lives), EINVAL, ETIMEDOUT
 *          (names the holder of the lock), and the store's */
tenrec_status membership_list_reserve(struct membership_list *r, tenrec_peer wished,
                                      const char *pattern, uint64_t deadline_ns, tenrec_error *err);

/* Makes us a member with that `address`, and releases the lock; other members get `extra` (may be
 * NULL). `ret`: the members then.
 *
 * errors: EINVAL, EGROUP (was too slow; a member has another backend), and the store's */
tenrec_status membership_list_join(struct membership_list *r, const char *address,
                                   const struct store_value *extra, uint64_t deadline_ns,
                                   struct membership_view *ret, tenrec_error *err);

/* Removes a member, if it is in the list in that life; *ret is the list then. A member that was
 * removed itself removes no other. */
tenrec_status membership_list_remove(struct membership_list *r, tenrec_peer id, int64_t incarnation,
                                     bool died, uint64_t deadline_ns, struct membership_view *ret,
                                     tenrec_error *err);

/* Removes us, or releases the reservation. Once. */
tenrec_status membership_list_leave(struct membership_list *r, uint64_t deadline_ns,
                                    struct membership_view *ret, tenrec_error *err);

/* Reads the members. errors: EGROUP (no list), and the store's */
tenrec_status membership_list_read(struct membership_list *r, uint64_t deadline_ns,
                                   struct membership_view *ret, tenrec_error *err);

/* Reads the records of `n` members, ret[i] that of e[i]. The record of a member that is gone stays
 * zeroed. */
tenrec_status membership_list_records(struct membership_list *r,
                                      const struct membership_view_entry *e, size_t n,
                                      uint64_t deadline_ns, struct member *ret, tenrec_error *err);

void membership_list_close(struct membership_list *r); /* safe on zeroed memory */

#endif
