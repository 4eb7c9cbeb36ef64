/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_sent.c - our VIEW messages, until they are answered: probes, and questions about a third
 * member. monitor.lock. */
#include "rpc/monitor/view_message.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "rpc/future/worker.h"
#include "rpc/rref/rref.h"

#include <errno.h>
#include <stdlib.h>

enum { OTHERS = 2 /* that are asked about a third member */ };

/* Messages have ended: frees them and wakes the waiting threads. Lock held. */
static void sent_settle(struct monitor *m)
{
    struct sent **at = &m->sent, *s;
    bool probe = false;

    while ((s = *at)) {
        probe = probe || (s->over && s->sweep.kind == SWEEP_NONE);
        if (!s->over || !s->completed) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        free(s);
    }
    if (probe)
        pthread_cond_broadcast(&m->changed);
    monitor_wake(m);
}

static bool is_refusal(const tenrec_error *why)
{
    return why->code == TENREC_ECONNECT && (why->os_errno == ECONNREFUSED || why->os_errno == 0);
}

/* Whether it answers is not asked again by a worker that has left. */
void sent_lost(struct monitor *m, const struct sent *s)
{
    if (m->departed)
        sweep_shun(m, &s->sweep.to);
    else
        heartbeats_suspect(&m->beats, s->id, s->incarnation, clock_now_ns(), NULL);
}

void sent_done(void *arg, const tenrec_error *why)
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

void sent_add(struct monitor *m, struct sent *s, struct tenrec_msg *msg)
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
        chain_send(w->chain, id, msg, (struct tenrec_done){ sent_done, s });
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
    chain_send(m->w->chain, other->id, msg, (struct tenrec_done){ sent_done, s });
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

bool monitor_probes_wait(const struct monitor *m, int64_t n_sent)
{
    for (const struct sent *s = m->sent; s; s = s->next)
        if (!s->over && s->sweep.kind == SWEEP_NONE && s->msg_id >= FIRST_ID + n_sent)
            return true;
    return false;
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

void monitor_wake(struct monitor *m)
{
    pthread_cond_signal(&m->work);
}
