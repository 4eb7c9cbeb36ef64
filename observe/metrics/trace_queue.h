/* SPDX-License-Identifier: Apache-2.0 */
/* trace_queue.h - the spans that wait for an exporter, and the thread that sends them in batches.
 * All sinks of a process with the same exporter share a queue. */
#ifndef TENREC_METRICS_TRACE_QUEUE_H
#define TENREC_METRICS_TRACE_QUEUE_H

#include "observe/metrics/trace_export.h"

enum {
    TRACE_QUEUE_MAX = 4096, /* spans; more are dropped */
    TRACE_BATCH_MAX = 512,
    TRACE_POST_MS = 1000, /* a batch may take; so an end waits no longer */
    TRACE_PERIOD_MS = 1000,
    TRACE_RETRY_MAX_MS = 30000,
};

/* Connects a sink to the queue of an exporter, of which it takes a share always.
 * errors: ENOMEM, EOS */
tenrec_status trace_queue_join(struct trace_export *t, struct exporter *e, tenrec_error *err);

/* Sends what is queued, and disconnects the sink. Within a second. */
void trace_queue_leave(struct trace_export *t);

/* A slot of struct trace_sink. */
void trace_queue_add(struct trace_sink *sink, struct trace_span *s);

#endif
