/* SPDX-License-Identifier: Apache-2.0 */
/* span_source.h - the spans of a worker on their way to an observer. */
#ifndef TENREC_METRICS_SPAN_SOURCE_H
#define TENREC_METRICS_SPAN_SOURCE_H

#include "observe/metrics/observer.h"
#include "rpc/value/trace_span.h"

/* A sink that drops spans until it is started; it lives as long as calls of the worker do. Returns
 * NULL without memory. */
struct trace_sink *span_source_new(void);
void span_source_drop(struct trace_sink *sink); /* NULL is fine */

/* errors: as observer_open; EUNSUPPORTED for an observer that takes no spans */
tenrec_status span_source_start(struct trace_sink *sink, struct observer_choice *choice,
                                const char *address, const char *service, const char *worker,
                                tenrec_error *err);

/* Lets the observer deliver what it has, and returns after two seconds at the latest. */
void span_source_stop(struct trace_sink *sink);

#endif
