/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_messages.c - VIEW messages between members of a dynamic group: each carries the version
 * of the sender's view, and its answer proves that the receiver is alive. Keeps messages that wait
 * for an answer, and requests that are answered once our view is as new. monitor.lock. */
#include "rpc/worker/monitor_inside.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "rpc/call/call.h"
#include "rpc/future/worker.h"
#include "rpc/rref/rref.h"
#include "rpc/worker/worker.h"

#include <errno.h>
#include <stdlib.h>

/* A VIEW message is four numbers: the sender's version, flags, id and incarnation. Its answer is
 * two: the answerer's version, and whether the sender is a member there. */
enum { VIEW_VERSION, VIEW_FLAGS, VIEW_ID, VIEW_INCARNATION, VIEW_NUMBERS };
enum { RET_VERSION, RET_KNOWN, RET_NUMBERS };
enum {
    FLAG_LEAVING = 1,
    FLAG_WAIT = 2, /* answer once at that version; not in heartbeats: the store may be slow */
};

/* A VIEW message that is answered later. */
struct view_ask {
    struct ask ask; /* first */
    int64_t msg_id;
    struct tenrec_route route;
    tenrec_peer id; /* claimed by the sender */
    int64_t incarnation;
    bool leaving; /* a member that is about to leave: no new calls */
};

/* Ids of calls are positive. */
#define FIRST_ID INT64_MIN

struct sent {
    struct sent *next;
    struct monitor *monitor;
    int64_t msg_id;
    tenrec_peer id;
    int64_t incarnation;
    bool round;     /* a thread waits for the answers of all */
    bool completed; /* by the agent */
    bool over;      /* answered, failed or abandoned */
};

/* Messages have ended: frees them and wakes the waiting threads. Lock held. */
static void sent_settle(struct monitor *m)
{
    struct sent **at = &m->sent, *s;

    while ((s = *at)) {
        if (!s->over || !s->completed) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        free(s);
    }
    pthread_cond_broadcast(&m->changed);
}

static bool is_refusal(const tenrec_error *why)
{
    return why->code == TENREC_ECONNECT && (why->os_errno == ECONNREFUSED || why->os_errno == 0);
}

/* The agent completed a VIEW message. */
static void on_sent(void *arg, const tenrec_error *why)
{
    struct sent *s = arg;
    struct monitor *m = s->monitor;

    pthread_mutex_lock(&m->lock);
    s->completed = true;
    if (why && !s->over) {
        s->over = true;
        heartbeats_failed(&m->beats, s->id, s->incarnation, is_refusal(why), clock_now_ns());
        m->suspects = true;
    }
    sent_settle(m);
    pthread_mutex_unlock(&m->lock);
}

/* No lock held. */
static void view_send(struct monitor *m, tenrec_peer to, int64_t incarnation, int64_t flags,
                      bool round)
{
    struct tenrec_worker *w = m->w;
    int64_t number[VIEW_NUMBERS] = { [VIEW_FLAGS] = flags | (round ? FLAG_WAIT : 0),
                                     [VIEW_ID] = w->self.id,
                                     [VIEW_INCARNATION] = m->incarnation };
    struct sent *s = memory_new(1, sizeof *s);
    struct tenrec_msg *msg = NULL;

    pthread_mutex_lock(&m->lock);
    number[VIEW_VERSION] = m->view.version;
    if (s && rref_numbers_write(TENREC_MSG_VIEW, number, VIEW_NUMBERS, &msg, NULL) == TENREC_OK) {
        *s = (struct sent){ .next = m->sent,
                            .monitor = m,
                            .msg_id = FIRST_ID + m->n_sent++,
                            .id = to,
                            .incarnation = incarnation,
                            .round = round };
        m->sent = s;
        msg->id = s->msg_id;
        msg->flags |= TENREC_MSG_CONTROL;
    }
    pthread_mutex_unlock(&m->lock);
    if (!msg) {
        free(s);
        return;
    }
    chain_send(w->chain, to, msg, (struct tenrec_done){ on_sent, s });
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

    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    if (oldest)
        oldest->ready(m->w, oldest);
    pthread_mutex_lock(&m->lock);
}

/* Lock held. */
static bool monitor_keeps(const struct monitor *m)
{
    return !m->stopped && !m->expelled && !m->departed;
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

void monitor_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg)
{
    struct monitor *m = group_of(w)->monitor;
    struct view_ask a = { .ask = { .from = from, .deadline_ns = CLOCK_NEVER, .ready = view_ready },
                          .msg_id = msg->id,
                          .route = msg->route };
    struct view_ask *kept = NULL;
    bool waits;
    tenrec_error why;
    tenrec_status st = view_read(w, from, msg, &a, &waits, &why);

    msg->release(msg);
    if (st != TENREC_OK) {
        answer_error(w, from, a.msg_id, &a.route, true, &why);
        return;
    }
    pthread_mutex_lock(&m->lock);
    a.leaving = a.leaving && from >= 0 && membership_view_find(&m->view, from, a.incarnation);
    if (a.ask.version > m->view.version) {
        m->poll = true;
        pthread_cond_broadcast(&m->changed);
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

void monitor_answered(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg)
{
    struct monitor *m = group_of(w)->monitor;
    int64_t n[RET_NUMBERS];

    if (!m || rref_numbers_read(msg, RET_NUMBERS, n, NULL) != TENREC_OK) {
        msg->release(msg);
        return;
    }
    pthread_mutex_lock(&m->lock);
    for (struct sent *s = m->sent; s; s = s->next) {
        if (s->msg_id != msg->id || s->id != from || s->over)
            continue;
        s->over = true;
        heartbeats_answered(&m->beats, s->id, s->incarnation);
    }
    if (n[RET_VERSION] > m->view.version && !m->expelled)
        m->poll = true;
    sent_settle(m);
    pthread_mutex_unlock(&m->lock);
    msg->release(msg);
}

void monitor_gives_up(struct monitor *m, tenrec_peer id)
{
    for (struct sent *s = m->sent; s; s = s->next)
        s->over = s->over || s->id == id;
    sent_settle(m);
}

/* ---- announcements ---------------------------------------------------------------- */

/* To all other members. No lock held. */
static void view_send_all(struct monitor *m, int64_t flags, bool round)
{
    struct membership_view v = { .version = 0 };

    pthread_mutex_lock(&m->lock);
    membership_view_copy(&m->view, &v, NULL);
    pthread_mutex_unlock(&m->lock);
    for (size_t i = 0; i < v.n; i++)
        if (v.entry[i].incarnation != m->incarnation)
            view_send(m, v.entry[i].id, v.entry[i].incarnation, flags, round);
    membership_view_finish(&v);
}

bool monitor_wait(struct monitor *m, uint64_t until_ns)
{
    return clock_cond_wait(&m->changed, &m->lock, until_ns);
}

/* Suspects the members that have not answered since `began_ns`, and from which nothing else has
 * arrived, for as long as heartbeats may stay unanswered; after the deadline, all that have not
 * answered. Returns true if answers are awaited still, until *ret_next_ns. Lock held. */
static bool round_expire(struct monitor *m, uint64_t began_ns, uint64_t deadline_ns,
                         uint64_t *ret_next_ns)
{
    const uint64_t now_ns = clock_now_ns();
    const uint64_t patience_ns = m->beats.rules.interval_ns * (uint64_t)m->beats.rules.misses;
    bool open = false;

    *ret_next_ns = deadline_ns;
    for (struct sent *s = m->sent; s; s = s->next) {
        const uint64_t moved_ns = traffic_moved_ns(m, s->id);
        const uint64_t due_ns = (moved_ns > began_ns ? moved_ns : began_ns) + patience_ns;

        if (!s->round || s->over)
            continue;
        if (due_ns > now_ns && deadline_ns > now_ns) {
            open = true;
            *ret_next_ns = due_ns < *ret_next_ns ? due_ns : *ret_next_ns;
            continue;
        }
        s->over = true;
        heartbeats_suspect(&m->beats, s->id, s->incarnation, now_ns, NULL);
    }
    return open;
}

/* Waits for the answers of a round. */
static void await_round(struct monitor *m, uint64_t deadline_ns)
{
    const uint64_t began_ns = clock_now_ns();
    uint64_t next_ns;

    pthread_mutex_lock(&m->lock);
    while (round_expire(m, began_ns, deadline_ns, &next_ns))
        monitor_wait(m, next_ns);
    sent_settle(m);
    pthread_mutex_unlock(&m->lock);
}

void monitor_probe(struct monitor *m, tenrec_peer id, int64_t incarnation)
{
    view_send(m, id, incarnation, 0, false);
}

void monitor_announce(struct monitor *m)
{
    view_send_all(m, 0, false);
}

void monitor_announce_and_wait(struct monitor *m, uint64_t deadline_ns)
{
    view_send_all(m, 0, true);
    await_round(m, deadline_ns);
}

void monitor_announce_leaving(struct tenrec_worker *w, uint64_t deadline_ns)
{
    view_send_all(group_of(w)->monitor, FLAG_LEAVING, true);
    await_round(group_of(w)->monitor, deadline_ns);
}

/* ---- messages that wait for our view ----------------------------------------- */

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
}
