/* SPDX-License-Identifier: Apache-2.0 */
#include "pipe/pipe.h"
#include "pipe/pipe_send.h"
#include "wire/plain.h"

void pipe_tell(struct pipe *p, enum pipe_message what)
{
    struct bundle b;

    bundle_clear(&b);
    b.len = plain_write(b.buf, PIPE_MESSAGE, what, NULL, 0);
    pipe_write_bundle(p, &b);
}

uint64_t pipe_moves(struct pipe *p)
{
    return atomic_load(&p->read.n_messages) + atomic_load(&p->queue.n_queued) +
           atomic_load(&p->queue.n_written);
}

/* Under the lock. */
static bool pipe_has_sent_all(const struct pipe *p)
{
    for (unsigned i = 0; i < p->conns.n; i++)
        if (p->conns.of[i] && (p->conns.of[i]->first || atomic_load(&p->conns.of[i]->writing)))
            return false;
    return !atomic_load(&p->queue.bytes) && !atomic_load(&p->queue.untold) &&
           !atomic_load(&p->queue.gathers) && !p->queue.pending.first && !p->queue.awaited &&
           !p->devices.sends.first;
}

bool pipe_is_quiet(struct pipe *p)
{
    const struct conn *c = p->conns.of[CONN_DESCRIPTOR];
    bool quiet;

    if (p->read.step != STEP_DESCRIPTOR || p->read.n_waiting || conn_buffered(c))
        return false;
    pthread_mutex_lock(&p->lock);
    quiet = pipe_state(p) == PIPE_ESTABLISHED && pipe_unanswered(p) == 0 && pipe_has_sent_all(p);
    pthread_mutex_unlock(&p->lock);
    return quiet;
}

void pipe_ask_to_part(struct pipe *p)
{
    atomic_store(&p->idle.asked, true);
    pipe_tell(p, PIPE_NOTHING_FOLLOWS);
}

bool pipe_told(struct pipe *p, enum pipe_message what)
{
    switch (what) {
    case PIPE_WANTS_CHANNEL:
    case PIPE_HAS_CHANNEL:
        return p->outgoing && pipe_deferred_told(p, what);
    case PIPE_NOTHING_FOLLOWS: /* asked again, if messages wait for their tensors */
        if (p->outgoing)
            return false;
        atomic_store(&p->idle.parted, true);
        if (!p->read.n_waiting)
            pipe_tell(p, PIPE_AGREES);
        return true;
    case PIPE_AGREES:
        if (!p->outgoing || !atomic_load(&p->idle.asked))
            return false;
        atomic_store(&p->idle.parted, true);
        pipe_failf(p, TENREC_EPEER_LOST, 0, "the connection was idle, and is closed");
        return true;
    }
    return false;
}
