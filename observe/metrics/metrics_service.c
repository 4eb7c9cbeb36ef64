/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_service.c - metrics and exported spans as a service of a worker. */
#include "core/base/log.h"
#include "core/config/settings.h"
#include "core/plugin/plugin.h"
#include "observe/metrics/metrics.h"
#include "observe/metrics/observer.h"
#include "rpc/call/calls.h"
#include "rpc/call/service.h"
#include "rpc/value/trace.h"

/* ---- the observers -------------------------------------------------------------- */

/* Loads the observer that an option names, where an address is written for it. */
static tenrec_status metrics_choose(const struct tenrec_config *config, const char *address,
                                    const char *observer, const char *key,
                                    struct observer_choice **ret, tenrec_error *err)
{
    struct option_source src;
    struct position where;

    if (!*address)
        return TENREC_OK;
    src = observe_source(config);
    where = options_key_where(&src, key);
    return observer_choice_load(config, observer, &where, ret, err);
}

/* Asks the observer whether it would open the address that `key` gives it. */
static tenrec_status metrics_ask(const struct tenrec_config *config, const char *key,
                                 const struct observer_choice *choice, const char *address,
                                 tenrec_error *err)
{
    const struct option_source src = observe_source(config);
    const struct position where = options_key_where(&src, key);
    char text[POSITION_TEXT_MAX];
    tenrec_status st =
        plugin_check_address(plugin_description(choice->plugin), choice->options, address, err);

    if (st != TENREC_OK)
        tenrec_error_prefix(err, "%s: observe.%s", position_text(&where, text), key);
    return st;
}

tenrec_status metrics_check(const struct tenrec_config *config, bool traces, tenrec_error *err)
{
    struct observer_choice *choice = NULL;
    struct config_observe *o;
    const char *address, *observer;
    tenrec_status st = config_observe_make(config, &o, err);

    if (st != TENREC_OK)
        return st;
    address = traces ? o->traces : o->metrics;
    observer = traces ? o->traces_observer : o->metrics_observer;
    st = metrics_choose(config, address, observer, traces ? "traces_observer" : "metrics_observer",
                        &choice, err);
    if (st == TENREC_OK && choice)
        st = metrics_ask(config, traces ? "traces" : "metrics", choice, address, err);
    observer_choice_drop(choice);
    config_observe_drop(o);
    return st;
}

/* An observer that cannot be loaded or opened stops no worker. */
static void metrics_load(struct metrics_service *m, const struct service_config *c)
{
    const struct config_observe *o = c->observe;
    tenrec_error why;

    if (metrics_choose(c->config, o->metrics, o->metrics_observer, "metrics_observer", &m->metrics,
                       &why) != TENREC_OK)
        log_line(TENREC_LOG_WARN, "observe", "metrics are not served: %s", why.text);
    if (metrics_choose(c->config, o->traces, o->traces_observer, "traces_observer", &m->traces,
                       &why) != TENREC_OK)
        log_line(TENREC_LOG_WARN, "observe", "spans are not exported: %s", why.text);
}

static void metrics_export(struct tenrec_worker *w, const struct config_observe *o)
{
    struct metrics_service *m = metrics_of(w);
    tenrec_error why;

    if (m->metrics && observer_open(m->metrics, o->metrics, &m->observer, &why) != TENREC_OK)
        log_line(TENREC_LOG_WARN, w->self.name, "metrics are not served: %s", why.text);
}

/* OBSERVER_TRACES stays on after a stop: calls that still run then have spans to end. */
static void metrics_trace(struct tenrec_worker *w, const struct config_observe *o)
{
    struct metrics_service *m = metrics_of(w);
    tenrec_error why;
    tenrec_status st;

    trace_random_renew();
    if (!m->traces)
        return;
    if (!m->sink && !(m->sink = span_source_new()))
        st = tenrec_fail(&why, TENREC_ENOMEM, "no memory");
    else
        st =
            span_source_start(m->sink, m->traces, o->traces, o->traces_service, w->self.name, &why);
    if (st != TENREC_OK)
        log_line(TENREC_LOG_WARN, w->self.name, "spans are not exported: %s", why.text);
    observe_turn(w, OBSERVER_TRACES, st == TENREC_OK);
}

/* ---- the service ---------------------------------------------------------------- */

static tenrec_status metrics_init(struct tenrec_worker *w, const struct service_config *c,
                                  tenrec_error *err)
{
    observe_connect(w, OBSERVER_DURATIONS, &call_durations_observer);
    observe_connect(w, OBSERVER_TRACES, &call_spans_observer);
    metrics_load(metrics_of(w), c);
    return metrics_serve(&w->calls->functions, err);
}

static void metrics_finish(struct tenrec_worker *w)
{
    struct metrics_service *m = metrics_of(w);

    span_source_drop(m->sink);
    observer_choice_drop(m->metrics);
    observer_choice_drop(m->traces);
}

static tenrec_status metrics_start(struct tenrec_worker *w, const struct service_session *s,
                                   tenrec_error *err)
{
    (void)err;
    metrics_export(w, s->observe);
    metrics_trace(w, s->observe);
    observe_turn(w, OBSERVER_DURATIONS, s->observe->durations || *s->observe->metrics);
    atomic_store(&metrics_of(w)->trace_below, trace_below(s->observe->traces_ratio));
    return TENREC_OK;
}

static void metrics_close(struct tenrec_worker *w, const tenrec_error *why)
{
    struct metrics_service *m = metrics_of(w);

    (void)why;
    observe_turn(w, OBSERVER_DURATIONS, false);
    observer_close(m->observer);
    m->observer = NULL;
    if (m->sink)
        span_source_stop(m->sink);
}

static void metrics_debug_info(struct tenrec_worker *w, const struct service_outlet *to)
{
    const struct metrics_service *m = metrics_of(w);

    if (!m->sink)
        return;
    service_put(to, "traces.sent", (int64_t)atomic_load(&m->sink->sent));
    service_put(to, "traces.dropped", (int64_t)atomic_load(&m->sink->dropped));
}

const struct service metrics_service = {
    .name = "metrics",
    .size = sizeof(struct metrics_service),
    .init = metrics_init,
    .finish = metrics_finish,
    .start = metrics_start,
    .close = metrics_close,
    .debug_info = metrics_debug_info,
};
