/* SPDX-License-Identifier: Apache-2.0 */
/* view_apply.c - applies a new view of the group: adds members that joined, removes members that
 * left with all that waits for them, and calls the program's callbacks. No lock is held meanwhile.
 */
#include "rpc/monitor/known.h"
#include "rpc/monitor/monitor_inside.h"

#include "core/base/clock.h"
#include "core/base/forks.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "group/meeting/meeting.h"
#include "group/meeting/membership.h"
#include "group/membership/membership.h"
#include "rpc/call/call.h"
#include "rpc/call/calls.h"
#include "rpc/call/observe.h"
#include "rpc/devices/devices.h"
#include "rpc/future/thread_state.h"
#include "rpc/gather/gather.h"
#include "rpc/rref/rref.h"
#include "rpc/rref/rref_context.h"

#include <stdlib.h>

enum { RECORDS_MS = 2000 };
enum { VERSIONS_MAX = 1 << 20 }; /* by which others may be ahead: more is looked up */
enum { ANSWERS_MS = 1000, ANSWERS_FIRST_US = 500, ANSWERS_MOST_US = 20000 };

/* ---- callbacks of the program --------------------------------------------------- */

/* why      a member has left; NULL: a member has joined */
static void view_apply_report(struct monitor *m, tenrec_peer id, const char *name,
                              const tenrec_error *why)
{
    struct tenrec_worker *w = m->w;
    const struct tenrec_worker_info info = { .name = name, .id = id };
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
    struct known_member *k = known_find(m, e->id, e->incarnation);
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
    gather_forget(w, e->id);
    disconnects_forget(w, e->id);
    pthread_mutex_lock(&m->lock);
    monitor_gives_up(m, e->id);
    pthread_mutex_unlock(&m->lock);
    if (k)
        k->id = -1;
}

/* Takes the record always. */
static tenrec_status member_add(struct monitor *m, struct view_change *c, tenrec_error *err)
{
    struct tenrec_worker *w = m->w;
    struct known_member *k = known_add(m, c->record);
    struct tenrec_member member = { .size = sizeof member,
                                    .id = c->id,
                                    .incarnation = (uint64_t)c->incarnation };
    tenrec_status st;

    if (!k) {
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for worker \"%s\"", c->record->name);
        member_free(c->record);
        return st;
    }
    member.name = k->record.name;
    member.address = k->record.address;
    member.token = k->record.token;
    st = rref_context_set_name(rref_context_of(w), c->id, member.name, err);
    if (st != TENREC_OK)
        return st;
    disconnects_forget(w, c->id);
    /* First: once the backend knows the member, its messages arrive. */
    devices_joined(w, c->id, member.name, k->record.extra, k->record.extra_len);
    chain_member_joined(w->chain, &member);
    return peers_add(&w->peers, c->id, (uint64_t)c->incarnation, member.name, err);
}

bool monitor_suspects(struct tenrec_worker *w, tenrec_peer peer)
{
    struct monitor *m = group_of(w)->monitor;
    const struct membership_view_entry *e;

    if (!m)
        return false;
    pthread_mutex_lock(&m->lock);
    e = membership_view_by_id(&m->view, peer);
    if (e && !m->expelled && !m->stopped) {
        heartbeats_suspect(&m->beats, peer, e->incarnation, clock_now_ns(), NULL);
        m->poll = true;
        m->suspects = true;
    }
    monitor_gives_up(m, peer);
    pthread_mutex_unlock(&m->lock);
    return true;
}

/* ---- a view ------------------------------------------------------------------------ */

static void describe_departure(struct monitor *m, const struct view_change *c, tenrec_error *ret)
{
    const char *name = c->name;

    if (!c->died)
        tenrec_fail(ret, TENREC_OK, "worker '%s' has left the group", name);
    else if (c->by >= 0 && *peers_name(&m->w->peers, c->by))
        tenrec_fail(ret, TENREC_EPEER_LOST, "worker '%s' died: detected by '%s'", name,
                    peers_name(&m->w->peers, c->by));
    else
        tenrec_fail(ret, TENREC_EPEER_LOST, "worker '%s' died", name);
    ret->worker = c->id;
    snprintf(ret->worker_name, sizeof ret->worker_name, "%s", name);
}

/* Another member removed this worker from the group. */
static void view_apply_expel(struct monitor *m, const struct view_change *c)
{
    struct tenrec_worker *w = m->w;
    const struct membership_view_entry *by =
        c->died && c->by != w->self.id ? membership_view_by_id(&m->view, c->by) : NULL;
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
    for (size_t i = 0; i < m->view.n; i++)
        if (m->view.entry[i].incarnation != m->incarnation)
            member_remove(m, &m->view.entry[i], &why);
    view_apply_report(m, w->self.id, w->self.name, &why);
    pthread_mutex_lock(&m->lock);
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

/* Returns true if our own thread has just left the list. If many have left since, the list does not
 * remember how. */
static bool has_left_itself(struct monitor *m, const struct view_change *c)
{
    bool departs;

    pthread_mutex_lock(&m->lock);
    departs = m->departs;
    pthread_mutex_unlock(&m->lock);
    return departs && (!c->died || c->by < 0);
}

static tenrec_status apply_joined(struct monitor *m, struct view_change *c, int64_t version,
                                  tenrec_error *err)
{
    log_line(TENREC_LOG_INFO, m->w->self.name, "view %lld: '%s' (id %d) has joined",
             (long long)version, c->record->name, (int)c->id);
    return member_add(m, c, err);
}

static void apply_left(struct monitor *m, struct view_change *c, int64_t version)
{
    const struct membership_view_entry *e = membership_view_find(&m->view, c->id, c->incarnation);
    tenrec_error why;

    c->name = peers_name(&m->w->peers, c->id);
    describe_departure(m, c, &why);
    log_line(TENREC_LOG_INFO, m->w->self.name, "view %lld: %s", (long long)version, why.text);
    member_remove(m, e, &why);
}

/* Makes the changes visible. Lock held. */
static tenrec_status view_replace(struct monitor *m, int64_t version, const struct view_change *c,
                                  size_t n, tenrec_error *err)
{
    const uint64_t batch = m->log.last + 1;
    tenrec_status st = TENREC_OK;

    for (size_t i = 0; i < n; i++)
        if (c[i].kind == CHANGE_LEFT)
            membership_view_remove(&m->view, c[i].id, c[i].incarnation, c[i].died, c[i].by);
    for (size_t i = 0; i < n && st == TENREC_OK; i++) {
        const struct membership_view_entry e = { c[i].id, c[i].incarnation,
                                                 peers_name(&m->w->peers, c[i].id) };

        view_log_add(&m->log, &c[i], batch);
        if (c[i].kind != CHANGE_JOINED)
            continue;
        st = membership_view_add(&m->view, &e, err);
    }
    if (st != TENREC_OK)
        return st;
    m->view.version = version;
    m->pump = true;
    return heartbeats_follow(&m->beats, &m->view, m->w->self.id, clock_now_ns(), err);
}

/* Applies changes of our view, which lead to `version`; their records are taken as far as they are
 * applied. The caller may retry after a failure. No lock held. */
static tenrec_status apply_changes(struct monitor *m, int64_t version, struct view_change *c,
                                   size_t n, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;
    tenrec_error why;

    for (size_t i = 0; i < n; i++)
        if (c[i].kind == CHANGE_LEFT && c[i].incarnation == m->incarnation) {
            if (!has_left_itself(m, &c[i]))
                view_apply_expel(m, &c[i]);
            return TENREC_OK;
        }
    /* First: the program may name a new member as soon as its name resolves. */
    atomic_store(&m->w->calls->view_version, version);
    for (size_t i = 0; i < n; i++)
        if (c[i].kind == CHANGE_LEFT)
            apply_left(m, &c[i], version);
    for (size_t i = 0; i < n && st == TENREC_OK; i++)
        if (c[i].kind == CHANGE_JOINED)
            st = apply_joined(m, &c[i], version, err);
    if (st != TENREC_OK)
        return st;
    pthread_mutex_lock(&m->lock);
    st = view_replace(m, version, c, n, err);
    pthread_mutex_unlock(&m->lock);
    for (size_t i = 0; i < n; i++)
        if (c[i].kind == CHANGE_LEFT) {
            describe_departure(m, &c[i], &why);
            view_apply_report(m, c[i].id, c[i].name, &why);
        }
    for (size_t i = 0; i < n; i++)
        if (c[i].kind == CHANGE_JOINED)
            view_apply_report(m, c[i].id, peers_name(&m->w->peers, c[i].id), NULL);
    pthread_mutex_lock(&m->lock);
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    return st;
}

/* Entries of `v` that are not in our view. */
static size_t find_joined(const struct monitor *m, const struct membership_view *v,
                          struct membership_view_entry *ret)
{
    size_t n = 0;

    for (size_t i = 0; i < v->n; i++)
        if (!membership_view_find(&m->view, v->entry[i].id, v->entry[i].incarnation))
            ret[n++] = v->entry[i];
    return n;
}

static size_t find_left(const struct monitor *m, const struct membership_view *v,
                        struct view_change *ret)
{
    size_t n = 0;

    for (size_t i = 0; i < m->view.n; i++) {
        const struct membership_view_entry *e = &m->view.entry[i];
        const struct known_member *k = known_find(m, e->id, e->incarnation);
        const struct membership_view_gone *g;

        if (membership_view_find(v, e->id, e->incarnation))
            continue;
        /* The list remembers only some of many that leave together. */
        g = membership_view_find_gone(v, e->incarnation);
        ret[n++] = (struct view_change){ .kind = CHANGE_LEFT,
                                         .id = e->id,
                                         .incarnation = e->incarnation,
                                         .died = g ? g->died : !k || !k->leaving,
                                         .by = g ? g->by : -1 };
    }
    return n;
}

/* Reads the records of the members that joined. A member without a record has left already. */
static tenrec_status read_joined(struct monitor *m, const struct membership_view *v,
                                 struct view_change *c, size_t *ret_n, tenrec_error *err)
{
    struct membership_view_entry *e = memory_new(v->n ? v->n : 1, sizeof *e);
    size_t n = e ? find_joined(m, v, e) : 0, kept = 0;
    struct member *record = memory_new(n ? n : 1, sizeof *record);
    tenrec_status st = e && record
                           ? TENREC_OK
                           : tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu workers", v->n);

    if (st == TENREC_OK)
        st = membership_list_records(m->list, e, n, clock_deadline_ms(RECORDS_MS), record, err);
    for (size_t i = 0; i < n && st == TENREC_OK; i++) {
        if (!record[i].address)
            continue;
        if (!(c[kept].record = memory_new(1, sizeof *c->record))) {
            st = tenrec_fail(err, TENREC_ENOMEM, "no memory for worker \"%s\"", e[i].name);
            break;
        }
        c[kept].kind = CHANGE_JOINED;
        c[kept].id = e[i].id;
        c[kept].incarnation = e[i].incarnation;
        *c[kept++].record = record[i];
        record[i] = (struct member){ 0 };
    }
    for (size_t i = 0; i < n && record; i++)
        member_free(&record[i]);
    free(record);
    free(e);
    *ret_n = kept;
    return st;
}

tenrec_status monitor_apply(struct monitor *m, struct membership_view *v, tenrec_error *err)
{
    struct view_news news = { .members = v->n };
    size_t joined = 0;
    tenrec_status st = TENREC_OK;
    bool newer;

    pthread_mutex_lock(&m->lock);
    newer = v->version > m->view.version && !m->expelled && !m->departed;
    pthread_mutex_unlock(&m->lock);
    if (!newer)
        goto out;
    news.change = memory_new(m->view.n + v->n + 1, sizeof *news.change);
    if (!news.change) {
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu workers", v->n);
        goto out;
    }
    news.n = find_left(m, v, news.change);
    if (membership_view_find(v, m->w->self.id, m->incarnation))
        st = read_joined(m, v, news.change + news.n, &joined, err);
    news.n += joined;
    if (st == TENREC_OK)
        st = apply_changes(m, v->version, news.change, news.n, err);
out:
    view_news_finish(&news);
    membership_view_finish(v);
    return st;
}

/* ---- what another member tells --------------------------------------------------- */

void monitor_leaves(struct monitor *m, tenrec_peer id, int64_t incarnation)
{
    struct tenrec_worker *w = m->w;
    struct known_member *k = known_find(m, id, incarnation);

    if (!k || id == w->self.id)
        return;
    k->leaving = true;
    peers_remove(&w->peers, id);
}

/* Returns true if the worker's name may be given to a life that joined. */
static bool name_is_free(struct monitor *m, const struct view_news *n, const char *name)
{
    tenrec_peer id;

    if (peers_find(&m->w->peers, name, &id, NULL) != TENREC_OK)
        return true;
    for (size_t i = 0; i < n->n; i++)
        if (n->change[i].kind == CHANGE_LEFT && n->change[i].id == id)
            return true;
    return false;
}

/* Leaves only those changes in `n` that our view lacks. Returns true if they lead to the view of
 * their sender, whatever view they began with. */
static bool news_connect(struct monitor *m, struct view_news *n)
{
    uint64_t sum = m->view.sum;
    size_t members = m->view.n, kept = 0;
    bool fit = n->members > 0;

    for (size_t i = 0; i < n->n; i++) {
        struct view_change *c = &n->change[i];
        const bool there = membership_view_find(&m->view, c->id, c->incarnation) != NULL;

        if (c->kind == CHANGE_LEAVING || there == (c->kind == CHANGE_JOINED)) {
            if (c->record)
                member_free(c->record);
            free(c->record);
            continue;
        }
        if (there) {
            members--;
            sum -= membership_view_sum_of(c->id, c->incarnation);
        } else {
            members++;
            sum += membership_view_sum_of(c->id, c->incarnation);
            fit = fit && name_is_free(m, n, c->record->name);
        }
        n->change[kept++] = *c;
    }
    n->n = kept;
    return fit && members == n->members && sum == n->sum;
}

/* Two lives may not have one id after the changes. */
static bool ids_are_free(const struct monitor *m, const struct view_news *n)
{
    for (size_t i = 0; i < n->n; i++) {
        const struct membership_view_entry *e = membership_view_by_id(&m->view, n->change[i].id);
        bool ends = !e;

        if (n->change[i].kind != CHANGE_JOINED)
            continue;
        for (size_t k = 0; k < n->n; k++) {
            if (k != i && n->change[k].kind == CHANGE_JOINED && n->change[k].id == n->change[i].id)
                return false;
            ends = ends ||
                   (n->change[k].kind == CHANGE_LEFT && n->change[k].incarnation == e->incarnation);
        }
        if (!ends)
            return false;
    }
    return true;
}

static void hear_leaving(struct monitor *m, const struct view_news *n)
{
    for (size_t i = 0; i < n->n; i++) {
        const struct view_change *c = &n->change[i];

        if (c->kind != CHANGE_LEAVING || c->id == m->w->self.id ||
            !known_find(m, c->id, c->incarnation) || !peers_has(&m->w->peers, c->id))
            continue;
        monitor_leaves(m, c->id, c->incarnation);
        pthread_mutex_lock(&m->lock);
        view_log_add(&m->log, c, m->log.last + 1);
        pthread_mutex_unlock(&m->lock);
    }
}

bool monitor_hear(struct monitor *m, int64_t version, struct view_news *n)
{
    tenrec_error why;

    hear_leaving(m, n);
    if (version <= m->view.version)
        return true;
    if (version - m->view.version > VERSIONS_MAX || !news_connect(m, n) || !ids_are_free(m, n))
        return false;
    if (apply_changes(m, version, n->change, n->n, &why) == TENREC_OK)
        return true;
    log_line(TENREC_LOG_WARN, m->w->self.name, "cannot apply view %lld: %s", (long long)version,
             why.text);
    return false;
}

tenrec_status monitor_begin(struct monitor *m, tenrec_error *err)
{
    struct membership *group = group_of(m->w)->membership;
    struct members *records = membership_take_records(group);
    tenrec_status st = TENREC_OK;

    m->view = group->view;
    group->view = (struct membership_view){ .version = 0 };
    atomic_store(&m->w->calls->view_version, m->view.version);
    m->log.last = 1;

    for (int32_t i = 0; i < records->n && st == TENREC_OK; i++)
        if (!known_add(m, &records->list[i]))
            st = tenrec_fail(err, TENREC_ENOMEM, "no memory for the members of the group");
    members_drop(records);
    return st;
}

void monitor_end(struct monitor *m)
{
    known_finish(m);
    view_log_finish(&m->log);
    membership_view_finish(&m->view);
}
