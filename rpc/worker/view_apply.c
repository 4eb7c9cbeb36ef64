/* SPDX-License-Identifier: Apache-2.0 */
/* view_apply.c - applies a new view of the group: adds members that joined, removes members that
 * left with all that waits for them, and calls the program's callbacks. No lock is held meanwhile.
 */
#include "rpc/worker/monitor_inside.h"

#include "core/base/clock.h"
#include "core/base/forks.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "group/meeting/meeting.h"
#include "group/membership/membership.h"
#include "rpc/call/call.h"
#include "rpc/call/calls.h"
#include "rpc/call/observe.h"
#include "rpc/future/thread_state.h"
#include "rpc/rref/rref.h"
#include "rpc/rref/rref_context.h"
#include "rpc/worker/devices.h"
#include "rpc/worker/gather.h"
#include "rpc/worker/membership.h"
#include "rpc/worker/worker.h"

#include <stdlib.h>

enum { RECORDS_MS = 2000 };
enum { ANSWERS_MS = 1000, ANSWERS_FIRST_US = 500, ANSWERS_MOST_US = 20000 };

/* The agent borrows the address until shutdown. */
struct view_apply_member {
    struct view_apply_member *next;
    tenrec_peer id; /* -1: the member has left; only its address is kept */
    struct member record;
};

static struct view_apply_member *known_find(const struct monitor *m, tenrec_peer id,
                                            int64_t incarnation)
{
    struct view_apply_member *k = m->known;

    while (k && (k->id != id || k->record.incarnation != incarnation))
        k = k->next;
    return k;
}

/* Takes `record`. Returns NULL if out of memory. */
static struct view_apply_member *known_add(struct monitor *m, struct member *record)
{
    struct view_apply_member *k = memory_new(1, sizeof *k);

    if (!k)
        return NULL;
    *k = (struct view_apply_member){ m->known, record->rank, *record };
    *record = (struct member){ .rank = -1 };
    m->known = k;
    return k;
}

/* ---- callbacks of the program --------------------------------------------------- */

/* why      a member has left; NULL: a member has joined */
static void view_apply_report(struct monitor *m, tenrec_peer id, const tenrec_error *why)
{
    struct tenrec_worker *w = m->w;
    const struct tenrec_worker_info info = { .name = peers_name(&w->peers, id), .id = id };
    struct tenrec_member_callbacks c;
    const uint32_t forks = forks_seen;
    struct future_scope *scope;

    observe_note(w, why ? NOTE_LEFT : NOTE_JOINED, id, 0, why ? why->code : TENREC_OK, info.name);
    pthread_mutex_lock(&w->lock);
    c = group_of(w)->callbacks;
    pthread_mutex_unlock(&w->lock);
    scope = thread_lend();
    if (why && c.left)
        c.left(w, &info, why, (uint64_t)m->view.version, c.arg);
    else if (!why && c.joined)
        c.joined(w, &info, (uint64_t)m->view.version, c.arg);
    forks_check(forks, "a callback for members");
    thread_back(scope);
}

/* ---- one member ------------------------------------------------------------------ */

/* A member that leaves has answered all calls before, but news of its leave may overtake the
 * answers, which are on another connection. The end of that connection ends the wait, too. */
static void await_answers(struct tenrec_worker *w, tenrec_peer id)
{
    const uint64_t deadline_ns = clock_deadline_ms(ANSWERS_MS);
    struct backoff pause = { ANSWERS_FIRST_US, ANSWERS_MOST_US };

    while (call_waits_for(w, id) && backoff_take(&pause, deadline_ns))
        ;
}

/* Removes the member `e` and fails all that waits for it. */
static void member_remove(struct monitor *m, const struct membership_view_entry *e,
                          const tenrec_error *why)
{
    struct tenrec_worker *w = m->w;
    struct view_apply_member *k = known_find(m, e->id, e->incarnation);
    tenrec_error lost = *why;

    if (why->code == TENREC_OK)
        await_answers(w, e->id);
    lost.code = why->code == TENREC_OK ? TENREC_EPEER_LOST : why->code;
    /* First: a fetch fails because its owner is lost, never because the owner is unknown. */
    rref_peer_gone(rref_context_of(w), e->id);
    rrefs_lost(w, e->id, true, &lost);
    peers_remove(&w->peers, e->id);
    chain_member_left(w->chain, e->id);
    devices_left(w, e->id);
    peers_blame(&w->peers, e->id, &lost);
    call_fail_peer(w, e->id, &lost);
    gather_lost(w, e->id, &lost);
    gather_forget(w, e->name, (uint64_t)e->incarnation);
    disconnects_forget(w, e->id);
    pthread_mutex_lock(&m->lock);
    monitor_gives_up(m, e->id);
    pthread_mutex_unlock(&m->lock);
    if (k)
        k->id = -1;
}

/* Takes `record` always. */
static tenrec_status member_add(struct monitor *m, const struct membership_view_entry *e,
                                struct member *record, tenrec_error *err)
{
    struct tenrec_worker *w = m->w;
    struct view_apply_member *k = known_add(m, record);
    struct tenrec_member member = { .size = sizeof member,
                                    .id = e->id,
                                    .incarnation = (uint64_t)e->incarnation };
    tenrec_status st;

    if (!k) {
        member_free(record);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for worker \"%s\"", e->name);
    }
    st = rref_context_set_name(rref_context_of(w), e->id, e->name, err);
    if (st != TENREC_OK)
        return st;
    disconnects_forget(w, e->id);
    member.name = k->record.name;
    member.address = k->record.address;
    member.token = k->record.token;
    /* First: once the backend knows the member, its messages arrive. */
    devices_joined(w, e->id, e->name, k->record.extra, k->record.extra_len);
    chain_member_joined(w->chain, &member);
    return peers_add(&w->peers, e->id, (uint64_t)e->incarnation, e->name, err);
}

void monitor_leaves(struct monitor *m, tenrec_peer id, int64_t incarnation)
{
    struct tenrec_worker *w = m->w;

    if (known_find(m, id, incarnation) && id != w->self.id)
        peers_remove(&w->peers, id);
}

bool monitor_find_dead(struct monitor *m)
{
    bool ending = false;

    for (size_t i = 0; i < m->beats.n; i++) {
        const struct heartbeat *one = &m->beats.list[i];
        const struct view_apply_member *k;

        if (!one->suspected || !(k = known_find(m, one->id, one->incarnation)))
            continue;
        if (!member_was_here(&k->record))
            continue;
        if (member_runs_here(&k->record))
            ending = ending || one->missed > 0;
        else
            heartbeats_bury(&m->beats, one->id, one->incarnation, clock_now_ns());
    }
    return ending;
}

/* ---- a view ------------------------------------------------------------------------ */

static void describe_departure(struct monitor *m, const struct membership_view *v,
                               const struct membership_view_entry *e, tenrec_error *ret)
{
    const struct membership_view_gone *g = membership_view_find_gone(v, e->incarnation);

    if (g && !g->died)
        tenrec_fail(ret, TENREC_OK, "worker '%s' has left the group", e->name);
    else if (g && g->by >= 0 && *peers_name(&m->w->peers, g->by))
        tenrec_fail(ret, TENREC_EPEER_LOST, "worker '%s' died: detected by '%s'", e->name,
                    peers_name(&m->w->peers, g->by));
    else
        tenrec_fail(ret, TENREC_EPEER_LOST, "worker '%s' died", e->name);
    ret->worker = e->id;
    snprintf(ret->worker_name, sizeof ret->worker_name, "%s", e->name);
}

/* Another member removed this worker from the group. */
static void view_apply_expel(struct monitor *m, const struct membership_view *v,
                             const struct membership_view *before)
{
    struct tenrec_worker *w = m->w;
    const struct membership_view_gone *g = membership_view_find_gone(v, m->incarnation);
    const struct membership_view_entry *by = g ? membership_view_by_id(v, g->by) : NULL;
    tenrec_error why;

    tenrec_fail(&why, TENREC_EGROUP,
                "this worker ('%s', id %d) was removed from group \"%s\"%s%s%s, as it did not "
                "answer; shut it down and initialize it again to rejoin",
                w->self.name, (int)w->self.id, m->list->group, by ? " by '" : "",
                by ? by->name : "", by ? "'" : "");
    peers_blame(&w->peers, w->self.id, &why);
    log_line(TENREC_LOG_ERROR, w->self.name, "%s", why.text);
    pthread_mutex_lock(&m->lock);
    m->expelled = true;
    m->why = why;
    m->beats.n = 0; /* polls no member any more */
    pthread_mutex_unlock(&m->lock);
    m->list->joined = false;
    peers_end(&w->peers, &why);
    for (size_t i = 0; i < before->n; i++)
        if (before->entry[i].incarnation != m->incarnation)
            member_remove(m, &before->entry[i], &why);
    view_apply_report(m, w->self.id, &why);
    pthread_mutex_lock(&m->lock);
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

/* Entries of `v` that are not in `before`, with their records. A member without a record has left
 * already, and is removed from `v`. */
struct fresh {
    struct membership_view_entry *entry; /* owns */
    struct member *record;               /* owns; n */
    size_t n;
};

static void fresh_finish(struct fresh *f)
{
    for (size_t i = 0; f->record && i < f->n; i++)
        member_free(&f->record[i]);
    free(f->entry);
    free(f->record);
}

static tenrec_status fresh_find(struct monitor *m, struct membership_view *v,
                                const struct membership_view *before, struct fresh *ret,
                                tenrec_error *err)
{
    struct fresh f = { .entry = memory_new(v->n ? v->n : 1, sizeof *f.entry),
                       .record = memory_new(v->n ? v->n : 1, sizeof *f.record) };
    size_t kept = 0;
    tenrec_status st = TENREC_OK;

    if (!f.entry || !f.record)
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu workers", v->n);
    for (size_t i = 0; i < v->n && st == TENREC_OK; i++)
        if (!membership_view_find(before, v->entry[i].id, v->entry[i].incarnation))
            f.entry[f.n++] = v->entry[i];
    if (st == TENREC_OK)
        st = membership_list_records(m->list, f.entry, f.n, clock_deadline_ms(RECORDS_MS), f.record,
                                     err);
    if (st != TENREC_OK) {
        free(f.entry);
        free(f.record);
        return st;
    }
    for (size_t i = 0; i < f.n; i++) {
        if (!f.record[i].address) {
            membership_view_remove(v, f.entry[i].id, f.entry[i].incarnation, true, -1);
            continue;
        }
        f.entry[kept] = f.entry[i];
        f.record[kept++] = f.record[i];
    }
    f.n = kept;
    *ret = f;
    return TENREC_OK;
}

/* Removes the members that `v` lacks. */
static void remove_leavers(struct monitor *m, const struct membership_view *v,
                           const struct membership_view *before)
{
    tenrec_error why;

    for (size_t i = 0; i < before->n; i++) {
        const struct membership_view_entry *e = &before->entry[i];
        if (membership_view_find(v, e->id, e->incarnation))
            continue;
        describe_departure(m, v, e, &why);
        log_line(TENREC_LOG_INFO, m->w->self.name, "view %lld: %s", (long long)v->version,
                 why.text);
        member_remove(m, e, &why);
    }
}

static void report_changes(struct monitor *m, const struct membership_view *v,
                           const struct membership_view *before, const struct fresh *f)
{
    tenrec_error why;

    for (size_t i = 0; i < before->n; i++) {
        const struct membership_view_entry *e = &before->entry[i];
        if (membership_view_find(v, e->id, e->incarnation))
            continue;
        describe_departure(m, v, e, &why);
        view_apply_report(m, e->id, &why);
    }
    for (size_t i = 0; i < f->n; i++)
        view_apply_report(m, f->entry[i].id, NULL);
}

tenrec_status monitor_apply(struct monitor *m, struct membership_view *v, tenrec_error *err)
{
    struct membership_view before = { .version = 0 }, mine;
    struct fresh f = { .n = 0 };
    tenrec_status st = TENREC_OK;
    bool member = membership_view_find(v, m->w->self.id, m->incarnation) != NULL, newer;

    pthread_mutex_lock(&m->lock);
    newer = v->version > m->view.version && !m->expelled;
    if (newer)
        st = membership_view_copy(&m->view, &before, err);
    pthread_mutex_unlock(&m->lock);
    if (!newer || st != TENREC_OK)
        goto out;
    if (!member) {
        view_apply_expel(m, v, &before);
        goto out;
    }
    st = fresh_find(m, v, &before, &f, err);
    if (st != TENREC_OK)
        goto out;
    /* First: the program may name a new member as soon as its name resolves. */
    atomic_store(&m->w->calls->view_version, v->version);
    remove_leavers(m, v, &before);
    for (size_t i = 0; i < f.n && st == TENREC_OK; i++) {
        log_line(TENREC_LOG_INFO, m->w->self.name, "view %lld: '%s' (id %d) has joined",
                 (long long)v->version, f.entry[i].name, (int)f.entry[i].id);
        st = member_add(m, &f.entry[i], &f.record[i], err);
    }
    st = st == TENREC_OK ? membership_view_copy(v, &mine, err) : st;
    if (st != TENREC_OK)
        goto out;
    pthread_mutex_lock(&m->lock);
    membership_view_finish(&m->view);
    m->view = mine;
    st = heartbeats_follow(&m->beats, &m->view, m->w->self.id, clock_now_ns(), err);
    pthread_mutex_unlock(&m->lock);
    report_changes(m, v, &before, &f);
    pthread_mutex_lock(&m->lock);
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
out:
    fresh_finish(&f);
    membership_view_finish(&before);
    membership_view_finish(v);
    return st;
}

tenrec_status monitor_begin(struct monitor *m, tenrec_error *err)
{
    const struct membership *group = group_of(m->w)->membership;
    tenrec_status st = membership_view_copy(&group->view, &m->view, err);

    atomic_store(&m->w->calls->view_version, m->view.version);

    for (uint32_t i = 0; i < membership_world(group) && st == TENREC_OK; i++) {
        struct member copy = group->members->list[i];
        copy.address = NULL; /* both owned by the membership */
        copy.extra = NULL;
        if (!known_add(m, &copy))
            st = tenrec_fail(err, TENREC_ENOMEM, "no memory for the members of the group");
    }
    return st;
}

void monitor_end(struct monitor *m)
{
    struct view_apply_member *next;

    for (struct view_apply_member *k = m->known; k; k = next) {
        next = k->next;
        member_free(&k->record);
        free(k);
    }
    membership_view_finish(&m->view);
}
