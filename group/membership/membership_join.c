/* SPDX-License-Identifier: Apache-2.0 */
/* membership_join.c - a worker with an id enters the list, with all that wait. */
#include "group/membership/membership_inside.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "group/membership/group_directory.h"
#include "group/membership/torch_keys.h"

#include <stdlib.h>

static tenrec_status membership_list_publish(struct membership_list *r, const char *address,
                                             const struct store_value *extra, uint64_t deadline_ns,
                                             tenrec_error *err)
{
    struct member me = { .rank = r->id,
                         .incarnation = r->incarnation,
                         .token = r->token,
                         .name = r->name,
                         .backend = r->backend };
    char key[LEASE_KEY];
    tenrec_status st = member_check(r->name, address, extra, err);

    if (st != TENREC_OK)
        return st;
    membership_record_key(key, r->incarnation);
    return member_publish(&me, address, extra, r->store, key, deadline_ns, NULL, err);
}

/* Compares our backend with that of one member, as all members have the same. A member whose
 * process has died refuses no worker. */
static tenrec_status membership_list_check_backend(struct membership_list *r,
                                                   const struct membership_view *v,
                                                   uint64_t deadline_ns, tenrec_error *err)
{
    bool compared = !r->backend;
    tenrec_status st = TENREC_OK;

    for (size_t i = 0; i < v->n && st == TENREC_OK && !compared; i++) {
        struct member m;

        st = membership_list_records(r, &v->entry[i], 1, deadline_ns, &m, err);
        compared = st == TENREC_OK && m.address && m.backend && *m.backend &&
                   (!member_was_here(&m) || member_runs_here(&m));
        if (compared)
            st = member_check_backend(&m, r->group, r->id, r->backend, err);
        member_free(&m);
    }
    return st;
}

/* Removes members from `v` that hold our id or name: they were found dead when the id was reserved,
 * or have joined since the lock was lost. */
static tenrec_status make_room(struct membership_list *r, struct membership_view *v,
                               uint64_t deadline_ns, tenrec_error *err)
{
    const tenrec_peer id = r->id;
    char name[TENREC_NAME_MAX + 1];
    struct conflict c = { .by_name = false };
    bool blocked = false;
    tenrec_status st;

    snprintf(name, sizeof name, "%s", r->name);
    st = conflicts_remove(r, v, id, name, deadline_ns, &c, &blocked, err);
    if (st == TENREC_OK && blocked) {
        st = conflict_fail(r, &c, err);
        tenrec_error_prefix(err, "joining took longer than the lease of the lock");
        member_free(&c.record);
    }
    return st;
}

/* Removes from `v` the members that others name, or that are in our way. */
static tenrec_status take_out_others(struct membership_list *r, struct membership_view *v,
                                     uint64_t deadline_ns, tenrec_error *err)
{
    struct membership_view before = { .version = 0 };
    tenrec_status st = membership_view_copy(v, &before, err);

    if (st == TENREC_OK) {
        requests_remove(&r->requests, v);
        st = make_room(r, v, deadline_ns, err);
    }
    if (st == TENREC_OK && v->n != before.n)
        st = torch_keys_replace(r->torch, &before, v, deadline_ns, err);
    membership_view_finish(&before);
    return st;
}

static tenrec_status publish_once(struct membership_list *r, const char *address,
                                  const struct store_value *extra, uint64_t deadline_ns,
                                  tenrec_error *err)
{
    tenrec_status st =
        r->joined ? TENREC_OK : membership_list_publish(r, address, extra, deadline_ns, err);

    r->joined = r->joined || st == TENREC_OK;
    return st;
}

/* Writes the records of all members of `v` in one value, if many have just joined. Those that have
 * joined are known from their requests. */
static void pack_records(struct membership_list *r, const struct membership_view *v,
                         uint64_t deadline_ns)
{
    const struct requests *q = &r->requests;
    struct membership_view_entry *e = memory_new(v->n, sizeof *e);
    struct member *m = memory_new(v->n, sizeof *m), *old = memory_new(v->n, sizeof *old);
    size_t n = 0;

    for (size_t i = 0; i < q->n && m; i++)
        if (q->list[i].state == REQUEST_READY &&
            membership_view_find(v, q->list[i].id, q->list[i].incarnation))
            m[membership_view_index(v, q->list[i].id)] = q->list[i].record;
    for (size_t i = 0; i < v->n && m && e; i++)
        if (!m[i].name)
            e[n++] = v->entry[i];
    if (!m || !e || !old || v->n - n < MEMBERSHIP_MANY ||
        membership_list_records(r, e, n, deadline_ns, old, NULL) != TENREC_OK)
        n = 0;
    else {
        for (size_t i = 0; i < n; i++)
            m[membership_view_index(v, e[i].id)] = old[i];
        membership_records_pack(r, m, v->n, deadline_ns);
    }
    for (size_t i = 0; i < n; i++)
        member_free(&old[i]);
    free(old);
    free(m);
    free(e);
}

/* Puts us and all that wait into `v`; our record is written before `v` is stored. */
static tenrec_status membership_list_enter(struct membership_list *r, const char *address,
                                           const struct store_value *extra,
                                           struct membership_view *v, uint64_t deadline_ns,
                                           tenrec_error *err)
{
    const struct membership_view_entry me = { r->id, r->incarnation, r->name };
    tenrec_status st = membership_list_check_backend(r, v, deadline_ns, err);

    if (st == TENREC_OK)
        st = take_out_others(r, v, deadline_ns, err);
    if (st == TENREC_OK)
        st = membership_view_add(v, &me, err);
    if (st == TENREC_OK)
        st = requests_enter(&r->requests, v, err);
    v->version++;
    if (st == TENREC_OK)
        st = publish_once(r, address, extra, deadline_ns, err);
    if (st == TENREC_OK)
        pack_records(r, v, deadline_ns);
    return st;
}

/* Notes the address of a life that has joined at its place in `v`. */
static void note_joined(const struct membership_view *v, tenrec_peer id, int64_t incarnation,
                        const char *address, struct torch_member *at)
{
    const struct membership_view_entry *e = membership_view_find(v, id, incarnation);

    if (e)
        at[e - v->entry] = (struct torch_member){ e, address };
}

/* Writes the members that have entered `v` into torch's keys, and a group that begins into the list
 * of groups. */
static tenrec_status tell_readers(struct membership_list *r, const char *address,
                                  const struct membership_view *v, uint64_t deadline_ns,
                                  tenrec_error *err)
{
    const struct requests *q = &r->requests;
    struct torch_member *joined = memory_new(v->n, sizeof *joined);
    struct membership_view before = { .version = 0 };
    size_t n = 0;
    tenrec_status st = TENREC_OK;

    if (!joined)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for torch's keys of %zu workers", v->n);
    note_joined(v, r->id, r->incarnation, address, joined);
    for (size_t i = 0; i < q->n; i++)
        if (q->list[i].state == REQUEST_READY)
            note_joined(v, q->list[i].id, q->list[i].incarnation, q->list[i].record.address,
                        joined);
    for (size_t i = 0; i < v->n && st == TENREC_OK; i++)
        if (joined[i].joined)
            joined[n++] = joined[i];
        else
            st = membership_view_add(&before, &v->entry[i], err);
    if (st == TENREC_OK)
        st = torch_keys_set(r->torch, joined, n, deadline_ns, err);
    if (st == TENREC_OK)
        st = torch_keys_replace(r->torch, &before, v, deadline_ns, err);
    if (st == TENREC_OK && before.n == 0)
        st = group_directory_announce(r->whole, r->group, r->run, 0, 1, deadline_ns, err);
    membership_view_finish(&before);
    free(joined);
    return st;
}

/* Waits for those that join with us: for half of the lease, at most. */
static tenrec_status gather_others(struct membership_list *r, uint64_t deadline_ns,
                                   tenrec_error *err)
{
    const uint64_t half_ns = clock_deadline_ms(r->lock.lease.lease_ms / 2);
    const uint64_t until_ns = half_ns < deadline_ns ? half_ns : deadline_ns;
    bool more = true;
    tenrec_status st = TENREC_OK;

    while (st == TENREC_OK && more) {
        st = membership_list_reserve_others(r, deadline_ns, &more, err);
        if (st == TENREC_OK)
            st = requests_await(r, until_ns, deadline_ns, err);
        more = more && !clock_passed(until_ns);
    }
    return st;
}

/* With the lock. */
static tenrec_status join_all(struct membership_list *r, const char *address,
                              const struct store_value *extra, uint64_t deadline_ns,
                              struct membership_view *v, bool *ret_done, tenrec_error *err)
{
    struct store_value raw = { 0 };
    tenrec_status st = gather_others(r, deadline_ns, err);

    for (int i = 0; i < MEMBERSHIP_TRIES && st == TENREC_OK && !*ret_done; i++) {
        membership_view_finish(v);
        st = membership_list_list(r->store, deadline_ns, v, &raw, err);
        if (st == TENREC_OK && membership_view_find(v, r->id, r->incarnation))
            *ret_done = true; /* only the answer of an earlier attempt was lost */
        else if (st == TENREC_OK &&
                 (st = membership_list_enter(r, address, extra, v, deadline_ns, err)) == TENREC_OK)
            st = membership_list_replace(r, &raw, v, deadline_ns, ret_done, err);
        free(raw.data);
        raw = (struct store_value){ 0 };
    }
    /* A worker that has lost the lock leaves that to the next change. */
    if (st == TENREC_OK && *ret_done && lease_kept(&r->lock.lease, deadline_ns))
        st = tell_readers(r, address, v, deadline_ns, err);
    if (st == TENREC_OK && *ret_done)
        requests_finish(r, v, true, deadline_ns);
    return st;
}

/* Waits until the holder of the lock has entered us, or we have the lock. *ret_done: we are, or
 * were, in `v`. */
static tenrec_status join_by_holder(struct membership_list *r, const char *address,
                                    const struct store_value *extra, uint64_t deadline_ns,
                                    struct membership_view *v, bool *ret_done, tenrec_error *err)
{
    tenrec_status st = publish_once(r, address, extra, deadline_ns, err);

    while (st == TENREC_OK && !*ret_done && !r->lock.lease.held) {
        st = group_lock_acquire(&r->lock, r->name, deadline_ns, err);
        if (st != TENREC_OK || r->lock.lease.held)
            break;
        lease_drop_ticket(&r->lock.lease, deadline_ns);
        membership_view_finish(v);
        st = membership_list_list(r->store, deadline_ns, v, NULL, err);
        *ret_done = st == TENREC_OK && (membership_view_find(v, r->id, r->incarnation) ||
                                        membership_view_find_gone(v, r->incarnation));
    }
    return st;
}

tenrec_status membership_list_join(struct membership_list *r, const char *address,
                                   const struct store_value *extra, uint64_t deadline_ns,
                                   struct membership_view *ret, tenrec_error *err)
{
    struct membership_view v = { .version = 0 };
    bool done = false;
    tenrec_status st = TENREC_OK;

    if (!r->lock.lease.held)
        st = join_by_holder(r, address, extra, deadline_ns, &v, &done, err);
    if (st == TENREC_OK && !done)
        st = join_all(r, address, extra, deadline_ns, &v, &done, err);
    return membership_list_end_change(r, st, done, &v, deadline_ns, ret, err);
}
