/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_turn.c - how long a pipe is read: until other pipes have their turn, the host accepts no
 * more, or the peer leaves its answers unread. */
#include "pipe/pipe.h"

/* Functions that run on this thread may take long. Tensors have less time, as small messages may
 * wait on other pipes. */
enum { READ_TURN_NS = 5000000, FILL_TURN_NS = 100000 };

/* Surely: then the writer has the pipe read again once it is half empty. */
static bool queue_is_full(struct pipe *p)
{
    bool full;

    pthread_mutex_lock(&p->lock);
    full = pipe_queue_is_full(p);
    p->queue.full = full;
    pthread_mutex_unlock(&p->lock);
    return full;
}

bool reading_turn_is_over(struct reading *r)
{
    const uint64_t now = clock_now_ns();

    if (!r->turn_ns)
        r->turn_ns = now;
    return now - r->turn_ns > (r->waiting ? FILL_TURN_NS : READ_TURN_NS);
}

/* Returns true if the next message has to wait for the next turn. Reads the clock at each power of
 * two, as the messages of a full buffer take less time than that each. */
static bool message_waits(struct reading *r)
{
    const unsigned n = ++r->turn_messages;

    return n > 1 && !(n & (n - 1)) && reading_turn_is_over(r);
}

bool reading_may_go_on(struct pipe *p)
{
    struct endpoint *ep = p->ep;

    if (atomic_load_explicit(&p->queue.bytes, memory_order_relaxed) >
            ep->options->max_queued_bytes &&
        queue_is_full(p))
        return false;
    if (ep->host->accepts(ep->self))
        return true;
    /* Says so first and asks again: else a resume in between were lost. */
    atomic_store(&p->read.paused, true);
    if (!ep->host->accepts(ep->self))
        return false;
    atomic_store(&p->read.paused, false);
    return true;
}

enum parsed reading_may_begin(struct pipe *p)
{
    if (p->outgoing)
        return PARSED_ALL;
    if (!reading_may_go_on(p))
        return PARSED_PAUSED;
    return message_waits(&p->read) ? PARSED_TURN : PARSED_ALL;
}
