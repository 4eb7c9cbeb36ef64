/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.h - the metrics of the workers of this process, for observers and as a value
 * for other workers. */
#ifndef TENREC_METRICS_METRICS_H
#define TENREC_METRICS_METRICS_H

#include <tenrec/observer_plugin.h>

#include "rpc/call/observe.h"

struct observer;
struct observer_choice;
struct trace_sink;
struct tenrec_config;

extern const struct service metrics_service; /* of a worker (rpc/call/service.h) */

/* Its state in each worker: durations and spans, and their observers. */
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

/* Checks `observe:` and the observer that it names for metrics (or for traces), and asks the plugin
 * about the address. errors: as observer_choice_load, and those of the plugin */
tenrec_status metrics_check(const struct tenrec_config *config, bool traces, tenrec_error *err);

#define METRICS_FUNCTION "tenrec.metrics"

/* The durations of a worker's calls (metrics_value.c). errors: ENOMEM and those of fn */
tenrec_status metrics_value(struct tenrec_worker *w, value_fn *fn, void *arg, tenrec_error *err);

/* The function of that name, by which other workers read them. errors: ENOMEM */
tenrec_status metrics_serve(struct functions *f, tenrec_error *err);

/* The debug info of all workers of the process as numbers, and their series, read at
 * one time. */

/* ret      owns: snapshot_drop
 * errors   ENOMEM */
tenrec_status snapshot_make(struct tenrec_snapshot **ret, tenrec_error *err);
void snapshot_drop(struct tenrec_snapshot *s); /* NULL is fine */

#endif
