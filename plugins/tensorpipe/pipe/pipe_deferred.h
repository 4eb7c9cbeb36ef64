/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_deferred.h - connections that open with the first tensor that needs them: that of replies
 * and those of the channel, between two Tenrec workers.
 *
 * Most pipes carry no large tensor, and each connection costs a proof, a handshake of TLS, or
 * memory. The caller opens them; a listener that has a tensor to send asks for them by a message of
 * the pipe's own, and says by another that it has them all. Tensors go out after that one only, so
 * neither side meets a tensor before its connections. Messages with such tensors wait in
 * queue.pending; others overtake them.
 *
 * If the connections cannot be opened in time, tensors travel behind their messages on the
 * descriptor connection. */
#ifndef TENSORPIPE_PIPE_DEFERRED_H
#define TENSORPIPE_PIPE_DEFERRED_H

#include "pipe/pipe_message.h"
#include "reactor/reactor.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <tenrec/message.h>

struct pipe;

enum deferred_state {
    CHANNEL_OPEN, /* also of a pipe that defers nothing */
    CHANNEL_DEFERRED,
    CHANNEL_LACKING, /* it could not be opened */
};

struct deferred {
    atomic_int state;           /* enum deferred_state */
    bool begun;                 /* they are being opened, or were asked for; loop thread ... */
    bool complete;              /* ... and this side has them all; likewise */
    struct reactor_timer timer; /* of that */
    struct reactor_task task;   /* opens them, or sends what has waited for them */
};

/* Returns true if messages of that type may not overtake others: a cancel is about an earlier
 * request, and the answer to a view says that all requests before it have arrived. */
static inline bool message_keeps_order(int type)
{
    return type == TENREC_MSG_CANCEL || type == TENREC_MSG_VIEW;
}

/* pipe_deferred.c */

/* Under the pipe's lock. Returns true if the message waits in queue.pending, either for deferred
 * connections or behind a message that does. */
bool pipe_holds_message(struct pipe *p, const struct tenrec_msg *msg);
/* Returns true if it waits for the connections themselves; likewise. */
bool pipe_needs_deferred(const struct pipe *p, const struct tenrec_msg *msg);
/* A tensor waits for the connections. */
void pipe_want_deferred(struct pipe *p);
/* Outgoing: the listener's message. Returns false if it means nothing. For the reader. */
bool pipe_deferred_told(struct pipe *p, enum pipe_message what);

#endif
