/* SPDX-License-Identifier: Apache-2.0 */
/* membership_view.h - the members of a dynamic group: the value of one key of the store, which is
 * replaced as a whole. A table of numbers and names, and its bytes. */
#ifndef TENREC_GROUP_MEMBERSHIP_VIEW_H
#define TENREC_GROUP_MEMBERSHIP_VIEW_H

#include "store/store.h"

#include <tenrec/types.h>

#define VIEW_GONE_MAX 64 /* former members that are remembered */

struct view_entry {
    tenrec_peer id;
    int64_t incarnation; /* unique in the group, over all its members */
    char name[TENREC_NAME_MAX + 1];
};

/* Why a worker is no member any more. */
struct view_gone {
    int64_t incarnation;
    bool died;      /* found dead, else left in good order */
    tenrec_peer by; /* the member that found it dead */
};

struct view {
    int64_t version; /* grows by one with each change; 0: no worker ever joined */
    size_t n, room;
    struct view_entry *entry; /* owns; by id */
    size_t n_gone;
    struct view_gone gone[VIEW_GONE_MAX]; /* the latest last */
};

void view_finish(struct view *v); /* leaves it zeroed; safe on zeroed memory */

/* errors: ENOMEM */
tenrec_status view_copy(const struct view *v, struct view *ret, tenrec_error *err);

/* NULL when there is none. */
const struct view_entry *view_by_id(const struct view *v, tenrec_peer id);
const struct view_entry *view_by_name(const struct view *v, const char *name);
/* The member of that id in that life. */
const struct view_entry *view_find(const struct view *v, tenrec_peer id, int64_t incarnation);
/* The entry of a life that ended. */
const struct view_gone *view_find_gone(const struct view *v, int64_t incarnation);

/* The lowest free id; -1: all are taken. */
tenrec_peer view_free_id(const struct view *v);

/* A change: the version is not touched. Ids and names must be free. errors: ENOMEM */
tenrec_status view_add(struct view *v, const struct view_entry *e, tenrec_error *err);
/* Returns false if there is no such life. */
bool view_remove(struct view *v, tenrec_peer id, int64_t incarnation, bool died, tenrec_peer by);

/* ret->data is NULL when out of memory. */
void view_pack(const struct view *v, struct store_value *ret);
/* errors: EPROTOCOL (malformed), ENOMEM */
tenrec_status view_unpack(const struct store_value *value, struct view *ret, tenrec_error *err);

#endif
