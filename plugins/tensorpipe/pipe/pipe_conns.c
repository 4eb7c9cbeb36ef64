/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_conns.c - which connections a pipe has, and which thread reads them. */
#include "channel/channel.h"
#include "pipe/pipe.h"

void pipe_use_channel(struct pipe *p, const struct channel *channel, bool devices)
{
    pthread_mutex_lock(&p->lock);
    p->terms.channel = channel;
    p->conns.all = CONN_CHANNEL + (channel ? channel->connections : 0);
    p->devices.role = devices ? (enum conn_role)p->conns.all++ : 0;
    p->conns.n = p->conns.all;
    atomic_store(&p->conns.deferred.state, CHANNEL_OPEN);
    pthread_mutex_unlock(&p->lock);
}

/* It carries the devices of tensors without a target, and memory that the peer maps, on one host.
 * Without a channel its opening alone shows that the pipe is open. */
static bool reply_is_lacking(const struct pipe *p)
{
    return (p->terms.capabilities & IDENTITY_NAMES_TARGETS) && p->terms.transport->remote &&
           p->terms.channel;
}

void pipe_settle_conns(struct pipe *p)
{
    p->conns.lacks_reply = reply_is_lacking(p);
    if (!(p->terms.capabilities & IDENTITY_DEFERS) || !p->terms.channel ||
        !p->terms.channel->deferrable || p->devices.role)
        return;
    pthread_mutex_lock(&p->lock);
    p->conns.n = CONN_REPLY;
    atomic_store(&p->conns.deferred.state, CHANNEL_DEFERRED);
    pthread_mutex_unlock(&p->lock);
}

static bool conns_are_complete(const struct pipe *p, unsigned n)
{
    for (unsigned i = CONN_DESCRIPTOR; i < n; i++) {
        if (i == CONN_REPLY && p->conns.lacks_reply)
            continue;
        if (!p->conns.of[i] || p->conns.of[i]->pending)
            return false;
    }
    return true;
}

bool pipe_is_complete(const struct pipe *p)
{
    return conns_are_complete(p, p->conns.n);
}

bool pipe_has_all(const struct pipe *p)
{
    return conns_are_complete(p, p->conns.all);
}

void pipe_lend_side(struct pipe *p, bool lent)
{
    pthread_mutex_lock(&p->conns.side_lock);
    atomic_store(&p->conns.side_lent, lent);
    pthread_mutex_unlock(&p->conns.side_lock);
    if (!lent)
        pipe_post(p, &p->conns.side_task);
}

bool pipe_reads(const struct pipe *p, const struct conn *c)
{
    const unsigned data = p->terms.channel ? p->terms.channel->data : 0;

    return c->role == CONN_DESCRIPTOR || (c->role >= CONN_CHANNEL && c->role < CONN_CHANNEL + data);
}
