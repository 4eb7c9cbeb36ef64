/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/metrics/metrics.h"

#include "rpc/value/trace.h"

static uint64_t spans_below(struct tenrec_worker *w)
{
    return atomic_load_explicit(&metrics_of(w)->trace_below, memory_order_relaxed);
}

/* Begins a trace, if it is sampled, for a call outside of one. */
static void spans_begin(struct tenrec_worker *w, struct call_spec *spec)
{
    bool first = false;

    if (!spec->room)
        return;
    if (!spec->trace) {
        first = trace_context_root(spec->room, spans_below(w));
        if (!first)
            return;
        spec->trace = spec->room;
    }
    if (spec->room->flags & TRACE_SAMPLED)
        spec->seen.traced = trace_span_new(metrics_of(w)->sink, TENREC_SPAN_CLIENT, spec->room,
                                           first, spec->function, peers_name(&w->peers, spec->to));
}

static void spans_ended(struct tenrec_worker *w, const struct future_call *c,
                        struct tenrec_msg *answer, tenrec_status status, uint64_t now_ns)
{
    (void)w, (void)answer;
    if (c->seen.traced)
        trace_span_end(c->seen.traced, status, now_ns);
}

/* Makes c->in.trace the context of the served call itself, where it has one. */
static void spans_arrived(struct tenrec_call *c)
{
    struct tenrec_worker *w = c->worker;
    bool first = false;

    if (!c->in.traced)
        c->in.traced = first = trace_context_root(&c->in.trace, spans_below(w));
    if (!c->in.traced || !(c->in.trace.flags & TRACE_SAMPLED))
        return;
    c->traced = trace_span_new(metrics_of(w)->sink, TENREC_SPAN_SERVER, &c->in.trace, first,
                               c->function->name, NULL);
    if (c->traced)
        c->traced->start_ns = c->arrived_ns;
}

static void spans_served(struct tenrec_call *c, struct tenrec_msg **answer, tenrec_status status,
                         uint64_t now_ns)
{
    (void)answer;
    if (c->traced)
        trace_span_end(c->traced, status, now_ns);
}

const struct call_observer call_spans_observer = {
    .begin = spans_begin,
    .ended = spans_ended,
    .arrived = spans_arrived,
    .served = spans_served,
};
