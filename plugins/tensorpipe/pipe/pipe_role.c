/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_role.c - the role of the reader of a pipe, and the threads that wait for it.
 *
 * So that data do not wake the loop thread as well, its events of the connections are masked: they
 * leave its epoll set. That lasts beyond the wait, because a caller that calls again would else pay
 * two system calls each time. The loop listens again as soon as a caller that does not poll awaits
 * an answer, and at the latest when poll_reclaim.c finds no poll for one period: then it notices
 * the peer's end too. */
#include "pipe/pipe_role.h"

#include "channel/channel.h"
#include "pipe/pipe.h"

#include <errno.h>
#include <unistd.h>

/* The loop must still be notified when a full connection becomes writable. */
static void conn_mask_events(struct conn *c, bool masked)
{
    if (!c)
        return;
    if (!masked)
        c->stream->hear(c, HEARS_ALL);
    else
        c->stream->hear(c, atomic_load(&c->full) ? HEARS_ROOM : HEARS_NOTHING);
}

static void channel_mask_events(struct pipe *p, bool masked)
{
    const unsigned end = CONN_CHANNEL + (p->terms.channel ? p->terms.channel->data : 0);

    for (unsigned i = CONN_CHANNEL; i < end && i < p->conns.n; i++)
        conn_mask_events(p->conns.of[i], masked);
}

/* Applies to the connections that the reader of the pipe reads. */
void pipe_mask_events(struct pipe *p, bool masked)
{
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->role.masked, masked);
    if (pipe_state(p) == PIPE_ESTABLISHED) {
        conn_mask_events(p->conns.of[CONN_DESCRIPTOR], masked);
        channel_mask_events(p, masked);
    }
    pthread_mutex_unlock(&p->lock);
}

/* Not the descriptor connection: its reader may sleep, and has asked to be woken. */
void role_mask_deferred(struct pipe *p)
{
    pthread_mutex_lock(&p->role.lock);
    pthread_mutex_lock(&p->lock);
    if (atomic_load(&p->role.masked))
        channel_mask_events(p, true);
    pthread_mutex_unlock(&p->lock);
    pthread_mutex_unlock(&p->role.lock);
}

static void waiter_wake(const struct waiter *w)
{
    uint64_t one = 1;

    while (write(w->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

static bool role_take(struct role *r)
{
    int no = ROLE_FREE;

    return atomic_compare_exchange_strong(&r->taken, &no, ROLE_TAKEN);
}

/* Returns true if a reader that leaves without a successor has left work behind. */
static bool role_left_work(struct pipe *p)
{
    struct role *r = &p->role;

    return atomic_load(&r->n_waiters) || atomic_load(&r->missed) ||
           (atomic_load(&r->masked) && pipe_unanswered(p) > 0);
}

/* No thread reads now: wakes the next waiter, or has the loop listen. */
static void role_wake_next(struct pipe *p)
{
    struct role *r = &p->role;

    pthread_mutex_lock(&r->lock);
    if (!atomic_load(&r->taken) && r->waiters) {
        waiter_wake(r->waiters);
    } else if (!atomic_load(&r->taken) && role_left_work(p)) {
        /* A changed registration reports bytes that have arrived already. */
        atomic_store(&r->missed, false);
        pipe_mask_events(p, false);
    }
    pthread_mutex_unlock(&r->lock);
}

/* The first half of a handshake without lock: the reader releases the role before it checks for
 * work of others, and they record that work (a waiter, a missed event, a request) before they check
 * whether the role is taken. */
void role_leave(struct pipe *p)
{
    const bool more = p->read.more || atomic_load(&p->conns.side_lent);

    atomic_store(&p->role.taken, ROLE_FREE);
    if (role_left_work(p))
        role_wake_next(p);
    if (more)
        pipe_post(p, &p->read.task);
}

bool role_try(struct pipe *p)
{
    if (role_take(&p->role))
        return true;
    atomic_store(&p->role.missed, true);
    return role_take(&p->role);
}

void role_request_sent(struct pipe *p)
{
    struct role *r = &p->role;

    if (!atomic_load(&r->masked))
        return;
    pthread_mutex_lock(&r->lock);
    if (!atomic_load(&r->taken) && !r->waiters) {
        atomic_store(&r->streak, 0);
        if (atomic_load(&r->masked))
            pipe_mask_events(p, false);
    }
    pthread_mutex_unlock(&r->lock);
}

bool role_wake_loop(struct pipe *p)
{
    struct role *r = &p->role;
    unsigned polls = atomic_load(&r->polls);

    if (!p->outgoing || pipe_state(p) != PIPE_ESTABLISHED || !atomic_load(&r->masked))
        return false;
    pthread_mutex_lock(&r->lock);
    if (atomic_load(&r->masked) && !atomic_load(&r->taken) && !r->waiters && r->seen == polls)
        pipe_mask_events(p, false);
    r->seen = polls;
    pthread_mutex_unlock(&r->lock);
    return atomic_load(&r->masked);
}

void role_wake_waiters(struct pipe *p)
{
    pthread_mutex_lock(&p->role.lock);
    for (struct waiter *w = p->role.waiters; w; w = w->next)
        waiter_wake(w);
    pthread_mutex_unlock(&p->role.lock);
}

static void waiter_unlink(struct role *r, struct waiter *me)
{
    struct waiter **at = &r->waiters;

    while (*at && *at != me)
        at = &(*at)->next;
    if (!*at)
        return;
    *at = me->next;
    atomic_fetch_sub(&r->n_waiters, 1);
}

bool role_promote(struct role *r, struct waiter *me)
{
    bool reader;

    pthread_mutex_lock(&r->lock);
    reader = role_take(r);
    if (reader)
        waiter_unlink(r, me);
    pthread_mutex_unlock(&r->lock);
    return reader;
}

bool role_enter(struct role *r, struct waiter *me)
{
    struct waiter **at = &r->waiters;

    /* Approximately is good enough for these. */
    atomic_store_explicit(&r->polls, atomic_load_explicit(&r->polls, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_store_explicit(&r->streak, atomic_load_explicit(&r->streak, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    if (role_take(r))
        return true;
    pthread_mutex_lock(&r->lock);
    while (*at)
        at = &(*at)->next;
    *at = me;
    atomic_fetch_add(&r->n_waiters, 1);
    pthread_mutex_unlock(&r->lock);
    /* It may have been released before this waiter was queued. */
    return role_promote(r, me);
}

void role_give_up(struct pipe *p, struct waiter *me)
{
    struct role *r = &p->role;

    pthread_mutex_lock(&r->lock);
    waiter_unlink(r, me);
    pthread_mutex_unlock(&r->lock);
    if (!atomic_load(&r->taken) && role_left_work(p))
        role_wake_next(p);
}

void role_mask_events(struct pipe *p)
{
    pthread_mutex_lock(&p->role.lock);
    pipe_mask_events(p, true);
    pthread_mutex_unlock(&p->role.lock);
    reactor_post(&p->ep->reactor, &p->ep->reclaim);
}
