/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/value/trace_span.h"

#include "core/base/clock.h"
#include "core/base/memory.h"

#include <string.h>

struct trace_span *trace_span_new(struct trace_sink *sink, enum trace_kind kind,
                                  struct trace_context *t, bool first, const char *function,
                                  const char *peer)
{
    const size_t function_size = strlen(function) + 1, peer_size = peer ? strlen(peer) + 1 : 0;
    struct trace_span *s = memory_new(1, sizeof *s + function_size + peer_size);

    if (!s)
        return NULL;
    if (!first) { /* a new trace brings the id of its first span */
        memcpy(s->parent, t->span_id, sizeof s->parent);
        trace_context_step(t);
    }
    s->sink = sink;
    s->own = *t;
    s->kind = kind;
    s->remote = kind == TRACE_SERVER && !first;
    s->start_ns = clock_now_ns();
    memcpy(s->function, function, function_size);
    if (peer)
        s->peer = memcpy(s->function + function_size, peer, peer_size);
    return s;
}

void trace_span_end(struct trace_span *s, tenrec_status status, uint64_t now_ns)
{
    s->status = status;
    s->end_ns = now_ns;
    s->sink->add(s->sink, s);
}
