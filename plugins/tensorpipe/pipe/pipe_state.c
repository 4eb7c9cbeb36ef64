/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_state.c - references to a pipe, and its states up to the last: broken. */
#include "channel/channel.h"
#include "pipe/pipe.h"

void pipe_ref(struct pipe *p)
{
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
}

void pipe_unref(struct pipe *p)
{
    if (p && atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) == 1)
        reactor_defer(&p->ep->reactor, &p->end.free_task);
}

void pipe_post(struct pipe *p, struct reactor_task *t)
{
    pipe_ref(p);
    if (!reactor_post(&p->ep->reactor, t))
        pipe_unref(p);
}

void pipe_fail(struct pipe *p, const tenrec_error *why)
{
    pthread_mutex_lock(&p->lock);
    if (pipe_state(p) == PIPE_BROKEN) {
        pthread_mutex_unlock(&p->lock);
        return;
    }
    p->end.was_established = pipe_state(p) == PIPE_ESTABLISHED;
    p->why = *why;
    if (p->to) {
        p->why.worker = p->to->id;
        snprintf(p->why.worker_name, sizeof p->why.worker_name, "%s", p->to->name);
    }
    atomic_store(&p->state, PIPE_BROKEN);
    pthread_mutex_unlock(&p->lock);
    pipe_post(p, &p->end.teardown_task);
}

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

void pipe_advance(struct pipe *p, enum pipe_state to)
{
    pthread_mutex_lock(&p->lock);
    if (pipe_state(p) != PIPE_BROKEN)
        atomic_store(&p->state, to);
    pthread_mutex_unlock(&p->lock);
}

void pipe_failf(struct pipe *p, tenrec_status code, int os_errno, const char *fmt, ...)
{
    tenrec_error why;
    va_list ap;

    va_start(ap, fmt);
    tenrec_vfail(&why, code, fmt, ap);
    va_end(ap);
    if (os_errno) {
        size_t n = strlen(why.text);

        snprintf(why.text + n, sizeof why.text - n, ": %s", strerror(os_errno));
        why.os_errno = os_errno;
    }
    if (p->to)
        tenrec_error_prefix(&why, "worker \"%s\" at %s", p->to->name, p->to->address);
    else
        tenrec_error_prefix(&why, "caller \"%s\" at %s", p->remote.name, p->remote.text);
    pipe_fail(p, &why);
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
    return c->role == CONN_DESCRIPTOR || (c->role >= CONN_CHANNEL && p->terms.channel &&
                                          c->role < CONN_CHANNEL + p->terms.channel->data);
}
