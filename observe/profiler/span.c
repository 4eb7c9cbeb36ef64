/* SPDX-License-Identifier: Apache-2.0 */
/* span.c - the table of hooks, and the parts that both sides of a call share. */
#include "observe/profiler/span.h"

#include "core/base/memory.h"

#include <stdlib.h>

const struct span_hooks observe_spans = {
    .ask = span_ask,
    .write = span_write,
    .back = span_back,
    .refused = span_refused,
    .answered = span_answered,
    .done = span_done,
    .serve = span_serve,
    .run = span_run,
    .end = span_end,
};

struct span *span_new(struct tenrec_worker *w, struct events *events, unsigned refs)
{
    struct span *s = memory_new(1, sizeof *s);

    if (!s)
        return NULL;
    atomic_init(&s->refs, refs);
    s->w = w;
    s->events = events_share(events);
    return s;
}

bool span_last(struct span *s)
{
    return atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1;
}

void span_free(struct span *s)
{
    events_drop(s->events);
    event_drop(s->event);
    free(s);
}

uint64_t span_bytes(const struct tenrec_msg *msg)
{
    uint64_t n = msg->payload_len;

    for (uint32_t i = 0; i < msg->n_tensors; i++)
        if (!tenrec_msg_tensor(msg, i)->same_storage)
            n += tenrec_msg_tensor(msg, i)->bytes;
    return n;
}
