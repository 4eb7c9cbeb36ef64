/* SPDX-License-Identifier: Apache-2.0 */
/* trace_export.h - the spans of a worker on their way to an exporter. */
#ifndef TENREC_METRICS_TRACE_EXPORT_H
#define TENREC_METRICS_TRACE_EXPORT_H

#include "observe/metrics/exporter.h"
#include "rpc/value/trace_span.h"

#include <sys/types.h>

struct trace_queue;

/* A worker as the origin of spans. */
struct trace_export {
    struct trace_sink sink;    /* first */
    struct trace_queue *queue; /* shares; guarded by the queues' lock; NULL: spans are dropped */
    char *service, *worker;    /* own; the latter is its name */
    char host[256];
    pid_t process;
};

/* A sink that drops spans until it is started; it lives as long as calls of the worker do. Returns
 * NULL without memory. */
struct trace_sink *trace_export_new(void);
void trace_export_drop(struct trace_sink *sink); /* NULL is fine */

/* errors: as exporter_open, EOS */
tenrec_status trace_export_start(struct trace_sink *sink, struct exporter_choice *choice,
                                 const char *address, const char *service, const char *worker,
                                 tenrec_error *err);

/* Sends what is queued, and returns after a second at the latest. */
void trace_export_stop(struct trace_sink *sink);

#endif
