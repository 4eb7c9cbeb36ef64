/* SPDX-License-Identifier: Apache-2.0 */
#include "group/membership/membership.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "group/membership/group_directory.h"
#include "group/membership/torch_keys.h"

#include <stdlib.h>
#include <string.h>

enum {
    TRIES = 16,       /* of a change that races with other workers' */
    POLL_US = 100000, /* between two polls for the holder of our id */
};

void membership_record_key(char ret[LEASE_KEY], int64_t incarnation)
{
    snprintf(ret, LEASE_KEY, "member/%lld", (long long)incarnation);
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
    char (*text)[LEASE_KEY];
    const char **key;
    struct store_value *value; /* without data: none */
};

static void record_read_finish(struct record_read *r, size_t n)
{
    if (r->value)
        store_values_free(r->value, n);
    free(r->text);
    free(r->key);
    free(r->value);
}

static tenrec_status record_read_init(struct record_read *r, const struct membership_view_entry *e,
                                      size_t n, tenrec_error *err)
{
    *r = (struct record_read){ .text = memory_new(n, sizeof *r->text),
                               .key = memory_new(n, sizeof *r->key),
                               .value = memory_new(n, sizeof *r->value) };
    if (!r->text || !r->key || !r->value)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the records of %zu workers", n);
    for (size_t i = 0; i < n; i++) {
        membership_record_key(r->text[i], e[i].incarnation);
        r->key[i] = r->text[i];
    }
    return TENREC_OK;
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
        st = store_read_all(r->store, read.key, n, deadline_ns, read.value, err);
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
    requests_forget(&r->requests);
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

/* Asks a holder of the lock for an id, or acquires the lock. */
static tenrec_status ask_to_join(struct membership_list *r, tenrec_peer wished, const char *pattern,
                                 uint64_t deadline_ns, tenrec_error *err)
{
    struct request q = { .kind = REQUEST_JOIN, .id = wished };
    struct member me = { .rank = -1 };
    struct lease *l = &r->lock.lease;
    char holder[64];
    tenrec_status st;

    snprintf(holder, sizeof holder, "joiner-%d", (int)wished);
    snprintf(q.name, sizeof q.name, "%s", pattern);
    member_describe_process(&me, &q.place);
    q.pid = me.pid;
    q.start = me.start;
    request_pack(&q, &l->wants);
    if (!l->wants.data)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a request to join");
    st = group_lock_acquire(&r->lock, holder, deadline_ns, err);
    free(l->wants.data);
    l->wants = (struct store_value){ .data = NULL };
    if (st != TENREC_OK || l->held)
        return st;
    l->waits = LEASE_AGAIN;
    st = request_read_answer(l->answer, wished, &r->id, &r->incarnation, err);
    return st == TENREC_OK ? ranks_make_name(pattern, r->id, r->name, err) : st;
}

/* Our change has ended: releases the lock, or gives up what was asked of its holder. */
static void end_request(struct membership_list *r, uint64_t deadline_ns)
{
    group_lock_release(&r->lock, deadline_ns);
    lease_drop_ticket(&r->lock.lease, deadline_ns);
    requests_forget(&r->requests);
}

/* Gives ids to others that wait. */
static tenrec_status reserve_others(struct membership_list *r, uint64_t deadline_ns, bool *ret_some,
                                    tenrec_error *err)
{
    tenrec_status st = requests_load(r, deadline_ns, err);

    return st == TENREC_OK ? requests_reserve(r, deadline_ns, ret_some, err) : st;
}

tenrec_status membership_list_reserve(struct membership_list *r, tenrec_peer wished,
                                      const char *pattern, uint64_t deadline_ns, tenrec_error *err)
{
    struct backoff pause = { POLL_US, POLL_US };
    struct conflict c;
    bool blocked = false, here, some;
    tenrec_status st;

    /* Also before the lock, which is torch's, too: a refused worker writes nothing. */
    if ((st = group_kind_check_torch(r, deadline_ns, NULL, err)) != TENREC_OK ||
        (st = member_draw_token(&r->token, err)) != TENREC_OK)
        return st;
    for (;;) {
        c = (struct conflict){ .by_name = false };
        st = ask_to_join(r, wished, pattern, deadline_ns, err);
        if (st == TENREC_OK && !r->lock.lease.held)
            return st; /* the holder waits for our record */
        if (st == TENREC_OK)
            st = try_reserve(r, wished, pattern, deadline_ns, &c, &blocked, err);
        if (st == TENREC_OK && !blocked)
            st = reserve_others(r, deadline_ns, &some, err);
        if (st == TENREC_OK && !blocked)
            return st; /* the lock stays ours */
        end_request(r, deadline_ns);
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
    st = remove_conflicts(r, v, id, name, deadline_ns, &c, &blocked, err);
    if (st == TENREC_OK && blocked) {
        st = fail_taken(r, &c, err);
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
        st = torch_keys_take_out(r->torch, &before, v, deadline_ns, err);
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

/* Puts us and all that wait into `v`; our record is written before `v` is stored. */
static tenrec_status membership_list_enter(struct membership_list *r, const char *address,
                                           const struct store_value *extra,
                                           struct membership_view *v, uint64_t deadline_ns,
                                           tenrec_error *err)
{
    struct membership_view_entry me = { .id = r->id, .incarnation = r->incarnation };
    tenrec_status st = membership_list_check_backend(r, v, deadline_ns, err);

    snprintf(me.name, sizeof me.name, "%s", r->name);
    if (st == TENREC_OK)
        st = take_out_others(r, v, deadline_ns, err);
    if (st == TENREC_OK)
        st = membership_view_add(v, &me, err);
    if (st == TENREC_OK)
        st = requests_enter(&r->requests, v, err);
    v->version++;
    return st == TENREC_OK ? publish_once(r, address, extra, deadline_ns, err) : st;
}

/* Releases the lock; `v`, which is taken, becomes the result. */
static tenrec_status membership_list_end_change(struct membership_list *r, tenrec_status st,
                                                bool done, struct membership_view *v,
                                                uint64_t deadline_ns, struct membership_view *ret,
                                                tenrec_error *err)
{
    end_request(r, deadline_ns);
    if (st == TENREC_OK && !done)
        st = tenrec_fail(err, TENREC_EAGAIN, "the members of group \"%s\" change too often",
                         r->group);
    if (st == TENREC_OK)
        *ret = *v;
    else
        membership_view_finish(v);
    return st;
}

/* Writes the members that have entered `v` into torch's keys, and a group that begins into the list
 * of groups. */
static tenrec_status tell_readers(struct membership_list *r, const char *address,
                                  const struct membership_view *v, uint64_t deadline_ns,
                                  tenrec_error *err)
{
    const struct requests *q = &r->requests;
    struct membership_view before = { .version = 0 };
    tenrec_status st = membership_view_copy(v, &before, err);

    if (st == TENREC_OK)
        st = torch_keys_set(r->torch, membership_view_by_id(v, r->id), address, deadline_ns, err);
    membership_view_remove(&before, r->id, r->incarnation, false, -1);
    for (size_t i = 0; i < q->n && st == TENREC_OK; i++) {
        const struct membership_view_entry *e =
            membership_view_find(v, q->list[i].id, q->list[i].incarnation);

        if (q->list[i].state != REQUEST_READY || !e)
            continue;
        st = torch_keys_set(r->torch, e, q->list[i].record.address, deadline_ns, err);
        membership_view_remove(&before, e->id, e->incarnation, false, -1);
    }
    if (st == TENREC_OK)
        st = torch_keys_add(r->torch, &before, v, deadline_ns, err);
    if (st == TENREC_OK && before.n == 0)
        st = group_directory_announce(r->whole, r->group, r->run, 0, 1, deadline_ns, err);
    membership_view_finish(&before);
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
        st = reserve_others(r, deadline_ns, &more, err);
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

    for (int i = 0; i < TRIES && st == TENREC_OK && !*ret_done; i++) {
        membership_view_finish(v);
        st = membership_list_list(r->store, deadline_ns, v, &raw, err);
        if (st == TENREC_OK && membership_view_find(v, r->id, r->incarnation))
            *ret_done = true; /* only the answer of an earlier attempt was lost */
        else if (st == TENREC_OK &&
                 (st = membership_list_enter(r, address, extra, v, deadline_ns, err)) == TENREC_OK)
            st = replace_view(r, &raw, v, deadline_ns, ret_done, err);
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

/* ---- leaving ------------------------------------------------------------------- */

/* Removes a member from `v`, which is stored as `raw`, with all that others remove, and replaces
 * that. */
static tenrec_status membership_list_remove_entry(struct membership_list *r,
                                                  struct membership_view *v,
                                                  const struct store_value *raw,
                                                  const struct request *mine, uint64_t deadline_ns,
                                                  bool *ret_done, tenrec_error *err)
{
    struct membership_view before = { .version = 0 };
    tenrec_status st = membership_view_copy(v, &before, err);

    if (st != TENREC_OK)
        return st;
    membership_view_remove(v, mine->id, mine->incarnation, mine->died, mine->by);
    requests_remove(&r->requests, v);
    *ret_done = v->n == before.n;
    v->version += !*ret_done;
    if (!*ret_done && lease_kept(&r->lock.lease, deadline_ns))
        st = torch_keys_take_out(r->torch, &before, v, deadline_ns, err);
    if (st == TENREC_OK && !*ret_done)
        st = replace_view(r, raw, v, deadline_ns, ret_done, err);
    membership_view_finish(&before);
    return st;
}

static bool is_out(const struct membership_list *r, const struct membership_view *v)
{
    return r->joined && !membership_view_find(v, r->id, r->incarnation);
}

/* With the lock. */
static tenrec_status remove_all(struct membership_list *r, const struct request *mine,
                                uint64_t deadline_ns, struct membership_view *v, bool *ret_done,
                                tenrec_error *err)
{
    struct store_value raw = { 0 };
    tenrec_status st = requests_load(r, deadline_ns, err);

    for (int i = 0; i < TRIES && st == TENREC_OK && !*ret_done; i++) {
        membership_view_finish(v);
        st = membership_list_list(r->store, deadline_ns, v, &raw, err);
        /* A worker that was cut off believes the others dead, but is removed itself. */
        *ret_done = st == TENREC_OK && is_out(r, v);
        if (st == TENREC_OK && !*ret_done)
            st = membership_list_remove_entry(r, v, &raw, mine, deadline_ns, ret_done, err);
        else if (st == TENREC_OK)
            requests_forget(&r->requests); /* the next holder serves them */
        free(raw.data);
        raw = (struct store_value){ 0 };
    }
    if (st == TENREC_OK && *ret_done)
        requests_finish(r, v, false, deadline_ns);
    return st;
}

/* Asks a holder of the lock to do it, or does so with the lock. */
static tenrec_status remove_or_ask(struct membership_list *r, const struct request *mine,
                                   uint64_t deadline_ns, struct membership_view *v, bool *ret_done,
                                   tenrec_error *err)
{
    struct lease *l = &r->lock.lease;
    tenrec_status st;

    request_pack(mine, &l->wants);
    if (!l->wants.data)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a request to remove a member");
    st = group_lock_acquire(&r->lock, r->name, deadline_ns, err);
    free(l->wants.data);
    l->wants = (struct store_value){ .data = NULL };
    if (st == TENREC_OK && l->held)
        return remove_all(r, mine, deadline_ns, v, ret_done, err);
    lease_drop_ticket(l, deadline_ns);
    if (st != TENREC_OK)
        return st;
    membership_view_finish(v);
    st = membership_list_list(r->store, deadline_ns, v, NULL, err);
    *ret_done =
        st == TENREC_OK && (is_out(r, v) || !membership_view_find(v, mine->id, mine->incarnation));
    return st;
}

tenrec_status membership_list_remove(struct membership_list *r, tenrec_peer id, int64_t incarnation,
                                     bool died, uint64_t deadline_ns, struct membership_view *ret,
                                     tenrec_error *err)
{
    const struct request mine = { .kind = REQUEST_REMOVE,
                                  .id = id,
                                  .incarnation = incarnation,
                                  .died = died,
                                  .by = r->id,
                                  .by_incarnation = r->incarnation };
    struct membership_view v = { .version = 0 };
    bool done = false;
    tenrec_status st = TENREC_OK;
    char key[LEASE_KEY];

    for (int i = 0; i < TRIES && st == TENREC_OK && !done; i++)
        st = remove_or_ask(r, &mine, deadline_ns, &v, &done, err);
    if (st == TENREC_OK && (id == r->id || !is_out(r, &v))) {
        membership_record_key(key, incarnation);
        store_remove(r->store, key, deadline_ns, NULL);
    }
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
        end_request(r, deadline_ns);
    if (st == TENREC_OK)
        r->joined = false;
    return st;
}
