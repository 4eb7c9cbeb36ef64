/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/value/trace.h"

#include "core/base/clock.h"
#include "core/base/memory.h"

#include <stdlib.h>
#include <string.h>

/* A span with its texts. */
struct trace_span_block {
    struct tenrec_span span;
    char text[];
};

static struct trace_sink *trace_span_sink(const struct tenrec_span *s)
{
    return (struct trace_sink *)(uintptr_t)s->origin;
}

struct tenrec_span *trace_span_new(struct trace_sink *sink, enum tenrec_span_kind kind,
                                   struct trace_context *t, bool first, const char *function,
                                   const char *peer)
{
    const size_t function_size = strlen(function) + 1, peer_size = peer ? strlen(peer) + 1 : 0;
    struct trace_span_block *block = memory_new(1, sizeof *block + function_size + peer_size);
    struct tenrec_span *s;

    if (!block)
        return NULL;
    s = &block->span;
    if (!first) { /* a new trace brings the id of its first span */
        memcpy(s->parent, t->span_id, sizeof s->parent);
        trace_context_step(t);
    }
    s->origin = &sink->origin;
    memcpy(s->trace_id, t->trace_id, sizeof s->trace_id);
    memcpy(s->span_id, t->span_id, sizeof s->span_id);
    s->flags = t->flags;
    s->kind = kind;
    s->remote = kind == TENREC_SPAN_SERVER && !first;
    s->start_ns = clock_now_ns();
    s->function = memcpy(block->text, function, function_size);
    if (peer)
        s->peer = memcpy(block->text + function_size, peer, peer_size);
    return s;
}

void trace_span_end(struct tenrec_span *s, tenrec_status status, uint64_t now_ns)
{
    struct trace_sink *sink = trace_span_sink(s);

    s->status = status;
    s->end_ns = now_ns;
    sink->add(sink, s);
}

void trace_span_done(struct tenrec_span *s, bool sent)
{
    struct trace_sink *sink = trace_span_sink(s);

    if (sink)
        atomic_fetch_add_explicit(sent ? &sink->sent : &sink->dropped, 1, memory_order_relaxed);
    free(s); /* the first of its block */
}
