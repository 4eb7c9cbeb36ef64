/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_expire.c - requests that wait in a queue until their deadlines have passed.
 *
 * Their callers have given up, and a stalled peer must not receive them when it resumes: they are
 * withdrawn, once a second, while something is queued. Small messages that share a buffer stay. */
#include "pipe/pipe.h"

#define EXPIRE_NS 1000000000u

/* Lock held. Part of it may be on its way when it is first on a connection, or encrypted. */
static bool segment_waits(const struct pipe *p, const struct segment *s, enum conn_role on)
{
    return !s->awaited && !s->offered && p->conns.of[on]->first != s;
}

/* Lock held. Returns true if neither the peer nor a writer has seen a part of it. */
static bool send_request_is_expired(const struct pipe *p, const struct send_request *request,
                                    uint64_t now)
{
    if (!request->msg || request->pinned || !request->msg->deadline_ns ||
        request->msg->deadline_ns > now || request->parts != 1 + request->n_tensors ||
        !segment_waits(p, &request->frames, CONN_DESCRIPTOR))
        return false;
    for (uint32_t i = 0; i < request->n_tensors; i++)
        if (!segment_waits(p, &request->tensors[i], request->tensors[i].on))
            return false;
    return true;
}

/* Lock held. It is in the queue, and not the first there. */
static void conn_unqueue(struct conn *c, const struct segment *s)
{
    struct segment *before = c->first;

    while (before->next != s)
        before = before->next;
    before->next = s->next;
    if (c->last == s)
        c->last = before;
}

static void send_request_withdraw(struct pipe *p, struct send_request *request, struct told *t)
{
    for (uint32_t i = 0; i < request->n_tensors; i++)
        conn_unqueue(p->conns.of[request->tensors[i].on], &request->tensors[i]);
    if (message_wants_answer(request->msg))
        atomic_fetch_sub(&p->queue.asked, 1);
    atomic_fetch_sub(&p->queue.n_queued, 1);
    send_request_retire(p, request, t);
}

static bool pipe_writes(const struct pipe *p)
{
    for (unsigned i = 0; i < p->conns.n; i++)
        if (p->conns.of[i] && atomic_load(&p->conns.of[i]->writing))
            return true;
    return false;
}

/* Lock held. Frames that expire are taken out in one walk. */
static void pipe_withdraw(struct pipe *p, struct told *t)
{
    struct conn *c = p->conns.of[CONN_DESCRIPTOR];
    struct segment *s = c->first, *next;
    const uint64_t now = clock_now_ns();

    while (s && (next = s->next)) {
        if (next != &next->request->frames || !send_request_is_expired(p, next->request, now)) {
            s = next;
            continue;
        }
        s->next = next->next;
        if (c->last == next)
            c->last = s;
        send_request_withdraw(p, next->request, t);
    }
}

static void expire_fire(struct reactor_timer *t)
{
    struct pipe *p = CONTAINER(t, struct pipe, timer);
    tenrec_error why;
    struct told told;
    bool more;

    told_init(&told);
    tenrec_fail(&why, TENREC_ETIMEDOUT, "not written to worker \"%s\" before the deadline",
                p->to->name);
    pthread_mutex_lock(&p->lock);
    if (pipe_state(p) == PIPE_ESTABLISHED && !pipe_writes(p))
        pipe_withdraw(p, &told);
    more = pipe_state(p) == PIPE_ESTABLISHED && atomic_load(&p->queue.bytes) > 0;
    if (!more)
        atomic_store(&p->queue.expires, false);
    pthread_mutex_unlock(&p->lock);
    told_tell(p, &told, &why);
    if (more)
        reactor_arm(&p->ep->reactor, t, clock_now_ns() + EXPIRE_NS);
}

static void expire_run(struct reactor_task *t)
{
    struct pipe *p = CONTAINER(t, struct pipe, queue.expire_task);

    if (pipe_state(p) == PIPE_ESTABLISHED && !p->end.torn_down) {
        p->timer.fire = expire_fire;
        reactor_arm(&p->ep->reactor, &p->timer, clock_now_ns() + EXPIRE_NS);
    } else {
        atomic_store(&p->queue.expires, false); /* in its handshake the timer bounds that */
    }
    pipe_unref(p);
}

void pipe_expire_later(struct pipe *p)
{
    if (atomic_load(&p->queue.bytes) == 0 || atomic_exchange(&p->queue.expires, true))
        return;
    p->queue.expire_task.run = expire_run;
    pipe_post(p, &p->queue.expire_task);
}
