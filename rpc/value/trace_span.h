/* SPDX-License-Identifier: Apache-2.0 */
/* trace_span.h - one side of a sampled call, for the sink of its worker (a room above). */
#ifndef TENREC_VALUE_TRACE_SPAN_H
#define TENREC_VALUE_TRACE_SPAN_H

#include "rpc/value/trace_context.h"

#include <stdatomic.h>
#include <tenrec/observer_plugin.h>

/* The worker of spans. Outlives them. */
struct trace_sink {
    struct tenrec_origin origin; /* first */
    /* Takes the span. Any thread; does not block. */
    void (*add)(struct trace_sink *sink, struct tenrec_span *s);
    _Atomic uint64_t sent, dropped; /* spans */
};

/* A span that starts now, in the trace of `t`: its id becomes that of *t, the former id that of
 * its parent unless it is the first. Returns NULL, and changes nothing, without memory. */
struct tenrec_span *trace_span_new(struct trace_sink *sink, enum tenrec_span_kind kind,
                                   struct trace_context *t, bool first, const char *function,
                                   const char *peer);

/* Ends it, and passes it to its sink. */
void trace_span_end(struct tenrec_span *s, tenrec_status status, uint64_t now_ns);

/* Frees it, and counts it for its sink, if it has one. */
void trace_span_done(struct tenrec_span *s, bool sent);

#endif
