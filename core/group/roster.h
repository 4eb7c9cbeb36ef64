/* SPDX-License-Identifier: Apache-2.0 */
/* roster.h - the members of a dynamic group, as its store has them: who joins,
 * leaves or is found dead changes one list under the group's lock. */
#ifndef TENREC_GROUP_ROSTER_H
#define TENREC_GROUP_ROSTER_H

#include "group/group_lock.h"
#include "group/member_record.h"
#include "group/view.h"

/* Keys below tenrec/<group>[/<run>]:
 *   lock            lease.h, in group_lock.h
 *   incarnations    how many lives there have been
 *   view            view.h
 *   member/<n>      the record of the member in life n
 * and those that torch knows, in a part of their own: torch_keys.h. */
struct roster {
    struct tenrec_store *whole; /* borrowed: what `store` is a view of */
    struct tenrec_store *store; /* owns */
    struct tenrec_store *torch; /* owns */
    struct group_lock lock;
    char group[128], run[128];
    tenrec_peer id; /* ours; -1: none yet */
    int64_t incarnation;
    uint64_t token; /* as in member_record.h; 0: none yet */
    char name[TENREC_NAME_MAX + 1];
    bool joined; /* others may know us */
};

/* `s` is borrowed until roster_close. errors: EINVAL, ENOMEM */
tenrec_status roster_open(struct tenrec_store *s, const char *group, const char *run,
                          uint64_t lease_ms, struct roster *ret, tenrec_error *err);

/* Takes the lock and finds an id and a name for us; the lock stays ours until
 * roster_join or roster_leave.
 *
 * wished   an id, or -1 for the lowest that is free
 * pattern  the name; "{rank}" in it becomes the id
 * errors   EGROUP (static group; id or name is taken by a worker that lives),
 *          EINVAL, ETIMEDOUT (who holds the lock), and the store's */
tenrec_status roster_reserve(struct roster *r, tenrec_peer wished, const char *pattern,
                             uint64_t deadline_ns, tenrec_error *err);

/* Makes us a member, to be reached at `address`, and lets go of the lock; `extra`
 * (may be NULL) is told to the others. `ret` is who is in the group then.
 *
 * errors: EINVAL, EGROUP (was too slow), and the store's */
tenrec_status roster_join(struct roster *r, const char *address, const struct store_value *extra,
                          uint64_t deadline_ns, struct view *ret, tenrec_error *err);

/* Takes a member out, if it is in it in that life; *ret is what there is then. A
 * member that has been taken out itself takes nobody out. */
tenrec_status roster_remove(struct roster *r, tenrec_peer id, int64_t incarnation, bool died,
                            uint64_t deadline_ns, struct view *ret, tenrec_error *err);

/* Takes us out, or lets go of what roster_reserve took. Once. */
tenrec_status roster_leave(struct roster *r, uint64_t deadline_ns, struct view *ret,
                           tenrec_error *err);

/* Who is in the group now. errors: EGROUP (there is none), and the store's */
tenrec_status roster_read(struct roster *r, uint64_t deadline_ns, struct view *ret,
                          tenrec_error *err);

/* The records of `n` members, ret[i] that of e[i]. One that is gone stays zeroed. */
tenrec_status roster_records(struct roster *r, const struct view_entry *e, size_t n,
                             uint64_t deadline_ns, struct member *ret, tenrec_error *err);

void roster_close(struct roster *r); /* safe on zeroed memory */

#endif
