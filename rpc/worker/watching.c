/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/worker/watching.h"

#include "core/base/log.h"
#include "core/config/config.h"
#include "core/config/observe_settings.h"
#include "observe/metrics/metrics.h"
#include "observe/metrics/observer.h"
#include "observe/metrics/span_source.h"
#include "observe/recorder/recorder.h"
#include "rpc/call/watch.h"
#include "rpc/future/worker.h"
#include "rpc/value/trace_random.h"
#include "rpc/worker/worker_config.h"

void watching_set(struct tenrec_worker *w, const struct config_observe *o)
{
    watch_turn(w, WATCH_DURATIONS, o->durations || *o->metrics);
    atomic_store(&w->trace_below, trace_below(o->traces_ratio));
    watch_turn(w, WATCH_RECORDER, o->recorder);
    recorder_set_stacks(w, o->stacks);
}

/* An observer that cannot be opened stops no worker. */
static void watching_export(struct tenrec_worker *w)
{
    const struct worker_config *c = w->config;
    tenrec_error why;

    if (c->metrics &&
        observer_open(c->metrics, c->observe->metrics, &w->metrics, &why) != TENREC_OK)
        log_line(TENREC_LOG_WARN, w->self.name, "metrics are not served: %s", why.text);
}

/* WATCH_TRACES stays on after a stop: calls that still run then have spans to end. */
static void watching_trace(struct tenrec_worker *w)
{
    const struct worker_config *c = w->config;
    const struct config_observe *o = c->observe;
    tenrec_error why;
    tenrec_status st;

    trace_random_renew();
    if (!c->traces)
        return;
    if (!w->traces && !(w->traces = span_source_new()))
        st = tenrec_fail(&why, TENREC_ENOMEM, "no memory");
    else
        st = span_source_start(w->traces, c->traces, o->traces, o->traces_service, w->self.name,
                               &why);
    if (st != TENREC_OK)
        log_line(TENREC_LOG_WARN, w->self.name, "spans are not exported: %s", why.text);
    watch_turn(w, WATCH_TRACES, st == TENREC_OK);
}

tenrec_status watching_start(struct tenrec_worker *w, tenrec_error *err)
{
    static _Atomic uint32_t starts;
    tenrec_status st = metrics_enter(w, err);

    w->start = atomic_fetch_add(&starts, 1) + 1;
    if (st != TENREC_OK)
        return st;
    watching_set(w, w->config->observe);
    watching_export(w);
    watching_trace(w);
    recorder_enter(w, &(struct recorder_settings){
                          .dump_dir = w->config->observe->dump_dir,
                          .stuck_after_ms = w->settings->stuck_after_ms,
                          .stacks = w->config->observe->stacks,
                      });
    return st;
}

void watching_stop(struct tenrec_worker *w)
{
    watch_turn(w, WATCH_DURATIONS, false);
    watch_turn(w, WATCH_RECORDER, false);
    recorder_leave(w);
    metrics_leave(w);
    observer_close(w->metrics);
    w->metrics = NULL;
    if (w->traces)
        span_source_stop(w->traces);
}
