#include "rpc/watch.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/threads.h"
#include "config/config.h"
#include "group/roster.h"
#include "rpc/call.h"
#include "rpc/dispatch.h"
#include "rpc/membership.h"
#include "rpc/rref_control.h"
#include "rpc/setup.h"
#include "rpc/watch_inside.h"
#include "rpc/worker.h"

#include <errno.h>
#include <stdlib.h>

enum {
    STORE_MS = 2000,     /* one look at the store, or change of it */
    RETRY_MAX_MS = 5000, /* between looks at one that does not answer */
};

/* ---- messages ---------------------------------------------------------------- */

/* A VIEW message is four numbers: the version that the sender has, flags, and who
 * it is; its answer two: the version of who answers, and whether the sender is a
 * member there. */
enum { VIEW_VERSION, VIEW_FLAGS, VIEW_ID, VIEW_INCARNATION, VIEW_NUMBERS };
enum { RET_VERSION, RET_KNOWN, RET_NUMBERS };
enum {
    FLAG_LEAVING = 1,
    FLAG_WAIT = 2, /* answer when you have that version: else a slow store would look like death */
};

/* Ids of calls are positive. */
#define FIRST_ID INT64_MIN

struct sent {
    struct sent *next;
    struct watch *watch;
    int64_t msg_id;
    tenrec_peer id;
    int64_t incarnation;
    bool round; /* somebody waits for the answers of all */
    bool told;  /* the agent's word has come */
    bool over;  /* answered, failed or given up */
};

/* Lock held. */
static void sent_free_done(struct watch *wa)
{
    struct sent **at = &wa->sent, *s;

    while ((s = *at)) {
        if (!s->over || !s->told) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        free(s);
    }
}

static bool is_refusal(const tenrec_error *why)
{
    return why->code == TENREC_ECONNECT && (why->os_errno == ECONNREFUSED || why->os_errno == 0);
}

/* The agent's word about one VIEW message. */
static void on_sent(void *arg, const tenrec_error *why)
{
    struct sent *s = arg;
    struct watch *wa = s->watch;

    pthread_mutex_lock(&wa->lock);
    s->told = true;
    if (why && !s->over) {
        s->over = true;
        heartbeats_failed(&wa->beats, s->id, s->incarnation, is_refusal(why), clock_now_ns());
    }
    sent_free_done(wa);
    pthread_cond_broadcast(&wa->changed);
    pthread_mutex_unlock(&wa->lock);
}

/* Tells `to` where we are. No lock held. */
static void send_view(struct watch *wa, tenrec_peer to, int64_t incarnation, int64_t flags,
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
                            .watch = wa,
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

static void answer(struct watch *wa, const struct ask *a)
{
    int64_t number[RET_NUMBERS];
    struct tenrec_msg *msg = NULL;

    pthread_mutex_lock(&wa->lock);
    number[RET_VERSION] = wa->view.version;
    number[RET_KNOWN] = view_find(&wa->view, a->id, a->incarnation) != NULL;
    pthread_mutex_unlock(&wa->lock);
    if (rref_numbers_write(TENREC_MSG_VIEW_RET, number, RET_NUMBERS, &msg, NULL) == TENREC_OK)
        dispatch_answer(wa->w, a->from, a->msg_id, &a->route, msg, NULL);
}

void watch_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg)
{
    struct watch *wa = w->watch;
    int64_t n[VIEW_NUMBERS];
    struct ask a = { .from = from, .msg_id = msg->id, .route = msg->route }, *kept = NULL;
    bool later;
    tenrec_error why;
    tenrec_status st = rref_numbers_read(msg, VIEW_NUMBERS, n, &why);

    if (st == TENREC_OK && !wa)
        st = tenrec_fail(&why, TENREC_EGROUP, "the group of '%s' is static", w->self.name);
    msg->release(msg);
    if (st != TENREC_OK) {
        dispatch_answer_error(w, from, a.msg_id, &a.route, true, &why);
        return;
    }
    a.id = (tenrec_peer)n[VIEW_ID];
    a.incarnation = n[VIEW_INCARNATION];
    a.version = n[VIEW_VERSION];
    a.leaving = n[VIEW_FLAGS] & FLAG_LEAVING;
    pthread_mutex_lock(&wa->lock);
    later = (a.leaving || (a.version > wa->view.version && (n[VIEW_FLAGS] & FLAG_WAIT))) &&
            !wa->stopped && !wa->expelled;
    if (later && (kept = memory_new(1, sizeof *kept))) {
        *kept = a;
        kept->next = wa->asks;
        wa->asks = kept;
    }
    wa->look = wa->look || a.version > wa->view.version;
    if (later || wa->look)
        pthread_cond_broadcast(&wa->changed);
    pthread_mutex_unlock(&wa->lock);
    if (!kept)
        answer(wa, &a);
}

void watch_answered(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg)
{
    struct watch *wa = w->watch;
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
        wa->look = true;
    sent_free_done(wa);
    pthread_cond_broadcast(&wa->changed);
    pthread_mutex_unlock(&wa->lock);
    msg->release(msg);
}

void watch_gives_up(struct watch *wa, tenrec_peer id)
{
    for (struct sent *s = wa->sent; s; s = s->next)
        s->over = s->over || s->id == id;
    sent_free_done(wa);
    pthread_cond_broadcast(&wa->changed);
}

bool watch_suspects(struct tenrec_worker *w, tenrec_peer peer)
{
    struct watch *wa = w->watch;
    const struct view_entry *e;

    if (!wa)
        return false;
    pthread_mutex_lock(&wa->lock);
    e = view_by_id(&wa->view, peer);
    if (e && !wa->expelled && !wa->stopped) {
        heartbeats_suspect(&wa->beats, peer, e->incarnation, clock_now_ns(), NULL);
        wa->look = true;
        wa->suspects = true;
    }
    watch_gives_up(wa, peer);
    pthread_mutex_unlock(&wa->lock);
    return true;
}

/* ---- telling all ----------------------------------------------------------------- */

/* A copy of who is there, without us. No lock held. */
static size_t others(struct watch *wa, struct view_entry **ret)
{
    struct view v = { .version = 0 };
    size_t n = 0;

    pthread_mutex_lock(&wa->lock);
    if (view_copy(&wa->view, &v, NULL) == TENREC_OK)
        for (size_t i = 0; i < v.n; i++)
            if (v.entry[i].incarnation != wa->incarnation)
                v.entry[n++] = v.entry[i];
    pthread_mutex_unlock(&wa->lock);
    *ret = v.entry;
    return n;
}

static void tell_all(struct watch *wa, int64_t flags, bool round)
{
    struct view_entry *list;
    size_t n = others(wa, &list);

    for (size_t i = 0; i < n; i++)
        send_view(wa, list[i].id, list[i].incarnation, flags, round);
    free(list);
}

static bool round_is_open(const struct watch *wa)
{
    for (const struct sent *s = wa->sent; s; s = s->next)
        if (s->round && !s->over)
            return true;
    return false;
}

/* False when the deadline came. Lock held. */
static bool wait_changed(struct watch *wa, uint64_t until_ns)
{
    const struct timespec ts = { .tv_sec = (time_t)(until_ns / 1000000000u),
                                 .tv_nsec = (long)(until_ns % 1000000000u) };

    if (until_ns == CLOCK_NEVER)
        return pthread_cond_wait(&wa->changed, &wa->lock) == 0;
    return pthread_cond_timedwait(&wa->changed, &wa->lock, &ts) != ETIMEDOUT;
}

/* Waits for the answers of a round; who does not answer is looked at. */
static void await_round(struct watch *wa, uint64_t deadline_ns)
{
    uint64_t limit_ns =
        clock_now_ns() + wa->beats.rules.interval_ns * (uint64_t)wa->beats.rules.misses;

    if (limit_ns > deadline_ns)
        limit_ns = deadline_ns;
    pthread_mutex_lock(&wa->lock);
    while (round_is_open(wa) && wait_changed(wa, limit_ns))
        ;
    for (struct sent *s = wa->sent; s; s = s->next) {
        if (!s->round || s->over)
            continue;
        s->over = true;
        heartbeats_suspect(&wa->beats, s->id, s->incarnation, clock_now_ns(), NULL);
    }
    sent_free_done(wa);
    pthread_cond_broadcast(&wa->changed);
    pthread_mutex_unlock(&wa->lock);
}

void watch_tell_leaving(struct tenrec_worker *w, uint64_t deadline_ns)
{
    struct watch *wa = w->watch;

    tell_all(wa, FLAG_LEAVING, true);
    await_round(wa, deadline_ns);
}

/* ---- the store ---------------------------------------------------------------------- */

static void store_failed(struct watch *wa, const tenrec_error *why)
{
    if (wa->retry_ms == 0)
        log_line(TENREC_LOG_WARN, wa->w->self.name,
                 "the store of the group does not answer, so that nobody can join or be taken out: "
                 "%s",
                 why->text);
    wa->retry_ms = wa->retry_ms ? wa->retry_ms * 2 : 50;
    if (wa->retry_ms > RETRY_MAX_MS)
        wa->retry_ms = RETRY_MAX_MS;
    pthread_mutex_lock(&wa->lock);
    wa->store_at_ns = clock_deadline_ms(wa->retry_ms);
    wa->look = true;
    pthread_mutex_unlock(&wa->lock);
}

static void store_answered(struct watch *wa)
{
    if (wa->retry_ms == 0)
        return;
    log_line(TENREC_LOG_INFO, wa->w->self.name, "the store of the group answers again");
    wa->retry_ms = 0;
    pthread_mutex_lock(&wa->lock);
    heartbeats_start_over(&wa->beats, clock_now_ns());
    wa->suspects = true;
    pthread_mutex_unlock(&wa->lock);
}

/* Sees what the store says now. */
static void refresh(struct watch *wa)
{
    struct view v = { .version = 0 };
    tenrec_error why;

    if (roster_read(wa->roster, clock_deadline_ms(STORE_MS), &v, &why) != TENREC_OK) {
        store_failed(wa, &why);
        return;
    }
    store_answered(wa);
    watch_apply(wa, &v, &why);
}

/* Takes one that is dead out of the group, and tells the others. */
static void bury(struct watch *wa, const struct heartbeat *dead)
{
    struct view v = { .version = 0 };
    tenrec_error why;

    log_line(TENREC_LOG_WARN, wa->w->self.name, "'%s' (id %d) is dead: %s",
             peers_name(&wa->w->peers, dead->id), (int)dead->id,
             dead->refused >= wa->beats.rules.misses ? "nobody listens at its address"
                                                     : "it does not answer");
    if (roster_remove(wa->roster, dead->id, dead->incarnation, true, clock_deadline_ms(STORE_MS),
                      &v, &why) != TENREC_OK) {
        store_failed(wa, &why);
        return;
    }
    store_answered(wa);
    watch_apply(wa, &v, &why);
    tell_all(wa, 0, false);
}

static void depart(struct watch *wa)
{
    struct view v = { .version = 0 };
    uint64_t deadline_ns;
    tenrec_error why;
    tenrec_status st;

    pthread_mutex_lock(&wa->lock);
    deadline_ns = wa->depart_ns;
    pthread_mutex_unlock(&wa->lock);
    st = roster_leave(wa->roster, deadline_ns, &v, &why);
    pthread_mutex_lock(&wa->lock);
    /* The others remain in our list, to be told. */
    if (st == TENREC_OK && v.version > 0)
        wa->view.version = v.version;
    wa->depart_status = st;
    if (st != TENREC_OK)
        wa->depart_why = why;
    wa->departed = true;
    pthread_cond_broadcast(&wa->changed);
    pthread_mutex_unlock(&wa->lock);
    view_finish(&v);
}

tenrec_status watch_depart(struct tenrec_worker *w, uint64_t deadline_ns, tenrec_error *err)
{
    struct watch *wa = w->watch;
    tenrec_status st;

    pthread_mutex_lock(&wa->lock);
    wa->departs = true;
    wa->depart_ns = deadline_ns;
    pthread_cond_broadcast(&wa->changed);
    while (!wa->departed)
        pthread_cond_wait(&wa->changed, &wa->lock);
    st = wa->depart_status;
    if (st != TENREC_OK && err)
        *err = wa->depart_why;
    pthread_mutex_unlock(&wa->lock);
    if (st == TENREC_OK) {
        tell_all(wa, 0, true);
        await_round(wa, deadline_ns);
    }
    return st;
}

/* ---- the thread ---------------------------------------------------------------------- */

/* Takes those out that wait for no more than we know. Lock held. */
static struct ask *take_ripe(struct watch *wa)
{
    const bool all = wa->stopped || wa->expelled || wa->departed;
    struct ask **at = &wa->asks, *list = NULL, *a;

    while ((a = *at)) {
        if (!all && a->version > wa->view.version) {
            at = &a->next;
            continue;
        }
        *at = a->next;
        a->next = list;
        list = a;
    }
    return list;
}

/* Answers those who waited for what we know now. */
static void answer_asks(struct watch *wa)
{
    struct ask *list, *next;

    pthread_mutex_lock(&wa->lock);
    list = take_ripe(wa);
    pthread_mutex_unlock(&wa->lock);
    for (; list; list = next) {
        next = list->next;
        if (list->leaving)
            watch_leaves(wa, list->id, list->incarnation);
        answer(wa, list);
        free(list);
    }
}

static bool has_ripe(const struct watch *wa)
{
    for (const struct ask *a = wa->asks; a; a = a->next)
        if (a->version <= wa->view.version)
            return true;
    return false;
}

/* One thing to do, with the lock, which it gives up meanwhile. False: nothing until *next_ns. */
static bool work(struct watch *wa, uint64_t *next_ns)
{
    const uint64_t now_ns = clock_now_ns();
    const bool store = now_ns >= wa->store_at_ns;
    struct heartbeat one;
    enum heartbeat_due due;

    *next_ns = CLOCK_NEVER;
    if (wa->departs && !wa->departed) {
        pthread_mutex_unlock(&wa->lock);
        depart(wa);
        pthread_mutex_lock(&wa->lock);
        return true;
    }
    if (wa->expelled || wa->departed) {
        if (!wa->asks)
            return false;
        pthread_mutex_unlock(&wa->lock);
        answer_asks(wa);
        pthread_mutex_lock(&wa->lock);
        return true;
    }
    if (has_ripe(wa)) {
        pthread_mutex_unlock(&wa->lock);
        answer_asks(wa);
        pthread_mutex_lock(&wa->lock);
        return true;
    }
    if (store && wa->look) {
        wa->look = false;
        pthread_mutex_unlock(&wa->lock);
        refresh(wa);
        pthread_mutex_lock(&wa->lock);
        return true;
    }
    if (wa->suspects) {
        wa->suspects = false;
        watch_find_dead(wa);
    }
    due = heartbeats_next(&wa->beats, now_ns, &one, next_ns);
    if (!store && wa->look && wa->store_at_ns < *next_ns)
        *next_ns = wa->store_at_ns;
    if (due == HEARTBEAT_REST)
        return false;
    pthread_mutex_unlock(&wa->lock);
    if (due == HEARTBEAT_DEAD && store)
        bury(wa, &one);
    else
        send_view(wa, one.id, one.incarnation, 0, false);
    pthread_mutex_lock(&wa->lock);
    return true;
}

static void *run(void *arg)
{
    struct watch *wa = arg;
    uint64_t next_ns;

    pthread_mutex_lock(&wa->lock);
    while (!wa->stop)
        if (!work(wa, &next_ns))
            wait_changed(wa, next_ns);
    wa->stopped = true;
    pthread_mutex_unlock(&wa->lock);
    answer_asks(wa);
    return NULL;
}

tenrec_status watch_open(struct tenrec_worker *w, tenrec_error *err)
{
    const struct config_settings *s = setup_settings(w->setup);
    struct roster *roster = membership_roster(w->membership);
    struct watch *wa;
    pthread_condattr_t attr;
    tenrec_status st;

    if (!roster || worker_visits(w))
        return TENREC_OK;
    if (!(wa = memory_new(1, sizeof *wa)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory to watch the group");
    wa->w = w;
    wa->roster = roster;
    wa->incarnation = roster->incarnation;
    wa->beats.rules = (struct heartbeat_rules){ s->heartbeat_ms * UINT64_C(1000000),
                                                (uint32_t)s->heartbeat_misses };
    pthread_mutex_init(&wa->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&wa->changed, &attr);
    pthread_condattr_destroy(&attr);
    w->watch = wa;
    st = watch_begin(wa, err);
    if (st == TENREC_OK)
        st = heartbeats_follow(&wa->beats, &wa->view, w->self.id, clock_now_ns(), err);
    return st;
}

tenrec_status watch_start(struct tenrec_worker *w, uint64_t deadline_ns, tenrec_error *err)
{
    struct watch *wa = w->watch;
    int r;

    if (!wa)
        return TENREC_OK;
    r = threads_start(&wa->thread, "tenrec-group", run, wa);
    if (r != 0)
        return tenrec_fail_errno(err, TENREC_EOS, r, "cannot start the thread of the group");
    wa->started = true;
    tell_all(wa, 0, true);
    await_round(wa, deadline_ns);
    return TENREC_OK;
}

void watch_stop(struct tenrec_worker *w)
{
    struct watch *wa = w->watch;

    if (!wa)
        return;
    pthread_mutex_lock(&wa->lock);
    wa->stop = true;
    pthread_cond_broadcast(&wa->changed);
    pthread_mutex_unlock(&wa->lock);
    if (wa->started)
        pthread_join(wa->thread, NULL);
    wa->started = false;
    pthread_mutex_lock(&wa->lock);
    wa->stopped = true;
    pthread_cond_broadcast(&wa->changed);
    pthread_mutex_unlock(&wa->lock);
}

void watch_close(struct tenrec_worker *w)
{
    struct watch *wa = w->watch;

    if (!wa)
        return;
    for (struct sent *s = wa->sent, *next; s; s = next) {
        next = s->next;
        free(s);
    }
    for (struct ask *a = wa->asks, *next; a; a = next) {
        next = a->next;
        free(a);
    }
    watch_end(wa);
    heartbeats_finish(&wa->beats);
    pthread_cond_destroy(&wa->changed);
    pthread_mutex_destroy(&wa->lock);
    free(wa);
    w->watch = NULL;
}
