/* SPDX-License-Identifier: Apache-2.0 */
#include "group/membership/membership.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "group/membership/group_directory.h"
#include "group/membership/torch_keys.h"

#include <stdlib.h>
#include <string.h>

#define KEY_ROOM 40

enum {
    TRIES = 16,         /* of a change that races with other workers' */
    POLL_US = 100000,   /* between two polls for the holder of our id */
    TOGETHER_MS = 1000, /* to read all records at once */
};

static void record_key(char ret[KEY_ROOM], int64_t incarnation)
{
    snprintf(ret, KEY_ROOM, "member/%lld", (long long)incarnation);
}

/* ---- the list ------------------------------------------------------------------ */

tenrec_status membership_list_list(struct tenrec_store *store, uint64_t deadline_ns,
                                   struct membership_view *ret, struct store_value *ret_raw,
                                   tenrec_error *err)
{
    struct store_value raw;
    tenrec_status st = store_read(store, "view", deadline_ns, &raw, err);

    *ret = (struct membership_view){ .version = 0 };
    if (st == TENREC_OK && raw.data)
        st = membership_view_unpack(&raw, ret, err);
    if (st == TENREC_OK && ret_raw)
        *ret_raw = raw;
    else
        free(raw.data);
    return st;
}

/* Replaces `raw` by `v`; *ret_done is false when the list has changed meanwhile. */
static tenrec_status replace_view(struct membership_list *r, const struct store_value *raw,
                                  const struct membership_view *v, uint64_t deadline_ns,
                                  bool *ret_done, tenrec_error *err)
{
    struct store_value mine = { 0 };
    struct store_value now = { 0 };
    tenrec_status st;

    membership_view_pack(v, &mine);
    if (!mine.data)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a list of %zu workers", v->n);
    st = store_compare_set(r->store, "view", raw, &mine, deadline_ns, &now, err);
    *ret_done = st == TENREC_OK && now.len == mine.len && memcmp(now.data, mine.data, now.len) == 0;
    free(now.data);
    free(mine.data);
    return st;
}

tenrec_status membership_list_read(struct membership_list *r, uint64_t deadline_ns,
                                   struct membership_view *ret, tenrec_error *err)
{
    tenrec_status st = membership_list_list(r->store, deadline_ns, ret, NULL, err);

    if (st == TENREC_OK && ret->version == 0)
        st = tenrec_fail(err, TENREC_EGROUP, "%s has no list of the members of group \"%s\"",
                         tenrec_store_name(r->store), r->group);
    return st;
}

/* The keys of records, and what is under them. */
struct record_read {
    char (*text)[KEY_ROOM];
    const char **key;
    bool *missing;
    struct store_value *value; /* without data: none */
};

static void record_read_finish(struct record_read *r, size_t n)
{
    if (r->value)
        store_values_free(r->value, n);
    free(r->text);
    free(r->key);
    free(r->missing);
    free(r->value);
}

static tenrec_status record_read_init(struct record_read *r, const struct membership_view_entry *e,
                                      size_t n, tenrec_error *err)
{
    *r = (struct record_read){ .text = memory_new(n, sizeof *r->text),
                               .key = memory_new(n, sizeof *r->key),
                               .missing = memory_new(n, sizeof *r->missing),
                               .value = memory_new(n, sizeof *r->value) };
    if (!r->text || !r->key || !r->missing || !r->value)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the records of %zu workers", n);
    for (size_t i = 0; i < n; i++) {
        record_key(r->text[i], e[i].incarnation);
        r->key[i] = r->text[i];
    }
    return TENREC_OK;
}

/* Reads all at once, unless some are missing: then each by itself, as more may be removed. */
static tenrec_status record_read_all(struct record_read *r, struct tenrec_store *store, size_t n,
                                     uint64_t deadline_ns, tenrec_error *err)
{
    const uint64_t soon_ns = clock_deadline_ms(TOGETHER_MS);
    tenrec_status st = store_check_all(store, r->key, n, deadline_ns, r->missing, err);
    bool all = n > 1 && soon_ns < deadline_ns;

    for (size_t i = 0; i < n; i++)
        all = all && !r->missing[i];
    if (st == TENREC_OK && all &&
        store_get_all(store, r->key, n, soon_ns, r->value, NULL, NULL) == TENREC_OK)
        return TENREC_OK;
    for (size_t i = 0; i < n && st == TENREC_OK; i++)
        if (!r->missing[i])
            st = store_read(store, r->key[i], deadline_ns, &r->value[i], err);
    return st;
}

tenrec_status membership_list_records(struct membership_list *r,
                                      const struct membership_view_entry *e, size_t n,
                                      uint64_t deadline_ns, struct member *ret, tenrec_error *err)
{
    struct record_read read;
    tenrec_status st;

    if (n == 0)
        return TENREC_OK;
    st = record_read_init(&read, e, n, err);
    for (size_t i = 0; i < n; i++)
        ret[i] = (struct member){ .rank = -1 };
    if (st == TENREC_OK)
        st = record_read_all(&read, r->store, n, deadline_ns, err);
    for (size_t i = 0; i < n && st == TENREC_OK; i++) {
        if (!read.value[i].data)
            continue;
        st = member_unpack(&read.value[i], &ret[i], err);
        if (st == TENREC_OK && (ret[i].rank != e[i].id || strcmp(ret[i].name, e[i].name) != 0))
            st = tenrec_fail(err, TENREC_EPROTOCOL,
                             "the record of worker \"%s\" belongs to another worker", e[i].name);
    }
    for (size_t i = 0; i < n && st != TENREC_OK; i++)
        member_free(&ret[i]);
    record_read_finish(&read, n);
    return st;
}

static void delete_record(struct membership_list *r, int64_t incarnation, uint64_t deadline_ns)
{
    char key[KEY_ROOM];

    record_key(key, incarnation);
    store_remove(r->store, key, deadline_ns, NULL);
}

/* ---- joining ------------------------------------------------------------------- */

tenrec_status membership_list_open(struct tenrec_store *s, const char *group, const char *run,
                                   uint64_t lease_ms, struct membership_list *ret,
                                   tenrec_error *err)
{
    struct membership_list r = { .whole = s, .id = -1 };
    tenrec_status st = group_directory_part(s, group, run, &r.store, err);

    if (st != TENREC_OK)
        return st;
    snprintf(r.group, sizeof r.group, "%s", group);
    snprintf(r.run, sizeof r.run, "%s", run);
    st = torch_keys_open(s, r.store, group, run, &r.torch, err);
    r.lock.lease = (struct lease){ .store = r.store, .key = "lock", .lease_ms = lease_ms };
    r.lock.torch = r.torch;
    if (st == TENREC_OK)
        *ret = r;
    else
        membership_list_close(&r);
    return st;
}

void membership_list_close(struct membership_list *r)
{
    tenrec_store_close(r->torch);
    tenrec_store_close(r->store);
    *r = (struct membership_list){ .id = -1 };
}

/* The member that has our id or name. */
struct conflict {
    struct membership_view_entry member;
    struct member record;
    bool by_name;
};

static const struct membership_view_entry *
other_with(const struct membership_view *v, tenrec_peer id, const char *name, bool *ret_by_name)
{
    const struct membership_view_entry *e = membership_view_by_id(v, id);

    *ret_by_name = !e;
    return e ? e : membership_view_by_name(v, name);
}

/* Determines our id and name in `v`. */
static tenrec_status membership_list_identify(struct membership_list *r,
                                              const struct membership_view *v, tenrec_peer wished,
                                              const char *pattern, tenrec_error *err)
{
    tenrec_status st;

    r->id = wished >= 0 ? wished : membership_view_free_id(v);
    if (r->id < 0 || r->id >= RANKS_MAX)
        return tenrec_fail(err, TENREC_EGROUP, "group \"%s\" has %zu members, which is the most",
                           r->group, v->n);
    st = ranks_make_name(pattern, r->id, r->name, err);
    return st == TENREC_OK ? ranks_check_name("worker name", r->name, err) : st;
}

/* Removes dead members that hold our id or name from `v`. *ret_blocked: a possibly live member
 * holds it. */
static tenrec_status remove_conflicts(struct membership_list *r, struct membership_view *v,
                                      tenrec_peer wished, const char *pattern, uint64_t deadline_ns,
                                      struct conflict *ret, bool *ret_blocked, tenrec_error *err)
{
    const struct membership_view_entry *e;
    tenrec_status st;

    *ret_blocked = false;
    for (;;) {
        st = membership_list_identify(r, v, wished, pattern, err);
        if (st != TENREC_OK || !(e = other_with(v, r->id, r->name, &ret->by_name)))
            return st;
        ret->member = *e;
        st = membership_list_records(r, &ret->member, 1, deadline_ns, &ret->record, err);
        if (st != TENREC_OK)
            return st;
        if (!member_was_here(&ret->record) || member_runs_here(&ret->record)) {
            *ret_blocked = true;
            return TENREC_OK;
        }
        log_line(TENREC_LOG_INFO, "group",
                 "worker \"%s\" (id %d) of group \"%s\" died: its process %lld does not run any "
                 "more",
                 e->name, (int)e->id, r->group, (long long)ret->record.pid);
        member_free(&ret->record);
        membership_view_remove(v, ret->member.id, ret->member.incarnation, true, r->id);
    }
}

static tenrec_status fail_taken(const struct membership_list *r, const struct conflict *c,
                                tenrec_error *err)
{
    char where[120] = "";

    if (c->record.pid > 0)
        snprintf(where, sizeof where, " (process %lld on %.64s)", (long long)c->record.pid,
                 c->record.host);
    if (c->by_name)
        return tenrec_fail(err, TENREC_EGROUP, "name \"%s\" is used by id %d of group \"%s\"%s",
                           r->name, (int)c->member.id, r->group, where);
    return tenrec_fail(err, TENREC_EGROUP,
                       "id %d of group \"%s\" is taken by worker \"%s\"%s, which has not left",
                       (int)c->member.id, r->group, c->member.name, where);
}

/* The caller holds the lock. */
static tenrec_status try_reserve(struct membership_list *r, tenrec_peer wished, const char *pattern,
                                 uint64_t deadline_ns, struct conflict *ret, bool *ret_blocked,
                                 tenrec_error *err)
{
    struct membership_view v = { .version = 0 };
    tenrec_status st = group_kind_check_torch(r, deadline_ns, NULL, err);

    if (st == TENREC_OK)
        st = group_kind_claim_dynamic(r, deadline_ns, err);
    if (st == TENREC_OK)
        st = membership_list_list(r->store, deadline_ns, &v, NULL, err);
    if (st == TENREC_OK)
        st = remove_conflicts(r, &v, wished, pattern, deadline_ns, ret, ret_blocked, err);
    if (st == TENREC_OK && !*ret_blocked)
        st = store_add(r->store, "incarnations", 1, deadline_ns, &r->incarnation, err);
    membership_view_finish(&v);
    return st;
}

tenrec_status membership_list_reserve(struct membership_list *r, tenrec_peer wished,
                                      const char *pattern, uint64_t deadline_ns, tenrec_error *err)
{
    struct backoff pause = { POLL_US, POLL_US };
    struct conflict c;
    bool blocked = false, here;
    char holder[64];
    tenrec_status st;

    /* Also before the lock, which is torch's, too: a refused worker writes nothing. */
    if ((st = group_kind_check_torch(r, deadline_ns, NULL, err)) != TENREC_OK ||
        (st = member_draw_token(&r->token, err)) != TENREC_OK)
        return st;
    snprintf(holder, sizeof holder, "joiner-%d", (int)wished);
    for (;;) {
        c = (struct conflict){ .by_name = false };
        st = group_lock_acquire(&r->lock, holder, deadline_ns, err);
        if (st == TENREC_OK)
            st = try_reserve(r, wished, pattern, deadline_ns, &c, &blocked, err);
        if (st == TENREC_OK && !blocked)
            return TENREC_OK; /* the lock stays ours */
        group_lock_release(&r->lock, deadline_ns);
        here = blocked && member_was_here(&c.record); /* and still runs */
        if (st == TENREC_OK && (here || clock_passed(deadline_ns)))
            st = fail_taken(r, &c, err);
        member_free(&c.record);
        if (st != TENREC_OK) {
            r->id = -1;
            return st;
        }
        /* On another host: if that member is dead, other members will remove it. */
        backoff_take(&pause, deadline_ns);
    }
}

static tenrec_status membership_list_publish(struct membership_list *r, const char *address,
                                             const struct store_value *extra, uint64_t deadline_ns,
                                             tenrec_error *err)
{
    struct member me = { .rank = r->id,
                         .incarnation = r->incarnation,
                         .token = r->token,
                         .name = r->name,
                         .backend = r->backend };
    char key[KEY_ROOM];
    tenrec_status st = member_check(r->name, address, extra, err);

    if (st != TENREC_OK)
        return st;
    record_key(key, r->incarnation);
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
                               const struct membership_view_entry *me, uint64_t deadline_ns,
                               tenrec_error *err)
{
    struct conflict c = { .by_name = false };
    struct membership_view before = { .version = 0 };
    bool blocked = false;
    tenrec_status st = membership_view_copy(v, &before, err);

    if (st == TENREC_OK)
        st = remove_conflicts(r, v, me->id, me->name, deadline_ns, &c, &blocked, err);
    if (st == TENREC_OK && blocked) {
        st = fail_taken(r, &c, err);
        tenrec_error_prefix(err, "joining took longer than the lease of the lock");
        member_free(&c.record);
    }
    if (st == TENREC_OK && v->n != before.n)
        st = torch_keys_take_out(r->torch, &before, v, deadline_ns, err);
    membership_view_finish(&before);
    return st;
}

static tenrec_status membership_list_add_self(struct membership_list *r, struct membership_view *v,
                                              uint64_t deadline_ns, tenrec_error *err)
{
    struct membership_view_entry me = { .id = r->id, .incarnation = r->incarnation };
    tenrec_status st;

    snprintf(me.name, sizeof me.name, "%s", r->name);
    st = make_room(r, v, &me, deadline_ns, err);
    if (st == TENREC_OK)
        st = membership_view_add(v, &me, err);
    v->version++;
    return st;
}

/* Writes our record before `v` is stored with us in it. */
static tenrec_status membership_list_enter(struct membership_list *r, const char *address,
                                           const struct store_value *extra,
                                           struct membership_view *v, uint64_t deadline_ns,
                                           tenrec_error *err)
{
    tenrec_status st = membership_list_check_backend(r, v, deadline_ns, err);

    if (st == TENREC_OK)
        st = membership_list_add_self(r, v, deadline_ns, err);
    if (st != TENREC_OK || r->joined)
        return st;
    st = membership_list_publish(r, address, extra, deadline_ns, err);
    r->joined = st == TENREC_OK;
    return st;
}

/* Releases the lock; `v`, which is taken, becomes the result. */
static tenrec_status membership_list_end_change(struct membership_list *r, tenrec_status st,
                                                bool done, struct membership_view *v,
                                                uint64_t deadline_ns, struct membership_view *ret,
                                                tenrec_error *err)
{
    group_lock_release(&r->lock, deadline_ns);
    if (st == TENREC_OK && !done)
        st = tenrec_fail(err, TENREC_EAGAIN, "the members of group \"%s\" change too often",
                         r->group);
    if (st == TENREC_OK)
        *ret = *v;
    else
        membership_view_finish(v);
    return st;
}

tenrec_status membership_list_join(struct membership_list *r, const char *address,
                                   const struct store_value *extra, uint64_t deadline_ns,
                                   struct membership_view *ret, tenrec_error *err)
{
    struct store_value raw = { 0 };
    struct membership_view v = { .version = 0 };
    tenrec_status st = TENREC_OK;
    bool done = false;

    for (int i = 0; i < TRIES && st == TENREC_OK && !done; i++) {
        membership_view_finish(&v);
        st = membership_list_list(r->store, deadline_ns, &v, &raw, err);
        if (st == TENREC_OK && membership_view_find(&v, r->id, r->incarnation))
            done = true; /* only the answer of an earlier attempt was lost */
        else if (st == TENREC_OK &&
                 (st = membership_list_enter(r, address, extra, &v, deadline_ns, err)) == TENREC_OK)
            st = replace_view(r, &raw, &v, deadline_ns, &done, err);
        free(raw.data);
        raw = (struct store_value){ 0 };
    }
    /* A worker that has lost the lock leaves that to the next change. */
    if (st == TENREC_OK && done && lease_kept(&r->lock.lease, deadline_ns))
        st = torch_keys_add(r->torch, &v, membership_view_by_id(&v, r->id), address, deadline_ns,
                            err);
    if (st == TENREC_OK && done && v.n == 1)
        st = group_directory_announce(r->whole, r->group, r->run, 0, 1, deadline_ns, err);
    return membership_list_end_change(r, st, done, &v, deadline_ns, ret, err);
}

/* ---- leaving ------------------------------------------------------------------- */

/* Removes a member from `v`, which is stored as `raw`, and replaces that. */
static tenrec_status
membership_list_remove_entry(struct membership_list *r, struct membership_view *v,
                             const struct store_value *raw, tenrec_peer id, int64_t incarnation,
                             bool died, uint64_t deadline_ns, bool *ret_done, tenrec_error *err)
{
    struct membership_view before = { .version = 0 };
    tenrec_status st = TENREC_OK;

    *ret_done = !membership_view_find(v, id, incarnation);
    if (!*ret_done)
        st = membership_view_copy(v, &before, err);
    if (*ret_done || st != TENREC_OK)
        return st;
    membership_view_remove(v, id, incarnation, died, r->id);
    v->version++;
    if (lease_kept(&r->lock.lease, deadline_ns))
        st = torch_keys_take_out(r->torch, &before, v, deadline_ns, err);
    membership_view_finish(&before);
    return st == TENREC_OK ? replace_view(r, raw, v, deadline_ns, ret_done, err) : st;
}

tenrec_status membership_list_remove(struct membership_list *r, tenrec_peer id, int64_t incarnation,
                                     bool died, uint64_t deadline_ns, struct membership_view *ret,
                                     tenrec_error *err)
{
    struct store_value raw = { 0 };
    struct membership_view v = { .version = 0 };
    bool done = false, out = false;
    tenrec_status st = group_lock_acquire(&r->lock, r->name, deadline_ns, err);

    for (int i = 0; i < TRIES && st == TENREC_OK && !done; i++) {
        membership_view_finish(&v);
        st = membership_list_list(r->store, deadline_ns, &v, &raw, err);
        /* A worker that was cut off believes the others dead, but is removed itself. */
        out = done =
            st == TENREC_OK && r->joined && !membership_view_find(&v, r->id, r->incarnation);
        if (st == TENREC_OK && !out)
            st = membership_list_remove_entry(r, &v, &raw, id, incarnation, died, deadline_ns,
                                              &done, err);
        free(raw.data);
        raw = (struct store_value){ 0 };
    }
    if (st == TENREC_OK && !out)
        delete_record(r, incarnation, deadline_ns);
    return membership_list_end_change(r, st, done, &v, deadline_ns, ret, err);
}

tenrec_status membership_list_leave(struct membership_list *r, uint64_t deadline_ns,
                                    struct membership_view *ret, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    *ret = (struct membership_view){ .version = 0 };
    if (r->joined)
        st = membership_list_remove(r, r->id, r->incarnation, false, deadline_ns, ret, err);
    else
        group_lock_release(&r->lock, deadline_ns);
    if (st == TENREC_OK)
        r->joined = false;
    return st;
}
