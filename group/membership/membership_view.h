/* SPDX-License-Identifier: Apache-2.0 */
/* membership_view.h - the members of a dynamic group: the value of one key of the store, which is
 * replaced as a whole. A table of numbers and names, and its bytes. */
#ifndef TENREC_MEMBERSHIP_MEMBERSHIP_VIEW_H
#define TENREC_MEMBERSHIP_MEMBERSHIP_VIEW_H

#include "group/store/store.h"

#include <tenrec/types.h>

#define VIEW_GONE_MAX 64 /* former members that are remembered */

struct membership_view_entry {
    tenrec_peer id;
    int64_t incarnation; /* unique in the group, over all its members */
    char name[TENREC_NAME_MAX + 1];
};

/* A former member. */
struct membership_view_gone {
    int64_t incarnation;
    bool died;      /* found dead, else left in good order */
    tenrec_peer by; /* the member that found it dead */
};

struct membership_view {
    int64_t version; /* grows by one with each change; 0: no worker ever joined */
    size_t n, room;
    struct membership_view_entry *entry; /* owns; by id */
    size_t n_gone;
    struct membership_view_gone gone[VIEW_GONE_MAX]; /* the latest last */
};

void membership_view_finish(
    struct membership_view *v); /* leaves it zeroed; safe on zeroed memory */

/* errors: ENOMEM */
tenrec_status membership_view_copy(const struct membership_view *v, struct membership_view *ret,
                                   tenrec_error *err);

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

/* The lowest free id; -1: all are taken. */
tenrec_peer membership_view_free_id(const struct membership_view *v);

/* Does not change the version. Id and name must be free. errors: ENOMEM */
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

#endif
