/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/call/serve_trace.h"

#include "core/base/clock.h"
#include "rpc/call/calls.h"
#include "rpc/call/span.h"
#include "rpc/value/trace_span.h"
#include "rpc/value/trace_thread.h"

#include <tenrec/trace.h>

void serve_trace_begin(struct tenrec_call *c)
{
    struct tenrec_worker *w = c->worker;
    const bool exports = c->arrived_ns != 0 && watch_has(w, WATCH_TRACES);
    bool first = false;

    if (!c->in.traced && exports)
        c->in.traced = first = trace_context_root(
            &c->in.trace, atomic_load_explicit(&w->calls->trace_below, memory_order_relaxed));
    if (!exports || !c->in.traced || !(c->in.trace.flags & TRACE_SAMPLED))
        return;
    c->traced = trace_span_new(w->calls->traces, TENREC_SPAN_SERVER, &c->in.trace, first,
                               c->function->name, NULL);
    if (c->traced)
        c->traced->start_ns = c->arrived_ns;
}

void serve_trace_refused(struct tenrec_call *c, tenrec_status why)
{
    trace_span_end(c->traced, why, clock_now_ns());
    c->traced = NULL;
}

/* By value: another thread may answer the call, and free it, while its function still runs. */
tenrec_status serve_trace_run(struct tenrec_call *c, tenrec_error *err)
{
    const struct function *f = c->function;
    const struct trace_thread outer = trace_thread_enter(&c->in.trace);
    const tenrec_status st =
        c->span ? c->worker->calls->spans->run(c->span, c, err) : f->fn(c, f->arg, err);

    trace_thread = outer;
    return st;
}

bool tenrec_call_trace(const struct tenrec_call *c, char ret[TENREC_TRACEPARENT_SIZE])
{
    if (c->in.traced)
        trace_context_print(&c->in.trace, ret);
    return c->in.traced;
}

/* ---- ends ----------------------------------------------------------------- */

static void trace_ended(struct tenrec_worker *w, const struct tenrec_future *f,
                        tenrec_status status, uint64_t now_ns)
{
    (void)w;
    if (f->call.traced)
        trace_span_end(f->call.traced, status, now_ns);
}

static void trace_served(const struct tenrec_call *c, tenrec_status status, uint64_t now_ns)
{
    if (c->traced)
        trace_span_end(c->traced, status, now_ns);
}

const struct call_watch trace_watch = {
    .ended = trace_ended,
    .served = trace_served,
};
