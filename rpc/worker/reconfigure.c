/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/worker/reconfigure.h"

#include "core/backend/chain_change.h"
#include "core/base/log.h"
#include "core/config/changes.h"
#include "core/config/config.h"
#include "core/config/observe_settings.h"
#include "rpc/call/service.h"
#include "rpc/future/enter.h"
#include "rpc/future/worker.h"
#include "rpc/worker/worker_config.h"

#include <pthread.h>

/* Changes follow each other: one worker may be changed by several callers at once. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

/* All that was checked and is not in force yet. */
struct reconfiguring {
    struct config_changes changes;
    enum tenrec_log_level level;
    struct config_settings *settings; /* NULL: as they are */
    struct config_observe *observe;   /* NULL: as it is */
    struct chain_change *change;      /* NULL: none */
};

static tenrec_status settings_check(struct reconfiguring *r, struct tenrec_worker *w,
                                    tenrec_error *err)
{
    const struct config_changes *c = &r->changes;
    tenrec_status st = TENREC_OK;

    if (c->log_level && !log_level_find(c->log_level, &r->level))
        return tenrec_fail(err, TENREC_ECONFIG, "log_level: expected " LOG_LEVELS ", found '%s'",
                           c->log_level);
    if (c->worker->n)
        st = config_settings_change(w->config->settings_now, c->worker, &r->settings, err);
    if (st == TENREC_OK && c->observe->n)
        st = config_observe_change(w->config->observe_now, c->observe, &r->observe, err);
    if (st == TENREC_OK && c->backends->n)
        st = chain_change_begin(w->chain, &r->change, err);
    for (size_t i = 0; st == TENREC_OK && i < c->backends->n; i++)
        st = chain_change_add(r->change, c->backends->item[i]->key, c->backends->item[i], err);
    return st;
}

/* The next change begins from these values. */
static void settings_keep(struct reconfiguring *r, struct worker_config *c)
{
    if (r->settings) {
        if (c->settings_now != c->settings)
            options_drop(c->settings_now);
        c->settings_now = r->settings;
    }
    if (r->observe) {
        if (c->observe_now != c->observe)
            options_drop(c->observe_now);
        c->observe_now = r->observe;
    }
}

static void settings_commit(struct reconfiguring *r, struct tenrec_worker *w)
{
    if (r->settings)
        atomic_store(&w->timeout_ms, r->settings->rpc_timeout_ms == TENREC_FOREVER
                                         ? TENREC_TIMEOUT_NONE
                                         : (int64_t)r->settings->rpc_timeout_ms);
    services_change(w, r->settings, r->observe);
    if (r->changes.log_level)
        tenrec_log_set_level(r->level);
    chain_change_commit(r->change);
    settings_keep(r, w->config);
}

static void settings_discard(struct reconfiguring *r)
{
    options_drop(r->settings);
    options_drop(r->observe);
    chain_change_discard(r->change);
}

tenrec_status reconfigure(struct tenrec_worker *w, const struct tenrec_setting *setting, size_t n,
                          const char *by, tenrec_error *err)
{
    struct reconfiguring r = { 0 };
    tenrec_status st = worker_enter(w, err);

    if (st != TENREC_OK)
        return st;
    pthread_mutex_lock(&changing);
    st = config_changes_sort(setting, n, &r.changes, err);
    if (st == TENREC_OK)
        st = settings_check(&r, w, err);
    if (st == TENREC_OK)
        settings_commit(&r, w);
    else
        settings_discard(&r);
    pthread_mutex_unlock(&changing);
    worker_leave(w);
    for (size_t i = 0; st == TENREC_OK && i < n; i++)
        log_line(TENREC_LOG_WARN, w->self.name, "%s=%.200s from now on%s%s", setting[i].key,
                 setting[i].value, *by ? ", by " : "", by);
    config_changes_finish(&r.changes);
    return st;
}
