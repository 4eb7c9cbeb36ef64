/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/call/call_trace.h"

#include "core/base/clock.h"
#include "rpc/call/calls.h"

tenrec_status call_trace_check(const char *traceparent, tenrec_error *err)
{
    struct trace_context t;
    tenrec_status st = trace_context_parse(traceparent, &t, err);

    if (st != TENREC_OK)
        tenrec_error_prefix(err, "call options");
    return st;
}

void call_trace_begin(struct tenrec_worker *w, struct call_spec *spec, struct trace_context *room)
{
    const bool exports = watch_has(w, WATCH_TRACES);
    bool first = false;

    if (spec->traceparent)
        trace_context_parse(spec->traceparent, room, NULL); /* checked with the options */
    else if (trace_thread.traced)
        *room = trace_thread.context;
    else
        first = exports && trace_context_root(room, atomic_load_explicit(&w->calls->trace_below,
                                                                         memory_order_relaxed));
    if (!first && !spec->traceparent && !trace_thread.traced)
        return; /* no random bytes */
    if (exports && (room->flags & TRACE_SAMPLED))
        spec->traced = trace_span_new(w->calls->traces, TENREC_SPAN_CLIENT, room, first,
                                      spec->function, peers_name(&w->peers, spec->to));
    spec->trace = room;
}

void call_trace_refused(struct call_spec *spec, tenrec_status why)
{
    trace_span_end(spec->traced, why, clock_now_ns());
    spec->traced = NULL;
}
