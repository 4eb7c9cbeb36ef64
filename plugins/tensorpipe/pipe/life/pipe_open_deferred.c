/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_open_deferred.c - opens the connections that wait for the first tensor (pipe_deferred.h). */
#include "channel/channel.h"
#include "pipe/life/pipe_life.h"
#include "pipe/pipe_send.h"

static bool deferred_is(const struct pipe *p, enum deferred_state state)
{
    return atomic_load(&p->conns.deferred.state) == (int)state;
}

/* Reads what the channel's further connections have brought so far. */
static void deferred_read_side(struct pipe *p)
{
    const struct channel *ch = p->terms.channel;

    for (unsigned i = CONN_CHANNEL + ch->data; i < CONN_CHANNEL + ch->connections; i++)
        if (pipe_state(p) == PIPE_ESTABLISHED)
            ch->arrived(p, p->conns.of[i]);
}

/* The connections stay until the pipe ends: other threads may count their bytes. */
void pipe_give_deferred_up(struct pipe *p, const char *why)
{
    if (!deferred_is(p, CHANNEL_DEFERRED))
        return;
    endpoint_log(p->ep, TENREC_LOG_WARN,
                 "no connections for tensors with " PIPE_PEER
                 ": %s; tensors travel behind their messages",
                 PIPE_PEER_ARGS(p), why);
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->conns.deferred.state, CHANNEL_LACKING);
    p->tensors.pulls = false;
    pthread_mutex_unlock(&p->lock);
    reactor_disarm(&p->conns.deferred.timer);
    for (unsigned i = CONN_REPLY; i < p->conns.all; i++)
        if (p->conns.of[i])
            p->conns.of[i]->stream->cut(p->conns.of[i]);
    pipe_send_pending(p);
}

static void deferred_missed(struct reactor_timer *t)
{
    struct pipe *p = CONTAINER(t, struct pipe, conns.deferred.timer);
    char why[64];

    snprintf(why, sizeof why, "they were not open within %llu ms",
             (unsigned long long)p->ep->options->handshake_timeout_ms);
    pipe_give_deferred_up(p, why);
}

static void deferred_begin(struct pipe *p)
{
    struct deferred *d = &p->conns.deferred;

    d->begun = true;
    d->timer.fire = deferred_missed;
    reactor_arm(&p->ep->reactor, &d->timer,
                clock_now_ns() + p->ep->options->handshake_timeout_ms * 1000000u);
    if (p->outgoing)
        pipe_connect_deferred(p);
    else
        pipe_tell(p, PIPE_WANTS_CHANNEL);
}

/* Both sides have them all. */
static void deferred_end(struct pipe *p)
{
    reactor_disarm(&p->conns.deferred.timer);
    if (p->outgoing)
        deferred_read_side(p);
    pipe_send_pending(p);
}

void pipe_run_deferred(struct reactor_task *t)
{
    struct pipe *p = CONTAINER(t, struct pipe, conns.deferred.task);

    if (pipe_state(p) == PIPE_ESTABLISHED && !p->end.torn_down) {
        if (deferred_is(p, CHANNEL_OPEN))
            deferred_end(p);
        else if (!p->conns.deferred.begun && deferred_is(p, CHANNEL_DEFERRED))
            deferred_begin(p);
    }
    pipe_unref(p);
}

/* The reader of the pipe takes them over, with the events that it masks. */
void pipe_publish_deferred(struct pipe *p)
{
    if (!deferred_is(p, CHANNEL_DEFERRED) || !pipe_has_all(p))
        return;
    for (unsigned i = CONN_REPLY; i < p->conns.all; i++)
        pipe_begin_conn(p, p->conns.of[i]);
    pthread_mutex_lock(&p->lock);
    p->conns.n = p->conns.all;
    pthread_mutex_unlock(&p->lock);
    if (p->outgoing)
        role_mask_deferred(p);
}

void pipe_complete_deferred(struct pipe *p)
{
    const struct channel *ch = p->terms.channel;

    /* The reader may have set CHANNEL_OPEN by now. */
    if (p->conns.deferred.complete || deferred_is(p, CHANNEL_LACKING) || !pipe_has_all(p))
        return;
    p->conns.deferred.complete = true;
    if (!p->outgoing)
        pipe_publish_deferred(p);
    if (ch->complete)
        ch->complete(p);
    if (ch->established)
        ch->established(p);
    if (p->outgoing || pipe_state(p) == PIPE_BROKEN)
        return;
    deferred_read_side(p);
    pipe_tell(p, PIPE_HAS_CHANNEL);
    atomic_store(&p->conns.deferred.state, CHANNEL_OPEN);
    deferred_end(p);
}

bool pipe_deferred_ready(struct pipe *p, struct conn *c, uint32_t events)
{
    if (deferred_is(p, CHANNEL_OPEN))
        return false;
    if (deferred_is(p, CHANNEL_LACKING))
        return true;
    if (c->pending)
        pipe_connect_ready(p, c, events);
    else if (events & CONN_END)
        pipe_give_deferred_up(p, "the peer closed one of them");
    else
        return false;
    return true;
}
