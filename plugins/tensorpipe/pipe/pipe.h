/* SPDX-License-Identifier: Apache-2.0 */
/* pipe.h - one TensorPipe pipe: a handful of connections and a handshake. Its parts have headers of
 * their own, with the functions that work on them.
 *
 * An outgoing pipe carries our requests and their answers, an incoming one the
 * peer's requests and our answers. A pipe that breaks never recovers; the next
 * send to the peer makes a new one.
 *
 * Locks, none of which is held while a host function or `done` is called:
 *     agent.lock        the table of pipes
 *     role.lock         the reader of an outgoing pipe
 *     conns.side_lock   the reader of connections that are not data
 *     lock              the write queues, state, why
 *     reactor.lock      tasks
 * A thread that holds one of them may acquire those below it. peer->lock comes before all. */
#ifndef TENSORPIPE_PIPE_H
#define TENSORPIPE_PIPE_H

#include "pipe/pipe_budget.h"
#include "pipe/pipe_conns.h"
#include "pipe/pipe_end.h"
#include "pipe/pipe_handshake.h"
#include "pipe/pipe_identity.h"
#include "pipe/pipe_idle.h"
#include "pipe/pipe_queue.h"
#include "pipe/pipe_read.h"
#include "pipe/pipe_role.h"
#include "pipe/pipe_services.h"
#include "pipe/pipe_tensors.h"

enum pipe_state {
    PIPE_CONNECTING, /* outgoing: until the descriptor connection is open */
    PIPE_GREETING,   /* waits for the Brochure, or for the answer to it */
    PIPE_OPENING,    /* waits for the other connections */
    PIPE_ESTABLISHED,
    PIPE_BROKEN,
};

struct pipe {
    /* What the path of a small message touches is together, here and at the beginning of each part:
     * after a sleep none of it is in a cache. */
    struct endpoint *ep;
    atomic_int state; /* enum pipe_state; changes under lock */
    atomic_uint refs;
    struct peer *to; /* outgoing */
    struct tenrec_route route;
    bool outgoing;
    tenrec_peer from; /* sender of the incoming messages */
    uint32_t marks;   /* flags of all messages, TENREC_MSG_PROVED or none; once established */
    struct pipe_budget budget;
    struct pipe_queue queue;
    struct role role;
    struct pipe_conns conns;
    struct reading read;
    struct pipe_terms terms;
    struct pipe_caller caller;
    struct pipe_remote remote;
    struct pipe_tensors tensors;
    struct pipe_devices devices;
    struct pipe_handshake handshake;
    struct pipe_end end;
    struct pipe_idle idle;
    const struct pipe_services *services;
    pthread_mutex_t lock;
    tenrec_error why;           /* it broke */
    struct reactor_timer timer; /* of the handshake, then of queued requests */
};

static inline enum pipe_state pipe_state(struct pipe *p)
{
    return (enum pipe_state)atomic_load_explicit(&p->state, memory_order_acquire);
}

/* Unanswered requests of an outgoing pipe, or more, since the counters change concurrently. Such a
 * pipe receives answers only. */
static inline int64_t pipe_unanswered(struct pipe *p)
{
    uint64_t answers = atomic_load(&p->read.n_messages);

    return (int64_t)(atomic_load(&p->queue.asked) - answers);
}

/* Returns true if tensors may travel over the connections of the channel. */
static inline bool pipe_has_channel(const struct pipe *p)
{
    return atomic_load_explicit(&p->conns.deferred.state, memory_order_acquire) == CHANNEL_OPEN;
}

/* Names the process at the other end in texts: a worker, or a caller by its own claim. */
#define PIPE_PEER "%s \"%s\""
#define PIPE_PEER_ARGS(p)                                                                          \
    (p)->outgoing ? "worker" : "caller", (p)->outgoing ? (p)->to->name : (p)->remote.name

/* Enters the next state, unless the pipe is broken. */
void pipe_advance(struct pipe *p, enum pipe_state to);

/* Under the lock: so many bytes more, or less, are queued. */
static inline void pipe_queued_add(struct pipe *p, uint64_t n)
{
    counter_bump(&p->queue.bytes, n);
    if (unlikely(p->budget.stranger))
        pipe_charge_source(p, n);
}

/* After something was queued, without the lock: ends a pipe whose source holds too much. */
static inline void pipe_bound(struct pipe *p)
{
    if (unlikely(atomic_load_explicit(&p->budget.over, memory_order_relaxed)))
        pipe_fail_over_budget(p);
}

/* Returns false if role_try would fail now. */
static inline bool role_free(struct pipe *p)
{
    return !atomic_load_explicit(&p->role.taken, memory_order_relaxed) &&
           !atomic_load_explicit(&p->role.masked, memory_order_relaxed);
}

#endif
