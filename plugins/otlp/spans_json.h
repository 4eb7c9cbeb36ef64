/* SPDX-License-Identifier: Apache-2.0 */
/* spans_json.h - a batch of spans as a request of the OpenTelemetry protocol in JSON
 * (ExportTraceServiceRequest). */
#ifndef OTLP_SPANS_JSON_H
#define OTLP_SPANS_JSON_H

#include <tenrec/observer_plugin.h>

/* version  of Tenrec
 * ret      owns, free it. Returns NULL without memory. */
char *spans_json(const struct tenrec_span *first, const char *version, size_t *ret_len);

#endif
