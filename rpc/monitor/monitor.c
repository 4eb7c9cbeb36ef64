/* SPDX-License-Identifier: Apache-2.0 */
/* monitor.c - the monitor's thread: polls the store, polls members, and removes dead ones.
 * monitor.lock guards its state; no lock is held during a request to the store. */
#include "rpc/monitor/monitor_inside.h"

#include "core/base/clock.h"
#include "core/base/fail.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/threads.h"
#include "core/config/config.h"
#include "group/meeting/membership.h"
#include "group/membership/membership.h"
#include "rpc/call/calls.h"

#include <stdlib.h>

enum {
    STORE_MS = 2000,     /* for a request to the store */
    POLL_GAP_MS = 20,    /* between polls of the store */
    CUT_GAP_MS = 20,     /* a healthy store answers within, before it is cut again */
    ENDING_MS = 20,      /* between checks of a process that is about to end */
    RETRY_MAX_MS = 1000, /* between polls of a store that does not answer */
};

/* ---- the store ---------------------------------------------------------------------- */

static void store_failed(struct monitor *m, const tenrec_error *why)
{
    if (m->retry_ms == 0 && tenrec_worker_running(m->w))
        log_line(TENREC_LOG_WARN, m->w->self.name,
                 "cannot read the group in its store: members can neither join nor be removed: %s",
                 why->text);
    m->retry_ms = m->retry_ms ? m->retry_ms * 2 : 50;
    if (m->retry_ms > RETRY_MAX_MS)
        m->retry_ms = RETRY_MAX_MS;
    pthread_mutex_lock(&m->lock);
    m->store_at_ns = clock_deadline_ms(m->retry_ms);
    m->poll = true;
    pthread_mutex_unlock(&m->lock);
}

static void store_works(struct monitor *m)
{
    if (m->retry_ms == 0)
        return;
    log_line(TENREC_LOG_INFO, m->w->self.name, "the group's store answers again");
    m->retry_ms = 0;
    pthread_mutex_lock(&m->lock);
    heartbeats_start_over(&m->beats, clock_now_ns());
    m->suspects = true;
    pthread_mutex_unlock(&m->lock);
}

/* Reads the view from the store and applies it. */
static void monitor_refresh(struct monitor *m)
{
    struct membership_view v = { .version = 0 };
    tenrec_error why;

    const uint64_t began_ns = clock_now_ns();
    tenrec_status st = membership_list_read(m->list, clock_deadline_ms(STORE_MS), &v, &why);

    if (st == TENREC_OK)
        st = monitor_apply(m, &v, &why);
    pthread_mutex_lock(&m->lock);
    m->poll_at_ns = clock_deadline_ms(POLL_GAP_MS);
    if (st == TENREC_OK) {
        m->read_ns = began_ns;
        m->pump = true;
    }
    pthread_mutex_unlock(&m->lock);
    if (st == TENREC_OK)
        store_works(m);
    else
        store_failed(m, &why);
}

/* Removes dead members from the group and notifies the others. */
static void monitor_remove(struct monitor *m, const struct membership_life *dead, size_t n)
{
    struct membership_view v = { .version = 0 };
    tenrec_error why;
    tenrec_status st =
        membership_list_remove(m->list, dead, n, true, clock_deadline_ms(STORE_MS), &v, &why);

    /* A slow joiner that holds the lock is no failure of the store: retry at the next poll. */
    if (st != TENREC_OK && m->list->lock.others)
        return;
    if (st == TENREC_OK)
        st = monitor_apply(m, &v, &why);
    if (st != TENREC_OK) {
        store_failed(m, &why);
        return;
    }
    store_works(m);
    monitor_announce(m);
}

/* Only this worker's own thread uses the list from now on. */
static tenrec_status monitor_leave_list(struct monitor *m, uint64_t deadline_ns,
                                        struct membership_view *ret, tenrec_error *err)
{
    pthread_mutex_lock(&m->lock);
    m->departs = true;
    while (m->removing && monitor_wait(m, store_answer_ns(deadline_ns)))
        ;
    if (m->removing) {
        pthread_mutex_unlock(&m->lock);
        return tenrec_fail(
            err, TENREC_ETIMEDOUT,
            "the store of group \"%s\" does not answer: this worker is still listed as a member",
            m->list->group);
    }
    pthread_mutex_unlock(&m->lock);
    return membership_list_leave(m->list, deadline_ns, ret, err);
}

tenrec_status monitor_depart(struct tenrec_worker *w, uint64_t deadline_ns, tenrec_error *err)
{
    struct monitor *m = group_of(w)->monitor;
    struct membership_view v = { .version = 0 };
    tenrec_status st = monitor_leave_list(m, deadline_ns, &v, err);

    if (st != TENREC_OK)
        return st;
    pthread_mutex_lock(&m->lock);
    m->departed = m->pump = true;
    /* The others remain in our view, to be notified, but for those that left with us. */
    for (size_t i = 0; i < m->view.n; i++) {
        const struct membership_view_entry *e = &m->view.entry[i];

        if (e->incarnation != m->incarnation && !membership_view_find(&v, e->id, e->incarnation))
            sweep_shun(m, &(struct spread_child){ .id = e->id, .incarnation = e->incarnation });
    }
    monitor_wake(m);
    pthread_mutex_unlock(&m->lock);
    if (v.n > 0)
        monitor_announce_and_wait(m, v.version, deadline_ns);
    membership_view_finish(&v);
    return TENREC_OK;
}

/* ---- the thread ---------------------------------------------------------------------- */

/* The earliest time of the next poll of the store. */
static uint64_t poll_ns(const struct monitor *m)
{
    return m->store_at_ns > m->poll_at_ns ? m->store_at_ns : m->poll_at_ns;
}

/* Removes all that are dead, in one view. Returns false if `one` is not, or without memory. */
static bool monitor_remove_dead(struct monitor *m, const struct heartbeat *one)
{
    struct heartbeat *dead;
    struct membership_life *who;
    bool found = false;
    size_t n;

    pthread_mutex_lock(&m->lock);
    dead = memory_new(m->beats.n + 1, sizeof *dead);
    who = memory_new(m->beats.n + 1, sizeof *who);
    n = dead && who ? heartbeats_dead(&m->beats, dead) : 0;
    pthread_mutex_unlock(&m->lock);
    for (size_t i = 0; i < n; i++) {
        log_line(TENREC_LOG_WARN, m->w->self.name, "'%s' (id %d) is dead: %s",
                 peers_name(&m->w->peers, dead[i].id), (int)dead[i].id,
                 heartbeat_why(&m->beats, &dead[i]));
        who[i] = (struct membership_life){ dead[i].id, dead[i].incarnation };
        found = found || dead[i].incarnation == one->incarnation;
    }
    if (found)
        monitor_remove(m, who, n);
    free(who);
    free(dead);
    return found;
}

/* Does the next piece of work. Returns false if no work is due before *next_ns. Lock held, but
 * released during the work. */
static bool monitor_work(struct monitor *m, uint64_t *next_ns)
{
    const uint64_t now_ns = clock_now_ns();
    const bool store = now_ns >= m->store_at_ns;
    void (*work)(struct monitor * m) = NULL;
    struct heartbeat one;
    enum heartbeat_due due;

    uint64_t asks_ns = CLOCK_NEVER, sweep_ns = CLOCK_NEVER;
    bool pumped;

    *next_ns = CLOCK_NEVER;
    monitor_sweep_expire(m, &sweep_ns);
    /* The lock is released meanwhile, so the conditions of a wait are looked at again. */
    if ((pumped = m->pump))
        sweeps_pump(m);
    if (m->expelled || m->departed) {
        *next_ns = sweep_ns;
        if (!m->asks.first)
            return pumped;
        work = monitor_answer_ripe;
    } else if (asks_have_ripe(&m->asks, m->view.version, now_ns, &asks_ns)) {
        work = monitor_answer_ripe;
    } else if (m->poll && !m->departs && now_ns >= poll_ns(m)) {
        m->poll = false;
        work = monitor_refresh;
    }
    if (work) {
        pthread_mutex_unlock(&m->lock);
        work(m);
        pthread_mutex_lock(&m->lock);
        return true;
    }
    if (!m->departs && (m->suspects || now_ns >= m->find_at_ns)) {
        m->suspects = false;
        m->find_at_ns = monitor_find_dead(m) ? clock_deadline_ms(ENDING_MS) : CLOCK_NEVER;
    }
    due = heartbeats_next(&m->beats, now_ns, &one, next_ns);
    if (m->poll && !m->departs && poll_ns(m) < *next_ns)
        *next_ns = poll_ns(m);
    if (!m->departs && m->find_at_ns < *next_ns)
        *next_ns = m->find_at_ns;
    if (asks_ns < *next_ns)
        *next_ns = asks_ns;
    if (sweep_ns < *next_ns)
        *next_ns = sweep_ns;
    if (due == HEARTBEAT_REST)
        return pumped;
    m->removing = due == HEARTBEAT_DEAD && store && !m->departs;
    pthread_mutex_unlock(&m->lock);
    monitor_look(m);
    if (!m->removing || !monitor_remove_dead(m, &one))
        monitor_probe(m, one.id, one.incarnation);
    if (due == HEARTBEAT_CONSULT)
        monitor_consult(m, one.id, one.incarnation);
    pthread_mutex_lock(&m->lock);
    m->removing = false;
    pthread_cond_broadcast(&m->changed);
    return true;
}

static void *monitor_run(void *arg)
{
    struct monitor *m = arg;
    uint64_t next_ns;

    pthread_mutex_lock(&m->lock);
    while (!m->stop)
        if (!monitor_work(m, &next_ns))
            clock_cond_wait(&m->work, &m->lock, next_ns);
    m->stopped = true;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    monitor_answer_ripe(m);
    sweeps_stop(m);
    return NULL;
}

tenrec_status monitor_open(struct tenrec_worker *w, tenrec_error *err)
{
    const struct config_settings *s = w->settings;
    struct membership_list *list = membership_list_of(group_of(w)->membership);
    struct monitor *m;
    tenrec_status st;

    if (!list || worker_visits(w))
        return TENREC_OK;
    if (!(m = memory_new(1, sizeof *m)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory to monitor the group");
    m->w = w;
    m->list = list;
    m->incarnation = list->incarnation;
    m->find_at_ns = CLOCK_NEVER;
    m->beats.rules = (struct heartbeat_rules){ s->heartbeat_ms * UINT64_C(1000000),
                                               (uint32_t)s->heartbeat_misses };
    pthread_mutex_init(&m->lock, NULL);
    clock_cond_init(&m->work);
    clock_cond_init(&m->changed);
    group_of(w)->monitor = m;
    st = monitor_begin(m, err);
    if (st == TENREC_OK)
        st = heartbeats_follow(&m->beats, &m->view, w->self.id, clock_now_ns(), err);
    return st;
}

tenrec_status monitor_start(struct tenrec_worker *w, uint64_t deadline_ns, tenrec_error *err)
{
    struct monitor *m = group_of(w)->monitor;
    int64_t version;
    int r;

    if (!m)
        return TENREC_OK;
    version = m->view.version; /* the thread's, once that runs */
    r = threads_start(&m->thread, "tenrec-group", monitor_run, m);
    if (r != 0)
        return tenrec_fail_errno(err, TENREC_EOS, r, "cannot start the thread of the group");
    m->started = true;
    monitor_announce_and_wait(m, version, deadline_ns);
    return TENREC_OK;
}

void monitor_stop(struct tenrec_worker *w)
{
    struct monitor *m = group_of(w)->monitor;

    if (!m)
        return;
    pthread_mutex_lock(&m->lock);
    m->stop = true;
    monitor_wake(m);
    /* The thread may wait for the store, and send more requests after this one. */
    while (m->started && !m->stopped) {
        pthread_mutex_unlock(&m->lock);
        store_cut(m->list->store);
        pthread_mutex_lock(&m->lock);
        if (!m->stopped)
            monitor_wait(m, clock_deadline_ms(CUT_GAP_MS));
    }
    pthread_mutex_unlock(&m->lock);
    if (m->started)
        pthread_join(m->thread, NULL);
    m->started = false;
    pthread_mutex_lock(&m->lock);
    m->stopped = true;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

void monitor_close(struct tenrec_worker *w)
{
    struct monitor *m = group_of(w)->monitor;

    if (!m)
        return;
    monitor_messages_end(m);
    monitor_end(m);
    heartbeats_finish(&m->beats);
    free(m->traffic);
    pthread_cond_destroy(&m->changed);
    pthread_cond_destroy(&m->work);
    pthread_mutex_destroy(&m->lock);
    free(m);
    group_of(w)->monitor = NULL;
    atomic_store(&w->calls->view_version, 0);
}
