/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_json.h - a batch of spans as a request of the OpenTelemetry protocol in JSON
 * (ExportTraceServiceRequest). */
#ifndef TENREC_METRICS_OTLP_JSON_H
#define TENREC_METRICS_OTLP_JSON_H

#include "observe/metrics/trace_export.h"

/* ret: owns, free it. Returns NULL without memory. */
char *otlp_json(const struct trace_span *first, size_t *ret_len);

#endif
