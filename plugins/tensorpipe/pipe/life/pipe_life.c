/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_life.c - life of a pipe, from the first reference to the last. */
#include "pipe/life/pipe_life.h"
#include "channel/channel.h"
#include "cuda/link/link.h"
#include "pipe/life/pipe_table.h"
#include "pipe/pipe_send.h"
#include "pipe/pipe_services.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static void free_run(struct reactor_task *t)
{
    struct pipe *p = CONTAINER(t, struct pipe, end.free_task);

    for (unsigned i = 0; i < CONN_ROLES; i++)
        conn_drop(p->conns.of[i]);
    conn_drop(p->handshake.bootstrap);
    pipe_read_finish(p);
    link_close(p);
    shm_handoff_close(p);
    cma_close(&p->tensors.puller);
    if (p->tensors.allows)
        cma_disallow(p->remote.pid);
    pipe_end_budget(p);
    send_request_drop_spares(p);
    pthread_cond_destroy(&p->queue.room);
    pthread_mutex_destroy(&p->role.lock);
    pthread_mutex_destroy(&p->conns.side_lock);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static void read_run(struct reactor_task *t)
{
    struct pipe *p = CONTAINER(t, struct pipe, read.task);

    if (unlikely(p->caller.claims))
        pipe_recognise(p);
    if (pipe_state(p) == PIPE_ESTABLISHED && (!p->outgoing || role_try(p))) {
        pipe_read(p, READ_DRAIN);
        if (p->outgoing)
            role_leave(p);
    }
    pipe_unref(p);
}

static void flush_run(struct reactor_task *t)
{
    struct pipe *p = CONTAINER(t, struct pipe, conns.flush_task);

    pipe_flush(p);
    pipe_unref(p);
}

/* Reads the bytes that arrived on the channel's connections while the loop did not watch them. */
static void side_run(struct reactor_task *t)
{
    struct pipe *p = CONTAINER(t, struct pipe, conns.side_task);

    if (p->terms.channel && pipe_has_channel(p))
        for (unsigned i = CONN_CHANNEL + p->terms.channel->data;
             i < CONN_CHANNEL + p->terms.channel->connections; i++)
            if (pipe_state(p) == PIPE_ESTABLISHED)
                p->terms.channel->arrived(p, p->conns.of[i]);
    pipe_unref(p);
}

static void device_run(struct reactor_task *t)
{
    struct pipe *p = CONTAINER(t, struct pipe, devices.task);

    link_run(p);
    pipe_unref(p);
}

static void teardown_run(struct reactor_task *t)
{
    struct pipe *p = CONTAINER(t, struct pipe, end.teardown_task);

    pipe_teardown(p);
    pipe_unref(p);
}

static void handshake_late(struct reactor_timer *t)
{
    struct pipe *p = CONTAINER(t, struct pipe, timer);
    const struct tp_options *o = p->ep->options;
    const struct conn *c = p->conns.of[CONN_DESCRIPTOR];

    if (pipe_state(p) == PIPE_CONNECTING && !(c && c->proof.dialled))
        pipe_failf(p, TENREC_ECONNECT, ETIMEDOUT, "no connection within %llu ms",
                   (unsigned long long)o->connect_timeout_ms);
    else
        pipe_failf(p, TENREC_ECONNECT, ETIMEDOUT, "handshake not finished within %llu ms",
                   (unsigned long long)o->handshake_timeout_ms);
}

struct pipe *pipe_new(struct endpoint *ep, bool outgoing)
{
    struct pipe *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->ep = ep;
    p->services = &pipe_services;
    atomic_init(&p->refs, 1);
    p->outgoing = outgoing;
    atomic_init(&p->state, outgoing ? PIPE_CONNECTING : PIPE_GREETING);
    p->from = TENREC_ANONYMOUS;
    p->conns.n = CONN_CHANNEL;
    p->queue.pending.last = &p->queue.pending.first;
    p->devices.sends.last = &p->devices.sends.first;
    p->devices.task.run = device_run;
    p->read.task.run = read_run;
    p->conns.flush_task.run = flush_run;
    p->conns.side_task.run = side_run;
    p->conns.deferred.task.run = pipe_run_deferred;
    p->end.teardown_task.run = teardown_run;
    p->end.free_task.run = free_run;
    p->timer.fire = handshake_late;
    pthread_mutex_init(&p->lock, NULL);
    pthread_mutex_init(&p->conns.side_lock, NULL);
    pthread_mutex_init(&p->role.lock, NULL);
    clock_cond_init(&p->queue.room);
    return p;
}

/* Shuts the connections down; they are freed with the last reference, because other
 * threads may be reading them. */
static void pipe_cut(struct pipe *p)
{
    for (unsigned i = 0; i < CONN_ROLES; i++) {
        struct conn *c = p->conns.of[i];

        if (c)
            c->stream->cut(c);
    }
    if (p->handshake.bootstrap)
        p->handshake.bootstrap->stream->cut(p->handshake.bootstrap);
}

static void pipe_log_end(struct pipe *p)
{
    struct endpoint *ep = p->ep;

    counter_add(atomic_load(&p->idle.parted) ? &ep->count.pipes_parted : &ep->count.pipes_broken,
                1);
    if (!p->end.was_established)
        counter_add(&ep->count.handshakes_failed, 1);
    if (p->why.code == TENREC_EPROTOCOL || p->why.code == TENREC_ETOOBIG ||
        p->why.code == TENREC_EAGAIN)
        endpoint_log(ep, TENREC_LOG_WARN, "pipe closed: %s", p->why.text);
    else
        endpoint_log(ep, TENREC_LOG_DEBUG, "pipe closed: %s", p->why.text);
}

void pipe_teardown(struct pipe *p)
{
    struct endpoint *ep = p->ep;

    if (p->end.torn_down)
        return;
    p->end.torn_down = true;
    pipe_log_end(p);
    reactor_disarm(&p->timer);
    reactor_disarm(&p->handshake.redial);
    reactor_disarm(&p->conns.deferred.timer);
    handshakes_remove(&ep->handshakes, &p->handshake.entry);
    pipe_cut(p);
    ep->owner->leave(ep, p);
    pipe_fail_queue(p);
    link_broken(p);
    role_wake_waiters(p);
    pipe_table_remove(ep->pipes, p);
}

/* The parts of a message arrive over several connections, each of which was proved. */
static uint32_t pipe_marks(const struct pipe *p)
{
    for (unsigned i = 0; i < p->conns.n; i++)
        if (p->conns.of[i] && !p->conns.of[i]->proof.peer.proved)
            return 0;
    return TENREC_MSG_PROVED;
}

void pipe_begin_conn(const struct pipe *p, struct conn *c)
{
    if (!c)
        return;
    /* Messages count, the handshake does not. */
    atomic_store_explicit(&c->receives, 0, memory_order_relaxed);
    atomic_store_explicit(&c->bytes_received, 0, memory_order_relaxed);
    if (p->outgoing && c->stream->let_wait)
        c->stream->let_wait(c);
}

void pipe_established(struct pipe *p)
{
    struct endpoint *ep = p->ep;
    const struct channel *ch = pipe_has_channel(p) ? p->terms.channel : NULL;

    if (ch && ch->complete)
        ch->complete(p);
    if (pipe_state(p) == PIPE_BROKEN)
        return;
    reactor_disarm(&p->timer);
    handshakes_remove(&ep->handshakes, &p->handshake.entry);
    conn_drop(p->handshake.bootstrap);
    p->handshake.bootstrap = NULL;
    counter_add(p->outgoing ? &ep->count.pipes_opened : &ep->count.pipes_accepted, 1);
    endpoint_log(ep, TENREC_LOG_DEBUG, "pipe %s \"%s\" at %s established over %s",
                 p->outgoing ? "to" : "from", p->outgoing ? p->to->name : p->remote.name,
                 p->remote.text, p->terms.transport->name);
    p->read.unparsed = true;
    p->marks = pipe_marks(p);
    for (unsigned i = 0; i < p->conns.n; i++)
        pipe_begin_conn(p, p->conns.of[i]);
    ep->owner->established(ep, p);
    shm_handoff_open(p);
    pipe_send_pending(p);
    if (p->outgoing)
        pipe_expire_later(p);
    pipe_count_caller(p);
    pipe_post(p, &p->read.task);
    if (ch && ch->established)
        ch->established(p);
    link_open(p);
    pipe_post(p, &p->conns.side_task);
}

/* Reads from an established pipe, or handles its `end`. Returns false if another thread
 * reads this connection, and will meet the end. */
static bool pipe_readable(struct pipe *p, struct conn *c, uint32_t end)
{
    if (p->devices.role && c->role == p->devices.role) {
        link_arrived(p, c);
        return true;
    }
    if (c->role >= CONN_CHANNEL && !pipe_reads(p, c) && !atomic_load(&p->conns.side_lent)) {
        p->terms.channel->arrived(p, c);
        return true;
    }
    if (p->outgoing && !role_try(p))
        return c->role != CONN_DESCRIPTOR; /* its reader always returns to that one */
    if (c->role == CONN_DESCRIPTOR || (p->read.waiting && c->role == p->read.back.want)) {
        enum read_result result = pipe_read(p, end ? READ_DRAIN : READ_NOW);

        if (!end && (result == READ_SOME || result == READ_PAUSED))
            p->ep->owner->hot(p->ep, p);
    }
    if (p->outgoing)
        role_leave(p);
    return true;
}

static void pipe_conn_ready(struct conn *c, uint32_t events)
{
    struct pipe *p = c->owner;
    enum pipe_state state = pipe_state(p);
    const uint32_t end = events & CONN_END;

    if (state == PIPE_BROKEN)
        return;
    if (c->role == CONN_BOOTSTRAP) {
        /* One that lives closes it with the answer read, so that nothing is reset. */
        if (c == p->handshake.bootstrap && (events & EPOLLERR))
            pipe_failf(p, TENREC_ECONNECT, 0, "closed a connection during the handshake");
        return;
    }
    if (state != PIPE_ESTABLISHED) {
        if (p->outgoing)
            pipe_connect_ready(p, c, events);
        else
            pipe_accept_ready(p, c, events);
        return;
    }
    if (c->role != CONN_DESCRIPTOR && pipe_deferred_ready(p, c, events))
        return;
    if (end) {
        /* A failing write reports room: received bytes are read before it. */
        if (pipe_readable(p, c, end) && pipe_state(p) == PIPE_ESTABLISHED && (events & EPOLLOUT))
            pipe_writable(p, c);
        return;
    }
    if (events & EPOLLOUT)
        pipe_writable(p, c);
    if (events & EPOLLIN)
        pipe_readable(p, c, 0);
}

void pipe_own(struct pipe *p, struct conn *c, enum conn_role role)
{
    conn_set_owner(c, pipe_conn_ready, p);
    c->role = role;
    p->conns.of[role] = c;
}
