/* SPDX-License-Identifier: Apache-2.0 */
/* monitor.c - the monitor's thread: polls the store, polls members, and removes dead ones.
 * monitor.lock guards its state; no lock is held during a request to the store. */
#include "rpc/member/monitor_inside.h"

#include "core/base/clock.h"
#include "core/base/fail.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/threads.h"
#include "core/config/config.h"
#include "group/membership/membership_list.h"
#include "rpc/call/calls.h"
#include "rpc/member/membership.h"
#include "rpc/member/worker_group.h"

#include <stdlib.h>

enum {
    STORE_MS = 2000,     /* for a request to the store */
    POLL_GAP_MS = 20,    /* between polls of the store */
    CUT_GAP_MS = 20,     /* a healthy store answers within, before it is cut again */
    RETRY_MAX_MS = 5000, /* between polls of a store that does not answer */
};

bool monitor_suspects(struct tenrec_worker *w, tenrec_peer peer)
{
    struct monitor *wa = group_of(w)->monitor;
    const struct membership_view_entry *e;

    if (!wa)
        return false;
    pthread_mutex_lock(&wa->lock);
    e = membership_view_by_id(&wa->view, peer);
    if (e && !wa->expelled && !wa->stopped) {
        heartbeats_suspect(&wa->beats, peer, e->incarnation, clock_now_ns(), NULL);
        wa->poll = true;
        wa->suspects = true;
    }
    monitor_gives_up(wa, peer);
    pthread_mutex_unlock(&wa->lock);
    return true;
}

/* ---- the store ---------------------------------------------------------------------- */

static void store_failed(struct monitor *wa, const tenrec_error *why)
{
    if (wa->retry_ms == 0 && tenrec_worker_running(wa->w))
        log_line(TENREC_LOG_WARN, wa->w->self.name,
                 "cannot read the group in its store: members can neither join nor be removed: %s",
                 why->text);
    wa->retry_ms = wa->retry_ms ? wa->retry_ms * 2 : 50;
    if (wa->retry_ms > RETRY_MAX_MS)
        wa->retry_ms = RETRY_MAX_MS;
    pthread_mutex_lock(&wa->lock);
    wa->store_at_ns = clock_deadline_ms(wa->retry_ms);
    wa->poll = true;
    pthread_mutex_unlock(&wa->lock);
}

static void store_works(struct monitor *wa)
{
    if (wa->retry_ms == 0)
        return;
    log_line(TENREC_LOG_INFO, wa->w->self.name, "the group's store answers again");
    wa->retry_ms = 0;
    pthread_mutex_lock(&wa->lock);
    heartbeats_start_over(&wa->beats, clock_now_ns());
    wa->suspects = true;
    pthread_mutex_unlock(&wa->lock);
}

/* Reads the view from the store and applies it. */
static void monitor_refresh(struct monitor *wa)
{
    struct membership_view v = { .version = 0 };
    tenrec_error why;

    tenrec_status st = membership_list_read(wa->list, clock_deadline_ms(STORE_MS), &v, &why);

    if (st == TENREC_OK)
        st = monitor_apply(wa, &v, &why);
    pthread_mutex_lock(&wa->lock);
    wa->poll_at_ns = clock_deadline_ms(POLL_GAP_MS);
    pthread_mutex_unlock(&wa->lock);
    if (st == TENREC_OK)
        store_works(wa);
    else
        store_failed(wa, &why);
}

/* Removes a dead member from the group and notifies the others. */
static void monitor_remove(struct monitor *wa, const struct heartbeat *dead)
{
    struct membership_view v = { .version = 0 };
    tenrec_error why;
    tenrec_status st;

    log_line(TENREC_LOG_WARN, wa->w->self.name, "'%s' (id %d) is dead: %s",
             peers_name(&wa->w->peers, dead->id), (int)dead->id, heartbeat_why(&wa->beats, dead));
    st = membership_list_remove(wa->list, dead->id, dead->incarnation, true,
                                clock_deadline_ms(STORE_MS), &v, &why);
    /* A slow joiner that holds the lock is no failure of the store: retry at the next poll. */
    if (st != TENREC_OK && wa->list->lock.others)
        return;
    if (st == TENREC_OK)
        st = monitor_apply(wa, &v, &why);
    if (st != TENREC_OK) {
        store_failed(wa, &why);
        return;
    }
    store_works(wa);
    monitor_announce(wa);
}

static void monitor_leave_list(struct monitor *wa)
{
    struct membership_view v = { .version = 0 };
    uint64_t deadline_ns;
    tenrec_error why;
    tenrec_status st;

    pthread_mutex_lock(&wa->lock);
    deadline_ns = wa->depart_ns;
    pthread_mutex_unlock(&wa->lock);
    st = membership_list_leave(wa->list, deadline_ns, &v, &why);
    pthread_mutex_lock(&wa->lock);
    /* The others remain in our view, to be notified. */
    if (st == TENREC_OK && v.version > 0)
        wa->view.version = v.version;
    if (st != TENREC_OK)
        wa->depart_why = why;
    wa->departed = true;
    pthread_cond_broadcast(&wa->changed);
    pthread_mutex_unlock(&wa->lock);
    membership_view_finish(&v);
}

tenrec_status monitor_depart(struct tenrec_worker *w, uint64_t deadline_ns, tenrec_error *err)
{
    struct monitor *wa = group_of(w)->monitor;
    tenrec_status st = TENREC_OK;

    pthread_mutex_lock(&wa->lock);
    wa->departs = true;
    wa->depart_ns = deadline_ns;
    pthread_cond_broadcast(&wa->changed);
    while (!wa->departed && monitor_wait(wa, store_answer_ns(deadline_ns)))
        ;
    if (!wa->departed)
        st = tenrec_fail(
            err, TENREC_ETIMEDOUT,
            "the store of group \"%s\" does not answer: this worker is still listed as a member",
            wa->list->group);
    else if (wa->depart_why.code != TENREC_OK)
        st = fail_with(err, &wa->depart_why);
    pthread_mutex_unlock(&wa->lock);
    if (st == TENREC_OK)
        monitor_announce_and_wait(wa, deadline_ns);
    return st;
}

/* ---- the thread ---------------------------------------------------------------------- */

/* The earliest time of the next poll of the store. */
static uint64_t poll_ns(const struct monitor *wa)
{
    return wa->store_at_ns > wa->poll_at_ns ? wa->store_at_ns : wa->poll_at_ns;
}

static bool monitor_finds_dead(struct monitor *wa, const struct heartbeat *one)
{
    bool dead;

    pthread_mutex_lock(&wa->lock);
    dead = heartbeats_is_dead(&wa->beats, one->id, one->incarnation);
    pthread_mutex_unlock(&wa->lock);
    return dead;
}

/* Does the next piece of work. Returns false if there is none until *next_ns. Lock held, but
 * released meanwhile. */
static bool monitor_work(struct monitor *wa, uint64_t *next_ns)
{
    const uint64_t now_ns = clock_now_ns();
    const bool store = now_ns >= wa->store_at_ns;
    void (*work)(struct monitor * wa) = NULL;
    struct heartbeat one;
    enum heartbeat_due due;

    uint64_t asks_ns = CLOCK_NEVER;

    *next_ns = CLOCK_NEVER;
    if (wa->departs && !wa->departed) {
        work = monitor_leave_list;
    } else if (wa->expelled || wa->departed) {
        if (!wa->asks.first)
            return false;
        work = monitor_answer_ripe;
    } else if (asks_have_ripe(&wa->asks, wa->view.version, now_ns, &asks_ns)) {
        work = monitor_answer_ripe;
    } else if (wa->poll && now_ns >= poll_ns(wa)) {
        wa->poll = false;
        work = monitor_refresh;
    }
    if (work) {
        pthread_mutex_unlock(&wa->lock);
        work(wa);
        pthread_mutex_lock(&wa->lock);
        return true;
    }
    if (wa->suspects) {
        wa->suspects = false;
        monitor_find_dead(wa);
    }
    due = heartbeats_next(&wa->beats, now_ns, &one, next_ns);
    if (wa->poll && poll_ns(wa) < *next_ns)
        *next_ns = poll_ns(wa);
    if (asks_ns < *next_ns)
        *next_ns = asks_ns;
    if (due == HEARTBEAT_REST)
        return false;
    pthread_mutex_unlock(&wa->lock);
    monitor_look(wa);
    if (due == HEARTBEAT_DEAD && store && monitor_finds_dead(wa, &one))
        monitor_remove(wa, &one);
    else
        monitor_probe(wa, one.id, one.incarnation);
    pthread_mutex_lock(&wa->lock);
    return true;
}

static void *monitor_run(void *arg)
{
    struct monitor *wa = arg;
    uint64_t next_ns;

    pthread_mutex_lock(&wa->lock);
    while (!wa->stop)
        if (!monitor_work(wa, &next_ns))
            monitor_wait(wa, next_ns);
    wa->stopped = true;
    pthread_cond_broadcast(&wa->changed);
    pthread_mutex_unlock(&wa->lock);
    monitor_answer_ripe(wa);
    return NULL;
}

tenrec_status monitor_open(struct tenrec_worker *w, tenrec_error *err)
{
    const struct config_settings *s = w->settings;
    struct membership_list *list = membership_list_of(group_of(w)->membership);
    struct monitor *wa;
    tenrec_status st;

    if (!list || worker_visits(w))
        return TENREC_OK;
    if (!(wa = memory_new(1, sizeof *wa)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory to monitor the group");
    wa->w = w;
    wa->list = list;
    wa->incarnation = list->incarnation;
    wa->beats.rules = (struct heartbeat_rules){ s->heartbeat_ms * UINT64_C(1000000),
                                                (uint32_t)s->heartbeat_misses };
    pthread_mutex_init(&wa->lock, NULL);
    clock_cond_init(&wa->changed);
    group_of(w)->monitor = wa;
    st = monitor_begin(wa, err);
    if (st == TENREC_OK)
        st = heartbeats_follow(&wa->beats, &wa->view, w->self.id, clock_now_ns(), err);
    return st;
}

tenrec_status monitor_start(struct tenrec_worker *w, uint64_t deadline_ns, tenrec_error *err)
{
    struct monitor *wa = group_of(w)->monitor;
    int r;

    if (!wa)
        return TENREC_OK;
    r = threads_start(&wa->thread, "tenrec-group", monitor_run, wa);
    if (r != 0)
        return tenrec_fail_errno(err, TENREC_EOS, r, "cannot start the thread of the group");
    wa->started = true;
    monitor_announce_and_wait(wa, deadline_ns);
    return TENREC_OK;
}

void monitor_stop(struct tenrec_worker *w)
{
    struct monitor *wa = group_of(w)->monitor;

    if (!wa)
        return;
    pthread_mutex_lock(&wa->lock);
    wa->stop = true;
    pthread_cond_broadcast(&wa->changed);
    /* The thread may wait for the store, and send more requests after this one. */
    while (wa->started && !wa->stopped) {
        pthread_mutex_unlock(&wa->lock);
        store_cut(wa->list->store);
        pthread_mutex_lock(&wa->lock);
        if (!wa->stopped)
            monitor_wait(wa, clock_deadline_ms(CUT_GAP_MS));
    }
    pthread_mutex_unlock(&wa->lock);
    if (wa->started)
        pthread_join(wa->thread, NULL);
    wa->started = false;
    pthread_mutex_lock(&wa->lock);
    wa->stopped = true;
    pthread_cond_broadcast(&wa->changed);
    pthread_mutex_unlock(&wa->lock);
}

void monitor_close(struct tenrec_worker *w)
{
    struct monitor *wa = group_of(w)->monitor;

    if (!wa)
        return;
    monitor_messages_end(wa);
    monitor_end(wa);
    heartbeats_finish(&wa->beats);
    free(wa->traffic);
    pthread_cond_destroy(&wa->changed);
    pthread_mutex_destroy(&wa->lock);
    free(wa);
    group_of(w)->monitor = NULL;
    atomic_store(&w->calls->view_version, 0);
}
