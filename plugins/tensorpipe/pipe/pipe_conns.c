/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_conns.c - which connections a pipe has, and which thread reads them. */
#include "channel/channel.h"
#include "pipe/pipe.h"

void pipe_use_channel(struct pipe *p, const struct channel *channel, bool devices)
{
    pthread_mutex_lock(&p->lock);
    p->terms.channel = channel;
    p->conns.n = CONN_CHANNEL + (channel ? channel->connections : 0);
    p->devices.role = devices ? (enum conn_role)p->conns.n++ : 0;
    pthread_mutex_unlock(&p->lock);
}

/* It carries the devices of tensors without a target, and memory that the peer maps, on one host.
 * Without a channel its opening alone shows that the pipe is open. */
void pipe_settle_reply(struct pipe *p)
{
    p->conns.lacks_reply = (p->terms.capabilities & IDENTITY_NAMES_TARGETS) &&
                           p->terms.transport->remote && p->terms.channel;
}

bool pipe_is_complete(const struct pipe *p)
{
    for (unsigned i = CONN_DESCRIPTOR; i < p->conns.n; i++) {
        if (i == CONN_REPLY && p->conns.lacks_reply)
            continue;
        if (!p->conns.of[i] || p->conns.of[i]->pending)
            return false;
    }
    return true;
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
