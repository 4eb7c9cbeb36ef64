/* SPDX-License-Identifier: Apache-2.0 */
/* trace_span.h - one side of a sampled call, for the sink of its worker (a room above). */
#ifndef TENREC_VALUE_TRACE_SPAN_H
#define TENREC_VALUE_TRACE_SPAN_H

#include "rpc/value/trace_context.h"

#include <stdatomic.h>

/* Of the OpenTelemetry protocol. */
enum trace_kind { TRACE_SERVER = 2, TRACE_CLIENT = 3 };

struct trace_span;

/* The worker of spans. Outlives them. */
struct trace_sink {
    /* Takes the span. Any thread; does not block. */
    void (*add)(struct trace_sink *sink, struct trace_span *s);
    _Atomic uint64_t sent, dropped; /* spans */
};

struct trace_span {
    struct trace_span *next; /* of the sink */
    struct trace_sink *sink;
    struct trace_context own;
    uint8_t parent[TRACE_SPAN_ID_SIZE]; /* zeros: the first of its trace */
    bool remote;                        /* the parent belongs to the caller */
    enum trace_kind kind;
    tenrec_status status;
    uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
    const char *peer;          /* the called worker, or NULL; like the function it is a copy */
    char function[];
};

/* A span that starts now, in the trace of `t`: its id becomes that of *t, the former id that of
 * its parent unless it is the first. Returns NULL, and changes nothing, without memory. */
struct trace_span *trace_span_new(struct trace_sink *sink, enum trace_kind kind,
                                  struct trace_context *t, bool first, const char *function,
                                  const char *peer);

/* Ends it, and passes it to its sink. */
void trace_span_end(struct trace_span *s, tenrec_status status, uint64_t now_ns);

#endif
