/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_conns.h - the connections of a pipe. */
#ifndef TENSORPIPE_PIPE_CONNS_H
#define TENSORPIPE_PIPE_CONNS_H

#include "pipe/pipe_deferred.h"
#include "transport/conn.h"

struct bundle;
struct channel;
struct pipe;

struct pipe_conns {
    atomic_uint n;               /* roles below it have a connection, or will ... */
    bool lacks_reply;            /* ... but that of CONN_REPLY */
    unsigned all;                /* n, once deferred connections are open */
    atomic_bool stuffed;         /* one of them may be full; changes under the pipe's lock */
    struct conn *of[CONN_ROLES]; /* by role; those below n do not change once established */
    struct deferred deferred;
    /* The reader of the pipe reads also those of its connections that else the loop
     * thread reads. Changes under side_lock, which the loop holds while it reads. */
    atomic_bool side_lent;
    pthread_mutex_t side_lock;
    struct reactor_task side_task;
    struct reactor_task flush_task; /* writes on */
    uint64_t n_arrived; /* messages, when the last piece was written; under the pipe's lock */
    unsigned calm;      /* pieces since a message arrived, up to CALM_PIECES; likewise */
};

/* The number of connections that are open. */
static inline unsigned pipe_conns_open(const struct pipe_conns *conns)
{
    const unsigned n = conns->n;

    return n > CONN_REPLY && conns->lacks_reply ? n - 1 : n;
}

/* Which channel was agreed, NULL: none; and whether there is one for devices. */
void pipe_use_channel(struct pipe *p, const struct channel *channel, bool devices);
/* Once the channel, the transport and the peer's capabilities are known: decides, as the peer does,
 * whether there is a reply connection, and whether connections are deferred. */
void pipe_settle_conns(struct pipe *p);
/* The reader of the pipe takes over what the loop thread reads, and gives it back. */
void pipe_lend_side(struct pipe *p, bool lent);
/* Returns true if the reader of the pipe reads this connection. */
bool pipe_reads(const struct pipe *p, const struct conn *c);
/* Returns true if all connections are open. */
bool pipe_is_complete(const struct pipe *p);
/* The same with the deferred connections. */
bool pipe_has_all(const struct pipe *p);

/* pipe_write.c */

/* Writes what is queued and not held up. */
void pipe_flush(struct pipe *p);
/* The same with the lock, which it releases. */
void pipe_flush_unlock(struct pipe *p);
/* Writes small messages, or queues them behind others. */
void pipe_write_bundle(struct pipe *p, const struct bundle *b);
/* The same in two steps: pipe_take_writing, under the lock, returns true if no bytes precede them;
 * pipe_write_taken then writes without the lock. */
bool pipe_take_writing(struct pipe *p);
void pipe_give_writing(struct pipe *p); /* nothing is written; under the lock */
void pipe_write_taken(struct pipe *p, const struct bundle *b);
/* `c` has become writable. */
void pipe_writable(struct pipe *p, struct conn *c);
/* pipe_is_full returns true if a socket was full; pipe_push retries, and
 * returns true if bytes were written. */
bool pipe_is_full(const struct pipe *p);
bool pipe_push(struct pipe *p);

#endif
