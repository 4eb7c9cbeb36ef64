/* SPDX-License-Identifier: Apache-2.0 */
/* call_trace.h - the traces of calls, on the caller's side. */
#ifndef TENREC_CALL_CALL_TRACE_H
#define TENREC_CALL_CALL_TRACE_H

#include "rpc/call/call.h"
#include "rpc/call/watch.h"
#include "rpc/future/worker.h"
#include "rpc/value/trace_span.h"
#include "rpc/value/trace_thread.h"

/* errors: EINVAL */
tenrec_status call_trace_check(const char *traceparent, tenrec_error *err);

/* Returns false for a call without a trace: all that it costs. */
static inline bool call_may_trace(const struct tenrec_worker *w, const struct call_spec *spec)
{
    return __builtin_expect(spec->traceparent || trace_thread.traced || watch_has(w, WATCH_TRACES),
                            0);
}

/* Sets spec->trace to `room` if the call belongs to a trace, and spec->traced if its span is
 * exported. */
void call_trace_begin(struct tenrec_worker *w, struct call_spec *spec, struct trace_context *room);

/* A traced call could not be sent. */
void call_trace_refused(struct call_spec *spec, tenrec_status why);

#endif
