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
#include "rpc/value/codec.h"
#include "rpc/worker/worker.h"

#include <errno.h>
#include <stdlib.h>

/* A VIEW message is four numbers: the sender's version, flags, id and incarnation; one of a sweep
 * has the level of a block and changes (view_news.h) behind them; a message about a third
 * member has its id and incarnation behind them. Its answer is two: the answerer's version (of a
 * sweep that has ended, that of the message; 0 if it is refused), and whether the sender is a
 * member there, or the third member answers. */
enum { VIEW_VERSION, VIEW_FLAGS, VIEW_ID, VIEW_INCARNATION, VIEW_NUMBERS };
enum { CHECK_ID = VIEW_NUMBERS, CHECK_INCARNATION, CHECK_NUMBERS };
enum { OTHERS = 2 /* that are asked about a third member */ };
enum { RET_VERSION, RET_KNOWN, RET_NUMBERS };
enum {
    FLAG_LEAVING = 1,
    FLAG_WAIT = 2,   /* answer once at that version; not in heartbeats: the store may be slow */
    FLAG_UP = 4,     /* answer once all members know */
    FLAG_DOWN = 8,   /* answer once all members of the block know */
    FLAG_THIRD = 16, /* answer whether the third member answers you */
};

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

/* Ids of calls are positive. */
#define FIRST_ID INT64_MIN

struct sent {
    struct sent *next;
    struct monitor *monitor;
    int64_t msg_id;
    tenrec_peer id;
    int64_t incarnation;
    tenrec_peer about;         /* the third member that is asked about */
    int64_t about_incarnation; /* 0: none */
    struct sweep_send sweep;   /* without its news; kind is SWEEP_NONE for others */
    uint64_t since_ns;
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

/* Whether it answers is not asked again by a worker that has left. */
static void sent_lost(struct monitor *m, const struct sent *s)
{
    if (m->departed)
        sweep_shun(m, &s->sweep.to);
    else
        heartbeats_suspect(&m->beats, s->id, s->incarnation, clock_now_ns(), NULL);
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
        if (s->about_incarnation)
            heartbeats_vouched(&m->beats, s->about, s->about_incarnation, false, clock_now_ns());
        else if (s->sweep.kind == SWEEP_NONE)
            heartbeats_failed(&m->beats, s->id, s->incarnation, is_refusal(why), clock_now_ns());
        else
            sent_lost(m, s);
        m->pump = m->suspects = true;
    }
    sent_settle(m);
    pthread_mutex_unlock(&m->lock);
}

/* Keeps `s` (taken; NULL: none) for the answer to `msg`. Lock held. */
static void sent_add(struct monitor *m, struct sent *s, struct tenrec_msg *msg)
{
    s->next = m->sent;
    s->monitor = m;
    s->msg_id = FIRST_ID + m->n_sent++;
    s->since_ns = clock_now_ns();
    m->sent = s;
    msg->id = s->msg_id;
    msg->flags |= TENREC_MSG_CONTROL;
}

void monitor_probe(struct monitor *m, tenrec_peer id, int64_t incarnation)
{
    struct tenrec_worker *w = m->w;
    int64_t number[VIEW_NUMBERS] = { [VIEW_ID] = w->self.id, [VIEW_INCARNATION] = m->incarnation };
    struct sent *s = memory_new(1, sizeof *s);
    struct tenrec_msg *msg = NULL;

    pthread_mutex_lock(&m->lock);
    number[VIEW_VERSION] = m->view.version;
    if (s && rref_numbers_write(TENREC_MSG_VIEW, number, VIEW_NUMBERS, &msg, NULL) == TENREC_OK) {
        s->id = id;
        s->incarnation = incarnation;
        sent_add(m, s, msg);
    }
    pthread_mutex_unlock(&m->lock);
    if (msg)
        chain_send(w->chain, id, msg, (struct tenrec_done){ on_sent, s });
    else
        free(s);
}

/* ---- a third member --------------------------------------------------------------- */

static void ask_about(struct monitor *m, const struct membership_view_entry *other, tenrec_peer id,
                      int64_t incarnation)
{
    const int64_t number[CHECK_NUMBERS] = { [VIEW_VERSION] = m->view.version,
                                            [VIEW_FLAGS] = FLAG_THIRD,
                                            [VIEW_ID] = m->w->self.id,
                                            [VIEW_INCARNATION] = m->incarnation,
                                            [CHECK_ID] = id,
                                            [CHECK_INCARNATION] = incarnation };
    struct sent *s = memory_new(1, sizeof *s);
    struct tenrec_msg *msg = NULL;

    if (!s || rref_numbers_write(TENREC_MSG_VIEW, number, CHECK_NUMBERS, &msg, NULL) != TENREC_OK) {
        free(s);
        return;
    }
    s->id = other->id;
    s->incarnation = other->incarnation;
    s->about = id;
    s->about_incarnation = incarnation;
    pthread_mutex_lock(&m->lock);
    sent_add(m, s, msg);
    pthread_mutex_unlock(&m->lock);
    chain_send(m->w->chain, other->id, msg, (struct tenrec_done){ on_sent, s });
}

/* The next members behind it, by id. */
void monitor_consult(struct monitor *m, tenrec_peer id, int64_t incarnation)
{
    struct membership_view_entry other[OTHERS];
    uint32_t n = 0;

    pthread_mutex_lock(&m->lock);
    for (size_t i = 1, at = membership_view_index(&m->view, id); i < m->view.n && n < OTHERS; i++) {
        const struct membership_view_entry *e = &m->view.entry[(at + i) % m->view.n];

        if (e->incarnation != m->incarnation && e->incarnation != incarnation &&
            !heartbeats_suspects(&m->beats, e->id, e->incarnation))
            other[n++] = *e;
    }
    heartbeats_consulted(&m->beats, id, incarnation, n, clock_now_ns());
    pthread_mutex_unlock(&m->lock);
    for (uint32_t i = 0; i < n; i++)
        ask_about(m, &other[i], id, incarnation);
}

/* Lock held. */
static bool monitor_keeps(const struct monitor *m)
{
    return !m->stopped && !m->expelled && !m->departed;
}

bool monitor_probes_wait(const struct monitor *m, int64_t n_sent)
{
    for (const struct sent *s = m->sent; s; s = s->next)
        if (!s->over && s->sweep.kind == SWEEP_NONE && s->msg_id >= FIRST_ID + n_sent)
            return true;
    return false;
}

/* ---- sweeps --------------------------------------------------------------------- */

enum { SWEEP_LEVEL = VIEW_NUMBERS, SWEEP_NEWS, SWEEP_ITEMS };
/* Of a member to be, which leads a block already. Its changes are not used. */
enum { STRANGER_PAYLOAD_MAX = SWEEP_NEWS_MAX + 128 };

static struct tenrec_msg *sweep_write(const struct monitor *m, const struct sweep_send *s)
{
    const struct tenrec_value item[SWEEP_ITEMS] = {
        [VIEW_VERSION] = tenrec_value_int(s->version),
        [VIEW_FLAGS] = tenrec_value_int(s->kind == SWEEP_UP ? FLAG_UP : FLAG_DOWN),
        [VIEW_ID] = tenrec_value_int(m->w->self.id),
        [VIEW_INCARNATION] = tenrec_value_int(m->incarnation),
        [SWEEP_LEVEL] = tenrec_value_int(s->to.level),
        [SWEEP_NEWS] = tenrec_value_bytes(s->news.data, s->news.len),
    };
    const struct tenrec_value array = tenrec_value_array(item, SWEEP_ITEMS);
    struct tenrec_msg *msg = NULL;

    if (s->news.failed || codec_write_value(&array, TENREC_MSG_VIEW, &msg, NULL) != TENREC_OK)
        return NULL;
    return msg;
}

void monitor_sweep_send(struct monitor *m, struct sweep_send *sweep)
{
    struct sent *s = memory_new(1, sizeof *s);
    struct tenrec_msg *msg = s ? sweep_write(m, sweep) : NULL;

    bytes_free(&sweep->news);
    if (!msg) { /* out of memory: again after the next event */
        free(s);
        return;
    }
    pthread_mutex_lock(&m->lock);
    s->id = sweep->to.id;
    s->incarnation = sweep->to.incarnation;
    s->sweep = *sweep;
    sent_add(m, s, msg);
    pthread_mutex_unlock(&m->lock);
    chain_send(m->w->chain, s->id, msg, (struct tenrec_done){ on_sent, s });
}

bool monitor_sweep_waits(const struct monitor *m, const struct spread_child *to,
                         enum sweep_kind kind)
{
    for (const struct sent *s = m->sent; s; s = s->next)
        if (!s->over && s->sweep.kind == kind && s->incarnation == to->incarnation &&
            (kind == SWEEP_UP || s->sweep.to.level == to->level))
            return true;
    return false;
}

/* Requests for a block wait for the members below, which their leader suspects first. */
static uint64_t patience_ns(const struct monitor *m, const struct sent *s)
{
    const unsigned levels = s->sweep.kind == SWEEP_UP ? SPREAD_ALL + 1 : s->sweep.to.level;

    return m->beats.rules.interval_ns * m->beats.rules.misses * (levels + 1);
}

/* Bytes that arrive from the receiver are signs of its life: our message may wait behind others.
 * But not for ever: a receiver whose monitor waits for a callback of its program answers all but
 * this message. */
static uint64_t due_ns(const struct monitor *m, const struct sent *s)
{
    const uint64_t patient_ns = patience_ns(m, s);
    const uint64_t moved_ns = traffic_moved_ns(m, s->id);
    const uint64_t most_ns = s->since_ns + patient_ns;

    return (moved_ns < s->since_ns ? s->since_ns
            : moved_ns < most_ns   ? moved_ns
                                   : most_ns) +
           patient_ns;
}

void monitor_sweep_expire(struct monitor *m, uint64_t *next_ns)
{
    const uint64_t now_ns = clock_now_ns();

    for (struct sent *s = m->sent; s; s = s->next) {
        uint64_t end_ns;

        if (s->sweep.kind == SWEEP_NONE || s->over)
            continue;
        end_ns = due_ns(m, s);
        if (end_ns > now_ns) {
            *next_ns = end_ns < *next_ns ? end_ns : *next_ns;
            continue;
        }
        s->over = m->pump = true;
        /* It may answer the polls of a suspect at once. */
        sweep_shun(m, &s->sweep.to);
        sent_lost(m, s);
    }
}

void monitor_sweep_answer(struct monitor *m, const struct sweep *s, bool done)
{
    int64_t number[RET_NUMBERS] = { [RET_VERSION] = done ? s->version : 0 };
    struct tenrec_msg *msg = NULL;

    pthread_mutex_lock(&m->lock);
    number[RET_KNOWN] = membership_view_find(&m->view, s->id, s->incarnation) != NULL;
    pthread_mutex_unlock(&m->lock);
    if (rref_numbers_write(TENREC_MSG_VIEW_RET, number, RET_NUMBERS, &msg, NULL) == TENREC_OK)
        answer_send(m->w, s->from, s->msg_id, &s->route, msg, NULL);
}

/* *ret is NULL if the message is of no sweep. errors: EPROTOCOL, ENOMEM */
static tenrec_status sweep_read(struct tenrec_worker *w, tenrec_peer from,
                                const struct tenrec_msg *msg, struct sweep **ret, tenrec_error *err)
{
    struct tenrec_value *v = NULL;
    tenrec_status st = TENREC_OK;
    int64_t version, flags, id, incarnation, level;
    const struct tenrec_value *item;
    struct sweep *s;

    *ret = NULL;
    if (from < 0 && msg->payload_len > STRANGER_PAYLOAD_MAX)
        st = tenrec_fail(err, TENREC_EPROTOCOL,
                         "a caller that is no member sent a view of %llu bytes",
                         (unsigned long long)msg->payload_len);
    if (st == TENREC_OK)
        st = codec_read_value(msg, &v, err);
    if (st != TENREC_OK || v->type != TENREC_VALUE_ARRAY || v->n != SWEEP_ITEMS)
        goto out;
    item = v->u.array;
    st = tenrec_value_unpack(item, SWEEP_NEWS, err, "iiiii", &version, &flags, &id, &incarnation,
                             &level);
    if (st == TENREC_OK &&
        (item[SWEEP_NEWS].type != TENREC_VALUE_BYTES || version < 0 || level < 0 ||
         level > SPREAD_ALL || id < 0 || id >= RANKS_MAX || incarnation < 1 ||
         (flags != FLAG_UP && flags != FLAG_DOWN) || (from >= 0 && from != id)))
        st = tenrec_fail(err, TENREC_EPROTOCOL, "malformed view from '%s'",
                         peers_name(&w->peers, from));
    if (st != TENREC_OK)
        goto out;
    s = memory_new(1, sizeof *s);
    if (s && from >= 0) {
        s->news = bytes_copy(item[SWEEP_NEWS].u.bytes, item[SWEEP_NEWS].n);
        s->news_len = item[SWEEP_NEWS].n;
    }
    if (!s || (from >= 0 && !s->news)) {
        free(s);
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for the changes of a view");
        goto out;
    }
    s->kind = flags == FLAG_UP ? SWEEP_UP : SWEEP_DOWN;
    s->level = flags == FLAG_UP ? SPREAD_ALL : (unsigned)level;
    s->from = from;
    s->id = (tenrec_peer)id;
    s->incarnation = incarnation;
    s->version = version;
    s->msg_id = msg->id;
    s->route = msg->route;
    *ret = s;
out:
    tenrec_value_drop(v);
    return st;
}

/* Returns true if `msg` is of a sweep, which is kept or refused then. */
static bool sweep_arrived(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_msg *msg)
{
    struct monitor *m = group_of(w)->monitor;
    struct sweep *s, *refused = NULL;

    if (!m || sweep_read(w, from, msg, &s, NULL) != TENREC_OK || !s)
        return false;
    pthread_mutex_lock(&m->lock);
    /* A message under the id of a member in another life. */
    s->stranger = from < 0 || !membership_view_find(&m->view, from, s->incarnation);
    refused = m->stopped || m->expelled ? s : sweep_add(m, s);
    pthread_mutex_unlock(&m->lock);
    if (refused) {
        monitor_sweep_answer(m, refused, false);
        sweep_free(refused);
    }
    return true;
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
    bool awaited = false;

    if (!m || rref_numbers_read(msg, RET_NUMBERS, n, NULL) != TENREC_OK) {
        msg->release(msg);
        return;
    }
    pthread_mutex_lock(&m->lock);
    for (struct sent *s = m->sent; s; s = s->next) {
        if (s->msg_id != msg->id || s->id != from || s->over)
            continue;
        s->over = awaited = true;
        heartbeats_answered(&m->beats, s->id, s->incarnation);
        if (s->about_incarnation)
            heartbeats_vouched(&m->beats, s->about, s->about_incarnation, n[RET_KNOWN] == 1,
                               clock_now_ns());
        if (s->sweep.kind != SWEEP_NONE && n[RET_VERSION] >= s->sweep.version)
            sweep_confirmed(m, &s->sweep);
        else if (s->sweep.kind != SWEEP_NONE)
            sweep_refused(m, &s->sweep);
    }
    if (!awaited && n[RET_VERSION] > 0)
        sweep_shun_no_more(m, from);
    if (n[RET_VERSION] > m->view.version && !m->expelled)
        m->poll = true;
    sent_settle(m);
    pthread_mutex_unlock(&m->lock);
    msg->release(msg);
}

void monitor_gives_up(struct monitor *m, tenrec_peer id)
{
    m->pump = true;
    for (struct sent *s = m->sent; s; s = s->next)
        s->over = s->over || s->id == id;
    sent_settle(m);
}

bool monitor_wait(struct monitor *m, uint64_t until_ns)
{
    return clock_cond_wait(&m->changed, &m->lock, until_ns);
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
    sweeps_end(m);
}
