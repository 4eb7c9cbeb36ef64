/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.c - requests that all members know, along the tree of spread.h. A member asks its parent,
 * which asks its own, up to the lowest member; that one covers all ids: it asks the leaders of
 * blocks, which ask theirs. One request is under way to each, which stands for all that have
 * arrived meanwhile. monitor.lock guards the state. */
#include "rpc/monitor/monitor_inside.h"

#include "core/base/clock.h"
#include "core/base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { STRANGERS_MAX = 64 };

void sweep_free(struct sweep *s)
{
    free(s->news);
    free(s);
}

/* Out of memory it is asked again. */
void sweep_shun(struct monitor *m, const struct spread_child *c)
{
    const size_t id = (size_t)c->id, room = id + id / 2 + 16;
    int64_t *more;

    if (id >= m->n_shunned && (more = memory_resize(m->shunned, room, sizeof *more))) {
        memset(more + m->n_shunned, 0, (room - m->n_shunned) * sizeof *more);
        m->shunned = more;
        m->n_shunned = room;
    }
    if (id < m->n_shunned)
        m->shunned[id] = c->incarnation;
}

void sweep_shun_no_more(struct monitor *m, tenrec_peer id)
{
    if (id >= 0 && (size_t)id < m->n_shunned)
        m->shunned[id] = 0;
}

/* A member that has said that it leaves takes no calls any more: it needs no news, and no worker
 * waits for its answer. So members that leave together have no worker to tell. */
static bool is_skipped(void *arg, const struct membership_view_entry *e)
{
    const struct monitor *m = arg;

    return monitor_is_leaving(m, e->id, e->incarnation) ||
           ((size_t)e->id < m->n_shunned && m->shunned[e->id] == e->incarnation) ||
           heartbeats_suspects(&m->beats, e->id, e->incarnation);
}

static bool is_member(const struct monitor *m)
{
    return !m->expelled && !m->departed && !m->stopped;
}

/* The member that this worker asks to tell all: a lower one, or, when it was the lowest and has
 * left, any other. */
enum parent { PARENT_NONE, PARENT_LOWER, PARENT_ANY };

static enum parent find_parent(struct monitor *m, struct spread_child *ret)
{
    const struct spread_skips skips = { is_skipped, m };

    if (m->expelled || m->stopped)
        return PARENT_NONE;
    if (spread_parent(&m->view, m->w->self.id, &skips, ret))
        return PARENT_LOWER;
    for (size_t i = 0; m->departed && i < m->view.n; i++) {
        const struct membership_view_entry *e = &m->view.entry[i];

        if (e->incarnation == m->incarnation || is_skipped(m, e))
            continue;
        *ret = (struct spread_child){ e->id, e->incarnation, SPREAD_ALL };
        return PARENT_ANY;
    }
    return PARENT_NONE;
}

/* ---- requests ------------------------------------------------------------------------------ */

static struct sweep *sweep_take_out(struct sweep **at)
{
    struct sweep *s = *at;

    *at = s->next;
    s->next = NULL;
    return s;
}

/* Finds what `s` replaces: a sender has one request of a kind under way, and its earlier one was
 * given up; strangers have some together. *ret_late: `s` is older, or a repetition. */
static struct sweep **sweep_find_old(struct monitor *m, const struct sweep *s, bool *ret_late)
{
    struct sweep **oldest = NULL;
    size_t strangers = 0;

    *ret_late = false;
    for (struct sweep **at = &m->sweeps; *at; at = &(*at)->next) {
        if ((*at)->own || (*at)->stranger != s->stranger)
            continue;
        if (s->stranger) {
            oldest = strangers++ ? oldest : at;
            continue;
        }
        if ((*at)->from != s->from || (*at)->kind != s->kind)
            continue;
        *ret_late = (*at)->incarnation == s->incarnation && (*at)->msg_id >= s->msg_id;
        return at;
    }
    return strangers < STRANGERS_MAX ? NULL : oldest;
}

struct sweep *sweep_add(struct monitor *m, struct sweep *s)
{
    struct sweep **at = &m->sweeps, **old = NULL;
    struct sweep *replaced = NULL;
    bool late = false;

    if (!s->own)
        old = sweep_find_old(m, s, &late);
    if (late) {
        sweep_free(s);
        return NULL;
    }
    if (old)
        replaced = sweep_take_out(old);
    while (*at)
        at = &(*at)->next;
    s->next = NULL;
    s->since_ns = clock_now_ns();
    *at = s;
    m->pump = true;
    monitor_wake(m);
    if (replaced && !replaced->stranger) {
        sweep_free(replaced);
        replaced = NULL;
    }
    return replaced;
}

enum sweep_state { SWEEP_WAITS, SWEEP_DONE, SWEEP_REFUSED };

/* The store has been read since, and has no such version. */
static bool is_false(const struct monitor *m, const struct sweep *s)
{
    return m->read_ns > s->since_ns;
}

/* What `s` waits for, when its parts above are known. Raises what blocks must know. A member that
 * has left still passes on what a lower one will answer: many that leave together would have to
 * find the last that stays one after the other. */
static enum sweep_state sweep_prepare(struct monitor *m, struct sweep *s, enum parent parent,
                                      unsigned *level, uint64_t *need)
{
    const bool up = s->kind == SWEEP_UP && parent != PARENT_NONE;

    if (!s->own && !is_member(m) && !(up && parent == PARENT_LOWER))
        return SWEEP_REFUSED;
    if (up && (!s->stranger || m->departed || s->version <= m->view.version)) {
        if (!s->number)
            s->number = ++m->ups.asked;
        return m->ups.confirmed >= s->number ? SWEEP_DONE : SWEEP_WAITS;
    }
    if (s->version > m->view.version && !m->departed) {
        if (is_false(m, s) && !s->own)
            return SWEEP_REFUSED;
        m->poll = true;
        return SWEEP_WAITS;
    }
    if (up)
        return SWEEP_WAITS;
    if (!s->need)
        s->need = m->log.last;
    if (s->level > *level)
        *level = s->level;
    if (s->need > *need)
        *need = s->need;
    return SWEEP_WAITS;
}

/* Returns true if all of the block know what `s` needs. */
static bool sweep_is_covered(const struct monitor *m, const struct sweep *s,
                             const struct spread_child *child, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (child[i].level < s->level && sweep_block_number(m, &child[i]) < s->need)
            return false;
    return true;
}

/* Messages that are sent without the lock. */
struct outbox {
    struct sweep_send send[SPREAD_CHILDREN + 1];
    size_t n;
    struct sweep *done, *refused;
    bool own; /* one of them is of this worker */
};

static void ask_children(struct monitor *m, const struct spread_child *child, size_t n,
                         uint64_t need, struct outbox *out)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t after = sweep_block_number(m, &child[i]);
        struct sweep_send *s = &out->send[out->n];

        if (after >= need || monitor_sweep_waits(m, &child[i], SWEEP_DOWN))
            continue;
        if (!after)
            after = view_log_before_join(&m->log, child[i].incarnation);
        *s = (struct sweep_send){
            .to = child[i], .kind = SWEEP_DOWN, .version = m->view.version, .covers = m->log.last
        };
        sweep_pack_changes(m, after, after != 0, &s->news);
        out->n++;
    }
}

static void ask_parent(struct monitor *m, const struct spread_child *parent, struct outbox *out)
{
    struct sweep_send *s = &out->send[out->n];

    if (m->ups.confirmed >= m->ups.asked || monitor_sweep_waits(m, parent, SWEEP_UP))
        return;
    *s = (struct sweep_send){ .to = *parent,
                              .kind = SWEEP_UP,
                              .version = m->departed ? 0 : m->view.version,
                              .covers = m->ups.asked,
                              .log = m->log.last };
    for (const struct sweep *a = m->sweeps; a; a = a->next)
        if (a->kind == SWEEP_UP && a->number && a->version > s->version)
            s->version = a->version;
    sweep_pack_changes(m, m->ups.log_confirmed, false, &s->news);
    out->n++;
}

static void sort_out(struct monitor *m, struct outbox *out)
{
    struct spread_child child[SPREAD_CHILDREN], parent;
    const struct spread_skips skips = { is_skipped, m };
    const enum parent found = find_parent(m, &parent);
    struct sweep **at = &m->sweeps;
    unsigned level = 0;
    uint64_t need = 0;
    size_t n;

    while (*at) {
        struct sweep *s = *at;
        enum sweep_state state = sweep_prepare(m, s, found, &level, &need);

        if (state == SWEEP_WAITS) {
            at = &s->next;
            continue;
        }
        sweep_take_out(at);
        out->own = out->own || s->own;
        s->next = state == SWEEP_DONE ? out->done : out->refused;
        *(state == SWEEP_DONE ? &out->done : &out->refused) = s;
    }
    n = spread_children(&m->view, m->w->self.id, level, &skips, child);
    for (at = &m->sweeps; *at;) {
        struct sweep *s = *at;

        if (!s->need || (s->kind == SWEEP_UP && found != PARENT_NONE) ||
            !sweep_is_covered(m, s, child, n)) {
            at = &s->next;
            continue;
        }
        sweep_take_out(at);
        out->own = out->own || s->own;
        s->next = out->done;
        out->done = s;
    }
    ask_children(m, child, n, need, out);
    if (found != PARENT_NONE)
        ask_parent(m, &parent, out);
}

static void finish_all(struct monitor *m, struct sweep *list, bool done)
{
    struct sweep *next;

    for (; list; list = next) {
        next = list->next;
        if (!list->own)
            monitor_sweep_answer(m, list, done);
        sweep_free(list);
    }
}

/* Applies the oldest news that have arrived. Returns false if there are none. Lock held, but
 * released meanwhile. */
static bool hear_next(struct monitor *m)
{
    struct view_news n = { .members = 0 };
    struct sweep *s = m->sweeps;
    int64_t version;
    void *data;
    size_t len;
    bool known, down;

    while (s && !s->news)
        s = s->next;
    if (!s)
        return false;
    data = s->news;
    len = s->news_len;
    version = s->version;
    s->news = NULL;
    known = is_member(m) && !s->stranger;
    down = s->kind == SWEEP_DOWN;
    pthread_mutex_unlock(&m->lock);
    if (known && view_news_read(data, len, &n, NULL) == TENREC_OK) {
        const bool ours = monitor_hear(m, version, &n);

        pthread_mutex_lock(&m->lock);
        m->poll = m->poll || (!ours && down);
        pthread_mutex_unlock(&m->lock);
    }
    view_news_finish(&n);
    free(data);
    pthread_mutex_lock(&m->lock);
    return true;
}

void sweeps_pump(struct monitor *m)
{
    struct outbox *out;

    m->pump = false;
    while (hear_next(m))
        ;
    if (!m->sweeps || !(out = memory_new(1, sizeof *out)))
        return;
    sort_out(m, out);
    if (out->own)
        pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    for (size_t i = 0; i < out->n; i++)
        monitor_sweep_send(m, &out->send[i]);
    finish_all(m, out->done, true);
    finish_all(m, out->refused, false);
    free(out);
    pthread_mutex_lock(&m->lock);
}

void sweeps_stop(struct monitor *m)
{
    struct sweep *list;

    pthread_mutex_lock(&m->lock);
    list = m->sweeps;
    m->sweeps = NULL;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    finish_all(m, list, false);
}

void sweeps_end(struct monitor *m)
{
    for (struct sweep *s = m->sweeps, *next; s; s = next) {
        next = s->next;
        sweep_free(s);
    }
    free(m->confirmed);
    free(m->shunned);
}
