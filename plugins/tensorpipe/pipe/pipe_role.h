/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_role.h - which thread reads a pipe. */
#ifndef TENSORPIPE_PIPE_ROLE_H
#define TENSORPIPE_PIPE_ROLE_H

#include "reactor/reactor.h"
#include <pthread.h>
#include <stdatomic.h>
#include <tenrec/agent.h>

struct pipe;

/* The reader of an outgoing pipe: the loop thread for the time of one read, or a
 * caller that waits for its answer. */
struct waiter {
    struct waiter *next;
    int wake_fd;
};

/* A spinning reader also writes what the socket did not take. */
enum role_taken { ROLE_FREE, ROLE_TAKEN, ROLE_SPINS };

struct role {
    atomic_int taken;       /* enum role_taken */
    atomic_bool missed;     /* the loop found it taken: its event is used up */
    atomic_bool masked;     /* data do not wake the loop; changes under lock */
    atomic_uint n_waiters;  /* changes under lock */
    atomic_uint polls;      /* calls of poll, about */
    atomic_uint streak;     /* of them since a send without a waiter */
    struct spin spin;       /* of the reader */
    unsigned seen;          /* polls at the last tick of the timer of poll_reclaim.c */
    struct waiter *waiters; /* under lock */
    pthread_mutex_t lock;
};

/* Whether data on this pipe wake the loop. Of an outgoing one with the role's
 * lock, of an incoming one on the loop thread. */
void pipe_mask_events(struct pipe *p, bool masked);
bool role_try(struct pipe *p);
void role_leave(struct pipe *p);
/* A request was sent whose sender does not poll: another thread must read the answer. */
void role_request_sent(struct pipe *p);
/* Lets data of an outgoing pipe wake the loop again, unless callers poll. Returns true if its
 * events are still masked. */
bool role_wake_loop(struct pipe *p);
void role_wake_waiters(struct pipe *p);

/* Of a caller that waits for an answer. role_enter takes the role, or queues up for it, and
 * role_promote takes it if that is possible now: both return true if they have. role_give_up leaves
 * the queue. */
bool role_enter(struct role *r, struct waiter *me);
bool role_promote(struct role *r, struct waiter *me);
void role_give_up(struct pipe *p, struct waiter *me);
/* The reader keeps the loop thread asleep from here on. */
void role_mask_events(struct pipe *p);
/* Deferred connections have opened: masks theirs as those of the others. Loop thread. */
void role_mask_deferred(struct pipe *p);

/* pipe_poll.c: reads answers until the wait is over. */
tenrec_status pipe_poll(struct pipe *p, const struct tenrec_wait *w);

#endif
