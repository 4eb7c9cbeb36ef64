/* SPDX-License-Identifier: Apache-2.0 */
/* membership.h - the members of a group; for the rooms above.
 *
 * A dynamic group has a list of its members in its store: a worker that joins, leaves or finds
 * another one dead changes that list under the group's lock. generation.h has the lives of a static
 * group. */
#ifndef TENREC_MEMBERSHIP_MEMBERSHIP_H
#define TENREC_MEMBERSHIP_MEMBERSHIP_H

#include "group/membership/lease.h"
#include "group/membership/member_record.h"
#include "group/membership/requests.h"
#include "group/store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenrec/agent.h>
#include <tenrec/error.h>
#include <tenrec/types.h>

/* Checks of ranks and names, and lists of ranks for error texts. */

#define RANKS_MAX 32768 /* ids are torch's int16 */

/* Writes "rank 2 of 4" or "ranks 0, 2-5, 7 of 8" for the flags that are set;
 * names of `member` (n by rank, or NULL) follow single ranks: `rank 2 ("b") of 4`. */
void ranks_text(char *ret, size_t room, const bool *flag, int32_t n,
                const struct tenrec_member *member);

/* Checks that a name has 1..127 of [A-Za-z0-9_:-]. EINVAL: the error calls it `label`. */
tenrec_status ranks_check_name(const char *label, const char *name, tenrec_error *err);

/* Makes the name of `rank` from a pattern: replaces "{rank}" in it. EINVAL: too long. */
tenrec_status ranks_make_name(const char *pattern, int32_t rank, char ret[TENREC_NAME_MAX + 1],
                              tenrec_error *err);

/* Checks 0 <= rank < world <= RANKS_MAX. */
tenrec_status ranks_check(int32_t rank, int32_t world, tenrec_error *err);

/* The callback by which waits in the store detect lost members of a static group. */

struct group_lost {
    /* Returns true if the member of that rank is known to be dead; may start a check of it.
     * `waited_ms`: since the wait began. */
    bool (*is_lost)(void *arg, int32_t rank, uint64_t waited_ms);
    void *arg;
};

/* The members of a dynamic group: the value of one key of the store, which is
 * replaced as a whole. A table of numbers and names, and its bytes. */

/* Former members that are remembered: those of the last change, or as many as there were members
 * before it, or these. */
#define VIEW_GONE_MIN 64

struct membership_view_entry {
    tenrec_peer id;
    int64_t incarnation; /* unique in the group, over all its members */
    const char *name;    /* the view's */
};

/* A former member. */
struct membership_view_gone {
    int64_t incarnation;
    bool died;      /* found dead, else left in good order */
    tenrec_peer by; /* the member that found it dead */
};

/* A member, or a former one. */
struct membership_life {
    tenrec_peer id;
    int64_t incarnation;
};

struct membership_view {
    int64_t version; /* grows by one with each change; 0: no worker ever joined */
    uint64_t sum;    /* the same for equal sets of lives: membership_view_sum_of all */
    size_t n, room;
    struct membership_view_entry *entry; /* owns; by id */
    size_t n_gone, room_gone;
    struct membership_view_gone *gone; /* owns; the latest last */
    /* Of them, how many were in that version. */
    size_t n_removed;
    int64_t removed_of;
};

void membership_view_finish(
    struct membership_view *v); /* leaves it zeroed; safe on zeroed memory */

/* errors: ENOMEM */
tenrec_status membership_view_copy(const struct membership_view *v, struct membership_view *ret,
                                   tenrec_error *err);

/* The index of `id`, or of the next higher one. */
size_t membership_view_index(const struct membership_view *v, tenrec_peer id);
/* NULL: no such member. */
const struct membership_view_entry *membership_view_by_id(const struct membership_view *v,
                                                          tenrec_peer id);
const struct membership_view_entry *membership_view_by_name(const struct membership_view *v,
                                                            const char *name);
/* The member of that id in that life. */
const struct membership_view_entry *membership_view_find(const struct membership_view *v,
                                                         tenrec_peer id, int64_t incarnation);
/* The entry of a life that ended. */
const struct membership_view_gone *membership_view_find_gone(const struct membership_view *v,
                                                             int64_t incarnation);

uint64_t membership_view_sum_of(tenrec_peer id, int64_t incarnation);

/* The lowest free id; -1: all are taken. */
tenrec_peer membership_view_free_id(const struct membership_view *v);

/* Does not change the version. Id and name must be free; the name is copied. errors: ENOMEM */
tenrec_status membership_view_add(struct membership_view *v, const struct membership_view_entry *e,
                                  tenrec_error *err);
/* Returns false if there is no such life. */
bool membership_view_remove(struct membership_view *v, tenrec_peer id, int64_t incarnation,
                            bool died, tenrec_peer by);

/* ret->data is NULL when out of memory. */
void membership_view_pack(const struct membership_view *v, struct store_value *ret);
/* errors: EPROTOCOL (malformed), ENOMEM */
tenrec_status membership_view_unpack(const struct store_value *value, struct membership_view *ret,
                                     tenrec_error *err);

/* The list in the store. */

/* Keys below tenrec/<group>[/<run>]:
 *   lock            lease.h, requests.h
 *   incarnations    number of lives so far
 *   view            struct membership_view
 *   member/<n>      the record of the member in life n
 * and those that torch knows, in a part of their own: torch_keys.h. */
struct membership_list {
    struct tenrec_store *whole; /* borrowed: the store that `store` is a view of */
    struct tenrec_store *store; /* owns */
    struct tenrec_store *torch; /* owns */
    struct group_lock lock;
    struct requests requests; /* that the holder of the lock has found: ours, while we hold it */
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

/* Determines our id and name, under the lock, which stays ours until membership_list_join or
 * membership_list_leave; or gets them from its holder, which waits for our record.
 *
 * wished   an id, or -1 for the lowest that is free
 * pattern  the name; "{rank}" in it becomes the id
 * errors   EGROUP (static group; id or name is taken by a worker that lives), EINVAL, ETIMEDOUT
 *          (names the holder of the lock), and the store's */
tenrec_status membership_list_reserve(struct membership_list *r, tenrec_peer wished,
                                      const char *pattern, uint64_t deadline_ns, tenrec_error *err);

/* Makes us a member with that `address`, with all others that wait, and releases the lock; other
 * members get `extra` (may be NULL). `ret`: the members then.
 *
 * errors: EINVAL, EGROUP (was too slow; a member has another backend), and the store's */
tenrec_status membership_list_join(struct membership_list *r, const char *address,
                                   const struct store_value *extra, uint64_t deadline_ns,
                                   struct membership_view *ret, tenrec_error *err);

/* Removes `n` members, as far as they are in the list, with all that others remove; *ret is the
 * list then. If another holder of the lock does it, the list may still have all but the first. A
 * member that was removed itself removes no other. */
tenrec_status membership_list_remove(struct membership_list *r, const struct membership_life *who,
                                     size_t n, bool died, uint64_t deadline_ns,
                                     struct membership_view *ret, tenrec_error *err);

/* Removes us, or releases the reservation. Once. *ret is zeroed if a holder of the lock has removed
 * us: it tells the others. */
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

/* The key of the record of that life. */
void membership_record_key(char ret[LEASE_KEY], int64_t incarnation);

void membership_list_close(struct membership_list *r); /* safe on zeroed memory */

/* Reads the list: *ret is zeroed when no worker ever joined; *ret_raw (may be NULL) is the stored
 * value. errors: EPROTOCOL, and the store's */
tenrec_status membership_list_list(struct tenrec_store *store, uint64_t deadline_ns,
                                   struct membership_view *ret, struct store_value *ret_raw,
                                   tenrec_error *err);

#endif
