/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_table.h - all pipes of an agent by slot: a reply route is slot and generation; and those to
 * its peers. */
#ifndef TENSORPIPE_PIPE_TABLE_H
#define TENSORPIPE_PIPE_TABLE_H

#include "pipe/peer.h"
#include <pthread.h>
#include <stddef.h>
#include <tenrec/agent.h>

struct endpoint;
struct pipe;

enum pipe_count {
    COUNT_SENDS,
    COUNT_RECEIVES,
    COUNT_BYTES_SENT,
    COUNT_BYTES_RECEIVED,
    COUNT_MESSAGES_SENT,
    COUNT_MESSAGES_RECEIVED,
    COUNTS,
};

struct pipe_table {
    pthread_mutex_t lock; /* guards all below */
    struct pipe **pipe;   /* each owns a reference */
    size_t n;
    uint64_t generations;
    uint64_t gone[COUNTS]; /* of pipes that were removed */
};

/* Takes a reference; gives the pipe its route. errors: ENOMEM */
tenrec_status pipe_table_add(struct pipe_table *t, struct pipe *p);
/* Gives that reference back, if that was not done before. */
void pipe_table_remove(struct pipe_table *t, struct pipe *p);
/* Returns a new reference to the pipe of that route; NULL when the pipe is gone. */
struct pipe *pipe_table_find(struct pipe_table *t, struct tenrec_route route);
/* Calls fn for every pipe, under the lock. */
void pipe_table_each(struct pipe_table *t, void (*fn)(struct pipe *p, void *arg), void *arg);
/* Returns references to all pipes; NULL at the end. NULL: out of memory. */
struct pipe **pipe_table_all(struct pipe_table *t);
/* Adds up the counters of the data path, of pipes that are gone, too. */
void pipe_table_count(struct pipe_table *t, uint64_t sum[COUNTS]);

/* Around an operation of the agent that uses pipes; shutdown waits for the last. peer_enter is
 * cheaper and serves the same. */
void pipe_table_enter(struct endpoint *ep);
void pipe_table_leave(struct endpoint *ep);

/* peer_pipe.c: the pipe to a member: made by the first request, used without a lock, and taken out
 * when it breaks. */

/* Returns the side for peer_leave. */
unsigned peer_enter(struct peer *peer);
void peer_leave(struct endpoint *ep, struct peer *peer, unsigned side);

/* Two operations of the agent: sends a request, through a new pipe if there is none, or an answer
 * along its route; and polls for an answer. */
void peer_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
               struct tenrec_done done);
tenrec_status peer_poll(struct tenrec_agent *self, tenrec_peer from,
                        const struct tenrec_wait *wait);

/* Takes `p` out, if it is the peer's: the next send opens a new pipe. */
void peer_forget(struct peer *peer, struct pipe *p);
/* Releases removed pipes that are not in use any more. */
void peer_drop_old(struct peer *peer);
/* Returns true if no thread uses `p`, which was taken out, any more. */
bool peer_has_left(struct peer *peer, const struct pipe *p);

/* Nothing is sent there any more. */
void peer_retire(struct endpoint *ep, struct peer *peer, const char *why);

#endif
