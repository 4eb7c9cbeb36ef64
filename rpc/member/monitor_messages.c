/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_messages.c - VIEW messages between members of a dynamic group: each carries the version
 * of the sender's view, and its answer proves that the receiver is alive. Keeps messages that wait
 * for an answer, and requests that are answered once our view is as new. monitor.lock. */
#include "rpc/member/monitor_inside.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "rpc/call/answer.h"
#include "rpc/call/call.h"
#include "rpc/future/worker.h"
#include "rpc/member/worker_group.h"
#include "rpc/rref/rrefs.h"

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
static void sent_settle(struct monitor *wa)
{
    struct sent **at = &wa->sent, *s;

    while ((s = *at)) {
        if (!s->over || !s->completed) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        free(s);
    }
    pthread_cond_broadcast(&wa->changed);
}

static bool is_refusal(const tenrec_error *why)
{
    return why->code == TENREC_ECONNECT && (why->os_errno == ECONNREFUSED || why->os_errno == 0);
}

/* The agent completed a VIEW message. */
static void on_sent(void *arg, const tenrec_error *why)
{
    struct sent *s = arg;
    struct monitor *wa = s->monitor;

    pthread_mutex_lock(&wa->lock);
    s->completed = true;
    if (why && !s->over) {
        s->over = true;
        heartbeats_failed(&wa->beats, s->id, s->incarnation, is_refusal(why), clock_now_ns());
    }
    sent_settle(wa);
    pthread_mutex_unlock(&wa->lock);
}

/* No lock held. */
static void view_send(struct monitor *wa, tenrec_peer to, int64_t incarnation, int64_t flags,
                      bool round)
{
    struct tenrec_worker *w = wa->w;
    int64_t number[VIEW_NUMBERS] = { [VIEW_FLAGS] = flags | (round ? FLAG_WAIT : 0),
                                     [VIEW_ID] = w->self.id,
                                     [VIEW_INCARNATION] = wa->incarnation };
    struct sent *s = memory_new(1, sizeof *s);
    struct tenrec_msg *msg = NULL;

    pthread_mutex_lock(&wa->lock);
    number[VIEW_VERSION] = wa->view.version;
    if (s && rref_numbers_write(TENREC_MSG_VIEW, number, VIEW_NUMBERS, &msg, NULL) == TENREC_OK) {
        *s = (struct sent){ .next = wa->sent,
                            .monitor = wa,
                            .msg_id = FIRST_ID + wa->n_sent++,
                            .id = to,
                            .incarnation = incarnation,
                            .round = round };
        wa->sent = s;
        msg->id = s->msg_id;
        msg->flags |= TENREC_MSG_CONTROL;
    }
    pthread_mutex_unlock(&wa->lock);
    if (!msg) {
        free(s);
        return;
    }
    chain_send(w->chain, to, msg, (struct tenrec_done){ on_sent, s });
}

static void view_answer(struct monitor *wa, const struct view_ask *a)
{
    int64_t number[RET_NUMBERS];
    struct tenrec_msg *msg = NULL;

    pthread_mutex_lock(&wa->lock);
    number[RET_VERSION] = wa->view.version;
    number[RET_KNOWN] = membership_view_find(&wa->view, a->id, a->incarnation) != NULL;
    pthread_mutex_unlock(&wa->lock);
    if (rref_numbers_write(TENREC_MSG_VIEW_RET, number, RET_NUMBERS, &msg, NULL) == TENREC_OK)
        answer_send(wa->w, a->ask.from, a->msg_id, &a->route, msg, NULL);
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

/* Keeps `a` (taken) until it is ready. Lock held, but released meanwhile. */
static void monitor_keep(struct monitor *wa, struct ask *a)
{
    struct ask *oldest = asks_add(&wa->asks, a);

    pthread_cond_broadcast(&wa->changed);
    pthread_mutex_unlock(&wa->lock);
    if (oldest)
        oldest->ready(wa->w, oldest);
    pthread_mutex_lock(&wa->lock);
}

/* Lock held. */
static bool monitor_keeps(const struct monitor *wa)
{
    return !wa->stopped && !wa->expelled && !wa->departed;
}

bool monitor_view_wait(struct tenrec_worker *w, struct ask *a)
{
    struct monitor *wa = group_of(w)->monitor;
    bool waits;

    if (!wa)
        return false;
    pthread_mutex_lock(&wa->lock);
    waits = a->version > wa->view.version && !clock_passed(a->deadline_ns) && monitor_keeps(wa);
    if (waits) {
        wa->poll = true;
        monitor_keep(wa, a);
    }
    pthread_mutex_unlock(&wa->lock);
    return waits;
}

void monitor_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg)
{
    struct monitor *wa = group_of(w)->monitor;
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
    pthread_mutex_lock(&wa->lock);
    a.leaving = a.leaving && from >= 0 && membership_view_find(&wa->view, from, a.incarnation);
    if (a.ask.version > wa->view.version) {
        wa->poll = true;
        pthread_cond_broadcast(&wa->changed);
    }
    if ((a.leaving || (a.ask.version > wa->view.version && waits)) && monitor_keeps(wa) &&
        (kept = memory_new(1, sizeof *kept))) {
        *kept = a;
        monitor_keep(wa, &kept->ask);
    }
    pthread_mutex_unlock(&wa->lock);
    if (!kept)
        view_answer(wa, &a);
}

void monitor_answered(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg)
{
    struct monitor *wa = group_of(w)->monitor;
    int64_t n[RET_NUMBERS];

    if (!wa || rref_numbers_read(msg, RET_NUMBERS, n, NULL) != TENREC_OK) {
        msg->release(msg);
        return;
    }
    pthread_mutex_lock(&wa->lock);
    for (struct sent *s = wa->sent; s; s = s->next) {
        if (s->msg_id != msg->id || s->id != from || s->over)
            continue;
        s->over = true;
        heartbeats_answered(&wa->beats, s->id, s->incarnation);
    }
    if (n[RET_VERSION] > wa->view.version && !wa->expelled)
        wa->poll = true;
    sent_settle(wa);
    pthread_mutex_unlock(&wa->lock);
    msg->release(msg);
}

void monitor_gives_up(struct monitor *wa, tenrec_peer id)
{
    for (struct sent *s = wa->sent; s; s = s->next)
        s->over = s->over || s->id == id;
    sent_settle(wa);
}

/* ---- announcements ---------------------------------------------------------------- */

/* To all other members. No lock held. */
static void view_send_all(struct monitor *wa, int64_t flags, bool round)
{
    struct membership_view v = { .version = 0 };

    pthread_mutex_lock(&wa->lock);
    membership_view_copy(&wa->view, &v, NULL);
    pthread_mutex_unlock(&wa->lock);
    for (size_t i = 0; i < v.n; i++)
        if (v.entry[i].incarnation != wa->incarnation)
            view_send(wa, v.entry[i].id, v.entry[i].incarnation, flags, round);
    membership_view_finish(&v);
}

bool monitor_wait(struct monitor *wa, uint64_t until_ns)
{
    return clock_cond_wait(&wa->changed, &wa->lock, until_ns);
}

/* Suspects the members that have not answered since `began_ns`, and from which nothing else has
 * arrived, for as long as heartbeats may stay unanswered; after the deadline, all that have not
 * answered. Returns true if answers are awaited still, until *ret_next_ns. Lock held. */
static bool round_expire(struct monitor *wa, uint64_t began_ns, uint64_t deadline_ns,
                         uint64_t *ret_next_ns)
{
    const uint64_t now_ns = clock_now_ns();
    const uint64_t patience_ns = wa->beats.rules.interval_ns * (uint64_t)wa->beats.rules.misses;
    bool open = false;

    *ret_next_ns = deadline_ns;
    for (struct sent *s = wa->sent; s; s = s->next) {
        const uint64_t moved_ns = traffic_moved_ns(wa, s->id);
        const uint64_t due_ns = (moved_ns > began_ns ? moved_ns : began_ns) + patience_ns;

        if (!s->round || s->over)
            continue;
        if (due_ns > now_ns && deadline_ns > now_ns) {
            open = true;
            *ret_next_ns = due_ns < *ret_next_ns ? due_ns : *ret_next_ns;
            continue;
        }
        s->over = true;
        heartbeats_suspect(&wa->beats, s->id, s->incarnation, now_ns, NULL);
    }
    return open;
}

/* Waits for the answers of a round. */
static void await_round(struct monitor *wa, uint64_t deadline_ns)
{
    const uint64_t began_ns = clock_now_ns();
    uint64_t next_ns;

    pthread_mutex_lock(&wa->lock);
    while (round_expire(wa, began_ns, deadline_ns, &next_ns))
        monitor_wait(wa, next_ns);
    sent_settle(wa);
    pthread_mutex_unlock(&wa->lock);
}

void monitor_probe(struct monitor *wa, tenrec_peer id, int64_t incarnation)
{
    view_send(wa, id, incarnation, 0, false);
}

void monitor_announce(struct monitor *wa)
{
    view_send_all(wa, 0, false);
}

void monitor_announce_and_wait(struct monitor *wa, uint64_t deadline_ns)
{
    view_send_all(wa, 0, true);
    await_round(wa, deadline_ns);
}

void monitor_announce_leaving(struct tenrec_worker *w, uint64_t deadline_ns)
{
    view_send_all(group_of(w)->monitor, FLAG_LEAVING, true);
    await_round(group_of(w)->monitor, deadline_ns);
}

/* ---- messages that wait for our view ----------------------------------------- */

static void asks_ready(struct monitor *wa, struct ask *list)
{
    struct ask *next;

    for (; list; list = next) {
        next = list->next;
        list->ready(wa->w, list);
    }
}

void monitor_answer_ripe(struct monitor *wa)
{
    struct ask *list;

    pthread_mutex_lock(&wa->lock);
    list = asks_take_ripe(&wa->asks, wa->view.version, clock_now_ns(),
                          wa->stopped || wa->expelled || wa->departed);
    pthread_mutex_unlock(&wa->lock);
    asks_ready(wa, list);
}

void monitor_messages_end(struct monitor *wa)
{
    for (struct sent *s = wa->sent, *next; s; s = next) {
        next = s->next;
        free(s);
    }
    asks_ready(wa, asks_take_ripe(&wa->asks, 0, 0, true));
}
