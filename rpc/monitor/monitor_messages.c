/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_messages.c - VIEW messages that arrive: each is answered with the version of our view, at
 * once or when it is as new. monitor.lock. */
#include "rpc/monitor/view_message.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "rpc/call/call.h"
#include "rpc/future/worker.h"
#include "rpc/rref/rref.h"

#include <stdlib.h>

/* A VIEW message that is answered later. */
struct view_ask {
    struct ask ask; /* first */
    int64_t msg_id;
    struct tenrec_route route;
    tenrec_peer id; /* claimed by the sender */
    int64_t incarnation;
    bool leaving;      /* a member that is about to leave: no new calls */
    tenrec_peer about; /* the third member */
    int64_t about_incarnation;
};

/* Lock held. */
static bool monitor_keeps(const struct monitor *m)
{
    return !m->stopped && !m->expelled && !m->departed;
}

static void view_answer(struct monitor *m, const struct view_ask *a)
{
    int64_t number[RET_NUMBERS];
    struct tenrec_msg *msg = NULL;

    pthread_mutex_lock(&m->lock);
    number[RET_VERSION] = m->view.version;
    number[RET_KNOWN] = membership_view_find(&m->view, a->id, a->incarnation) != NULL;
    pthread_mutex_unlock(&m->lock);
    if (rref_numbers_write(TENREC_MSG_VIEW_RET, number, RET_NUMBERS, &msg, NULL) == TENREC_OK)
        answer_send(m->w, a->ask.from, a->msg_id, &a->route, msg, NULL);
}

static void view_ready(struct tenrec_worker *w, struct ask *ask)
{
    struct view_ask *a = (struct view_ask *)(void *)ask;

    if (a->leaving)
        monitor_leaves(group_of(w)->monitor, a->id, a->incarnation);
    view_answer(group_of(w)->monitor, a);
    free(a);
}

/* errors   EGROUP, EPROTOCOL (also: a member sends the id of another), ENOMEM */
static tenrec_status view_read(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg,
                               struct view_ask *ret, bool *ret_waits, tenrec_error *err)
{
    int64_t n[VIEW_NUMBERS];
    tenrec_status st = rref_numbers_read(msg, VIEW_NUMBERS, n, err);

    if (st == TENREC_OK && !group_of(w)->monitor)
        st = tenrec_fail(err, TENREC_EGROUP, "the group of '%s' is static", w->self.name);
    if (st == TENREC_OK && from >= 0 && from != n[VIEW_ID])
        st = tenrec_fail(err, TENREC_EPROTOCOL, "'%s' sent a view under the id of worker %lld",
                         peers_name(&w->peers, from), (long long)n[VIEW_ID]);
    if (st != TENREC_OK)
        return st;
    ret->id = (tenrec_peer)n[VIEW_ID];
    ret->incarnation = n[VIEW_INCARNATION];
    ret->ask.version = n[VIEW_VERSION];
    ret->leaving = n[VIEW_FLAGS] & FLAG_LEAVING;
    *ret_waits = n[VIEW_FLAGS] & FLAG_WAIT;
    return TENREC_OK;
}

/* Keeps `a` (taken) until it is ready. Lock held, but released to answer the oldest when full. */
static void monitor_keep(struct monitor *m, struct ask *a)
{
    struct ask *oldest = asks_add(&m->asks, a);

    monitor_wake(m);
    pthread_mutex_unlock(&m->lock);
    if (oldest)
        oldest->ready(m->w, oldest);
    pthread_mutex_lock(&m->lock);
}

bool monitor_view_wait(struct tenrec_worker *w, struct ask *a)
{
    struct monitor *m = group_of(w)->monitor;
    bool waits;

    if (!m)
        return false;
    pthread_mutex_lock(&m->lock);
    waits = a->version > m->view.version && !clock_passed(a->deadline_ns) && monitor_keeps(m);
    if (waits) {
        m->poll = true;
        monitor_keep(m, a);
    }
    pthread_mutex_unlock(&m->lock);
    return waits;
}

/* The third member was polled when the question arrived. */
static void check_ready(struct tenrec_worker *w, struct ask *ask)
{
    struct view_ask *a = (struct view_ask *)(void *)ask;
    struct monitor *m = group_of(w)->monitor;
    int64_t number[RET_NUMBERS];
    struct tenrec_msg *msg = NULL;

    pthread_mutex_lock(&m->lock);
    number[RET_VERSION] = m->view.version;
    number[RET_KNOWN] = monitor_keeps(m) &&
                        membership_view_find(&m->view, a->about, a->about_incarnation) &&
                        !heartbeats_suspects(&m->beats, a->about, a->about_incarnation);
    pthread_mutex_unlock(&m->lock);
    if (rref_numbers_write(TENREC_MSG_VIEW_RET, number, RET_NUMBERS, &msg, NULL) == TENREC_OK)
        answer_send(w, a->ask.from, a->msg_id, &a->route, msg, NULL);
    free(a);
}

/* Returns true if `msg` asks about a third member, of which only members may ask. */
static bool check_arrived(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_msg *msg)
{
    struct monitor *m = group_of(w)->monitor;
    struct view_ask *a;
    int64_t n[CHECK_NUMBERS];
    bool keeps;

    if (!m || from < 0 || rref_numbers_read(msg, CHECK_NUMBERS, n, NULL) != TENREC_OK ||
        n[VIEW_FLAGS] != FLAG_THIRD || n[VIEW_ID] != from || n[CHECK_ID] < 0 ||
        n[CHECK_ID] >= RANKS_MAX || !(a = memory_new(1, sizeof *a)))
        return false;
    *a = (struct view_ask){ .ask = { .from = from,
                                     .version = INT64_MAX,
                                     .deadline_ns = clock_now_ns() + m->beats.rules.interval_ns / 2,
                                     .ready = check_ready },
                            .msg_id = msg->id,
                            .route = msg->route,
                            .about = (tenrec_peer)n[CHECK_ID],
                            .about_incarnation = n[CHECK_INCARNATION] };
    pthread_mutex_lock(&m->lock);
    keeps = monitor_keeps(m);
    if (keeps) {
        if (membership_view_find(&m->view, a->about, a->about_incarnation) &&
            a->about != m->w->self.id)
            heartbeats_check(&m->beats, a->about, a->about_incarnation, clock_now_ns(), NULL);
        monitor_keep(m, &a->ask);
    }
    pthread_mutex_unlock(&m->lock);
    if (!keeps) /* the thread that would answer later may have ended */
        check_ready(w, &a->ask);
    return true;
}

void monitor_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg)
{
    struct monitor *m = group_of(w)->monitor;
    struct view_ask a = { .ask = { .from = from, .deadline_ns = CLOCK_NEVER, .ready = view_ready },
                          .msg_id = msg->id,
                          .route = msg->route };
    struct view_ask *kept = NULL;
    bool waits;
    tenrec_error why;
    tenrec_status st;

    if (sweep_arrived(w, from, msg) || check_arrived(w, from, msg)) {
        msg->release(msg);
        return;
    }
    st = view_read(w, from, msg, &a, &waits, &why);
    msg->release(msg);
    if (st != TENREC_OK) {
        answer_error(w, from, a.msg_id, &a.route, true, &why);
        return;
    }
    pthread_mutex_lock(&m->lock);
    a.leaving = a.leaving && from >= 0 && membership_view_find(&m->view, from, a.incarnation);
    if (a.ask.version > m->view.version) {
        m->poll = true;
        monitor_wake(m);
    }
    if ((a.leaving || (a.ask.version > m->view.version && waits)) && monitor_keeps(m) &&
        (kept = memory_new(1, sizeof *kept))) {
        *kept = a;
        monitor_keep(m, &kept->ask);
    }
    pthread_mutex_unlock(&m->lock);
    if (!kept)
        view_answer(m, &a);
}

static void asks_ready(struct monitor *m, struct ask *list)
{
    struct ask *next;

    for (; list; list = next) {
        next = list->next;
        list->ready(m->w, list);
    }
}

void monitor_answer_ripe(struct monitor *m)
{
    struct ask *list;

    pthread_mutex_lock(&m->lock);
    list = asks_take_ripe(&m->asks, m->view.version, clock_now_ns(),
                          m->stopped || m->expelled || m->departed);
    pthread_mutex_unlock(&m->lock);
    asks_ready(m, list);
}

void monitor_messages_end(struct monitor *m)
{
    for (struct sent *s = m->sent, *next; s; s = next) {
        next = s->next;
        free(s);
    }
    asks_ready(m, asks_take_ripe(&m->asks, 0, 0, true));
    sweeps_end(m);
}
