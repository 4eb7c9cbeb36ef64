/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/watching.h"

#include "call/watch.h"
#include "config/observe_settings.h"
#include "metrics/metrics.h"
#include "peer/worker.h"
#include "worker/worker_config.h"

void watching_set(struct tenrec_worker *w, const struct config_observe *o)
{
    watch_turn(w, WATCH_DURATIONS, o->durations || *o->metrics);
}

tenrec_status watching_start(struct tenrec_worker *w, tenrec_error *err)
{
    static _Atomic uint32_t starts;
    tenrec_status st = metrics_enter(w, err);

    w->start = atomic_fetch_add(&starts, 1) + 1;
    if (st == TENREC_OK)
        watching_set(w, w->config->observe);
    return st;
}

void watching_stop(struct tenrec_worker *w)
{
    watch_turn(w, WATCH_DURATIONS, false);
    metrics_leave(w);
}
