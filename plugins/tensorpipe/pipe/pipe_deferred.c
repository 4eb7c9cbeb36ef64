/* SPDX-License-Identifier: Apache-2.0 */
#include "pipe/pipe_deferred.h"

#include "pipe/pipe.h"

static enum deferred_state deferred_state(const struct pipe *p)
{
    return (enum deferred_state)atomic_load_explicit(&p->conns.deferred.state,
                                                     memory_order_acquire);
}

/* The peer may map it, which takes the reply connection; or it is too large to travel behind its
 * message. */
static bool tensor_needs_deferred(const struct pipe *p, const struct tenrec_tensor_desc *t)
{
    return t->bytes && !t->same_storage &&
           (p->tensors.sharing || t->bytes > p->ep->options->inline_max);
}

bool pipe_needs_deferred(const struct pipe *p, const struct tenrec_msg *msg)
{
    if (deferred_state(p) != CHANNEL_DEFERRED)
        return false;
    for (uint32_t i = 0; i < msg->n_tensors; i++)
        if (tensor_needs_deferred(p, tenrec_msg_tensor(msg, i)))
            return true;
    return false;
}

bool pipe_holds_message(struct pipe *p, const struct tenrec_msg *msg)
{
    if (pipe_needs_deferred(p, msg)) {
        pipe_want_deferred(p);
        return true;
    }
    return p->queue.pending.first && (msg->n_tensors || message_keeps_order(msg->type));
}

void pipe_want_deferred(struct pipe *p)
{
    pipe_post(p, &p->conns.deferred.task);
}

bool pipe_deferred_told(struct pipe *p, enum pipe_message what)
{
    const bool all = p->conns.n == p->conns.all;

    if (deferred_state(p) != CHANNEL_DEFERRED ||
        !(what == PIPE_WANTS_CHANNEL || (what == PIPE_HAS_CHANNEL && all)))
        return false;
    if (what == PIPE_HAS_CHANNEL)
        atomic_store(&p->conns.deferred.state, CHANNEL_OPEN);
    pipe_want_deferred(p);
    return true;
}
