/* SPDX-License-Identifier: Apache-2.0 */
/* membership_inside.h - shared by the parts of the list of a group's members. */
#ifndef TENREC_MEMBERSHIP_MEMBERSHIP_INSIDE_H
#define TENREC_MEMBERSHIP_MEMBERSHIP_INSIDE_H

#include "group/membership/membership.h"

enum {
    MEMBERSHIP_TRIES = 16, /* of a change that races with other workers' */
    MEMBERSHIP_MANY = 32,  /* records that are read together */
};

/* ---- membership_list.c ---- */

/* Replaces `raw` by `v`; *ret_done is false when the list has changed meanwhile. */
tenrec_status membership_list_replace(struct membership_list *r, const struct store_value *raw,
                                      const struct membership_view *v, uint64_t deadline_ns,
                                      bool *ret_done, tenrec_error *err);

/* Our change has ended: releases the lock, or gives up what was asked of its holder. */
void membership_list_end_request(struct membership_list *r, uint64_t deadline_ns);

/* The same; `v`, which is taken, becomes the result. */
tenrec_status membership_list_end_change(struct membership_list *r, tenrec_status st, bool done,
                                         struct membership_view *v, uint64_t deadline_ns,
                                         struct membership_view *ret, tenrec_error *err);

/* ---- conflict.c ---- */

/* The member that has our id or name. */
struct conflict {
    tenrec_peer id;
    char name[TENREC_NAME_MAX + 1];
    struct member record;
    bool by_name;
};

/* Removes dead members that hold our id or name from `v`. *ret_blocked: a possibly live member
 * holds it. */
tenrec_status conflicts_remove(struct membership_list *r, struct membership_view *v,
                               tenrec_peer wished, const char *pattern, uint64_t deadline_ns,
                               struct conflict *ret, bool *ret_blocked, tenrec_error *err);

tenrec_status conflict_fail(const struct membership_list *r, const struct conflict *c,
                            tenrec_error *err);

/* ---- membership_records.c ---- */

/* Writes these records, ordered by id, in one value for those that read many. One without a name is
 * left out. After a failure they read each. */
void membership_records_pack(struct membership_list *r, const struct member *m, size_t n,
                             uint64_t deadline_ns);

/* ---- membership_reserve.c ---- */

/* Gives ids to others that wait. */
tenrec_status membership_list_reserve_others(struct membership_list *r, uint64_t deadline_ns,
                                             bool *ret_some, tenrec_error *err);

#endif
