/* SPDX-License-Identifier: Apache-2.0 */
/* span.c - the observer, and the parts that both sides of a call share. */
#include "observe/profiler/span.h"

#include "core/base/memory.h"

#include <stdlib.h>

const struct call_observer profiler_observer = {
    .begin = span_begin,
    .ended = span_ended,
    .arrived = span_arrived,
    .run = span_run,
    .served = span_served,
    .answers_spans = true,
};

struct span *span_new(struct tenrec_worker *w, struct events *events)
{
    struct span *s = memory_new(1, sizeof *s);

    if (!s)
        return NULL;
    atomic_init(&s->refs, 1);
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
