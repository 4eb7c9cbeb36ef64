/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_batch.c - messages that a thread sends while it delivers others.
 *
 * Messages for the pipe that it reads gather in a bundle of its own, which no lock guards; messages
 * for other pipes gather in their queues. */
#include "pipe/pipe.h"
#include "pipe/pipe_send.h"

_Thread_local struct batch *batch_now;

void batch_begin(struct batch *b, struct pipe *reading)
{
    b->outer = batch_now;
    b->reading = reading;
    b->n = 0;
    b->asked = 0;
    bundle_clear(&b->bundle);
    batch_now = b;
}

/* A completion of the bundle may send on the same pipe, also while the batch goes on: such a
 * message may not join the bundle that is being completed, so the batch gathers for no pipe during
 * that time. */
void batch_write_own(struct batch *b)
{
    struct pipe *p = b->reading;

    if (!p)
        return;
    if (b->asked) {
        atomic_fetch_add(&p->queue.asked, b->asked);
        b->asked = 0;
    }
    if (!b->bundle.len)
        return;
    b->reading = NULL;
    pipe_write_bundle(p, &b->bundle);
    bundle_clear(&b->bundle);
    b->reading = p;
    atomic_store_explicit(&p->queue.gathers, false, memory_order_release);
}

static void batch_flush(struct batch *b)
{
    batch_write_own(b);
    for (unsigned i = 0; i < b->n; i++) {
        pipe_flush(b->dirty[i]);
        pipe_unref(b->dirty[i]);
    }
    b->n = 0;
}

void batch_end(struct batch *b)
{
    batch_now = b->outer;
    if (b->bundle.len || b->asked || b->n)
        batch_flush(b);
}

void batch_flush_all(void)
{
    for (struct batch *b = batch_now; b; b = b->outer)
        batch_flush(b);
}

bool batch_add(struct pipe *p)
{
    struct batch *b = batch_now;

    if (!b)
        return false;
    for (unsigned i = 0; i < b->n; i++)
        if (b->dirty[i] == p)
            return true;
    if (b->n == sizeof b->dirty / sizeof b->dirty[0])
        return false;
    pipe_ref(p);
    b->dirty[b->n++] = p;
    return true;
}
