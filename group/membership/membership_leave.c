/* SPDX-License-Identifier: Apache-2.0 */
/* membership_leave.c - a member leaves, or removes others, with all that wait. */
#include "group/membership/membership_inside.h"

#include "group/membership/torch_keys.h"

#include <stdlib.h>

struct removal {
    const struct membership_life *who; /* borrowed; not empty */
    size_t n;
    bool died;
};

/* Removes members from `v`, which is stored as `raw`, with all that others remove, and replaces
 * that. */
static tenrec_status
membership_list_remove_entries(struct membership_list *r, struct membership_view *v,
                               const struct store_value *raw, const struct removal *mine,
                               uint64_t deadline_ns, bool *ret_done, tenrec_error *err)
{
    struct membership_view before = { .version = 0 };
    tenrec_status st = membership_view_copy(v, &before, err);

    if (st != TENREC_OK)
        return st;
    for (size_t i = 0; i < mine->n; i++)
        membership_view_remove(v, mine->who[i].id, mine->who[i].incarnation, mine->died, r->id);
    requests_remove(&r->requests, v);
    *ret_done = v->n == before.n;
    v->version += !*ret_done;
    if (!*ret_done && lease_kept(&r->lock.lease, deadline_ns))
        st = torch_keys_replace(r->torch, &before, v, deadline_ns, err);
    if (st == TENREC_OK && !*ret_done)
        st = membership_list_replace(r, raw, v, deadline_ns, ret_done, err);
    membership_view_finish(&before);
    return st;
}

static bool is_out(const struct membership_list *r, const struct membership_view *v)
{
    return r->joined && !membership_view_find(v, r->id, r->incarnation);
}

/* With the lock. */
static tenrec_status remove_all(struct membership_list *r, const struct removal *mine,
                                uint64_t deadline_ns, struct membership_view *v, bool *ret_done,
                                tenrec_error *err)
{
    struct store_value raw = { 0 };
    tenrec_status st = requests_load(r, deadline_ns, err);

    for (int i = 0; i < MEMBERSHIP_TRIES && st == TENREC_OK && !*ret_done; i++) {
        membership_view_finish(v);
        st = membership_list_list(r->store, deadline_ns, v, &raw, err);
        /* A worker that was cut off believes the others dead, but is removed itself. */
        *ret_done = st == TENREC_OK && is_out(r, v);
        if (st == TENREC_OK && !*ret_done)
            st = membership_list_remove_entries(r, v, &raw, mine, deadline_ns, ret_done, err);
        else if (st == TENREC_OK)
            requests_forget(&r->requests); /* the next holder serves them */
        free(raw.data);
        raw = (struct store_value){ 0 };
    }
    if (st == TENREC_OK && *ret_done)
        requests_finish(r, v, false, deadline_ns);
    return st;
}

/* Asks a holder of the lock to remove the first, or removes all with the lock. A worker that leaves
 * does not read the list that the holder has made. */
static tenrec_status remove_or_ask(struct membership_list *r, const struct removal *mine,
                                   uint64_t deadline_ns, struct membership_view *v, bool *ret_done,
                                   tenrec_error *err)
{
    const struct request first = { .kind = REQUEST_REMOVE,
                                   .id = mine->who->id,
                                   .incarnation = mine->who->incarnation,
                                   .died = mine->died,
                                   .by = r->id,
                                   .by_incarnation = r->incarnation };
    struct lease *l = &r->lock.lease;
    tenrec_status st;

    request_pack(&first, &l->wants);
    if (!l->wants.data)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a request to remove a member");
    st = group_lock_acquire(&r->lock, r->name, deadline_ns, err);
    free(l->wants.data);
    l->wants = (struct store_value){ .data = NULL };
    if (st == TENREC_OK && l->held)
        return remove_all(r, mine, deadline_ns, v, ret_done, err);
    lease_drop_ticket(l, deadline_ns);
    membership_view_finish(v);
    if (st != TENREC_OK || (*ret_done = first.id == r->id))
        return st;
    st = membership_list_list(r->store, deadline_ns, v, NULL, err);
    *ret_done =
        st == TENREC_OK && (is_out(r, v) || !membership_view_find(v, first.id, first.incarnation));
    return st;
}

tenrec_status membership_list_remove(struct membership_list *r, const struct membership_life *who,
                                     size_t n, bool died, uint64_t deadline_ns,
                                     struct membership_view *ret, tenrec_error *err)
{
    const struct removal mine = { who, n, died };
    struct membership_view v = { .version = 0 };
    bool done = false;
    tenrec_status st = TENREC_OK;
    char key[LEASE_KEY];

    for (int i = 0; i < MEMBERSHIP_TRIES && st == TENREC_OK && !done; i++)
        st = remove_or_ask(r, &mine, deadline_ns, &v, &done, err);
    for (size_t i = 0; i < n && st == TENREC_OK; i++) {
        if (who[i].id != r->id && is_out(r, &v))
            break;
        if (membership_view_find(&v, who[i].id, who[i].incarnation))
            continue;
        membership_record_key(key, who[i].incarnation);
        store_remove(r->store, key, deadline_ns, NULL);
    }
    return membership_list_end_change(r, st, done, &v, deadline_ns, ret, err);
}

tenrec_status membership_list_leave(struct membership_list *r, uint64_t deadline_ns,
                                    struct membership_view *ret, tenrec_error *err)
{
    const struct membership_life mine = { r->id, r->incarnation };
    tenrec_status st = TENREC_OK;

    *ret = (struct membership_view){ .version = 0 };
    if (r->joined)
        st = membership_list_remove(r, &mine, 1, false, deadline_ns, ret, err);
    else
        membership_list_end_request(r, deadline_ns);
    if (st == TENREC_OK)
        r->joined = false;
    return st;
}
