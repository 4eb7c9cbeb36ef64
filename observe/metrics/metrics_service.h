/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_service.h - what a worker keeps for its durations and spans, and their observers. */
#ifndef TENREC_METRICS_METRICS_SERVICE_H
#define TENREC_METRICS_METRICS_SERVICE_H

#include "rpc/call/observe.h"

struct observer;
struct observer_choice;
struct trace_sink;

struct metrics_service {
    struct observer_choice *metrics; /* NULL: no address is written, or its plugin failed */
    struct observer_choice *traces;  /* likewise */
    struct observer *observer;       /* shares; NULL: none, or not between start and stop */
    struct trace_sink *sink;         /* owns; of spans; NULL: none was started */
    _Atomic uint64_t trace_below;    /* which new traces are sampled: trace_context_root */
};

static inline struct metrics_service *metrics_of(const struct tenrec_worker *w)
{
    return w->service[SERVICE_METRICS];
}

/* The durations of calls on both sides, and their spans, for a plugin. */
extern const struct call_observer call_durations_observer;
extern const struct call_observer call_spans_observer;

#endif
