/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/reconfigure.h"

#include "backend/chain_change.h"
#include "base/memory.h"
#include "config/config.h"
#include "future/enter.h"
#include "peer/worker.h"
#include "runtime/log.h"

#include <stdlib.h>
#include <string.h>

#define KEY_LOG_LEVEL "log_level"
#define KEY_WORKER "worker."
#define KEY_BACKENDS "backends."
#define KEY_OPTIONS ".options."

static const struct place setting_place = { .kind = PLACE_SETTING };

/* All that was checked and is not in force yet. */
struct reconfiguring {
    struct node *worker, *backends; /* maps: of values, and of such maps by name; own */
    const char *log_level;          /* NULL: as it is */
    enum tenrec_log_level level;
    struct config_settings *settings; /* NULL: as they are */
    struct chain_change *change;      /* NULL: none */
};

/* ---- sorting ------------------------------------------------------------------- */

static tenrec_status setting_put(struct node *map, const char *key, const char *value,
                                 tenrec_error *err)
{
    struct node *node = node_scalar(value, NODE_RAW, &setting_place);

    if (!node || node_add_key(map, key, &setting_place, node) != TENREC_OK)
        return memory_fail(err);
    return TENREC_OK;
}

/* "backends.NAME.options.KEY" */
static tenrec_status setting_put_option(struct reconfiguring *r, const struct tenrec_setting *s,
                                        const char *options, tenrec_error *err)
{
    const char *first = s->key + strlen(KEY_BACKENDS);
    char *name = strndup(first, (size_t)(options - first));
    struct node *map = name ? node_get(r->backends, name) : NULL;
    tenrec_status st = name ? TENREC_OK : memory_fail(err);

    if (name && !map) {
        map = node_new(NODE_MAP, &setting_place);
        if (!map || node_add_key(r->backends, name, &setting_place, map) != TENREC_OK)
            st = memory_fail(err);
    }
    free(name);
    return st == TENREC_OK ? setting_put(map, options + strlen(KEY_OPTIONS), s->value, err) : st;
}

static tenrec_status setting_sort(struct reconfiguring *r, const struct tenrec_setting *s,
                                  tenrec_error *err)
{
    const char *options;

    if (strcmp(s->key, KEY_LOG_LEVEL) == 0) {
        r->log_level = s->value;
        return log_level_find(s->value, &r->level)
                   ? TENREC_OK
                   : tenrec_fail(err, TENREC_ECONFIG,
                                 KEY_LOG_LEVEL ": expected " LOG_LEVELS ", found '%s'", s->value);
    }
    if (strncmp(s->key, KEY_WORKER, strlen(KEY_WORKER)) == 0)
        return setting_put(r->worker, s->key + strlen(KEY_WORKER), s->value, err);
    options = strstr(s->key, KEY_OPTIONS);
    if (options && strncmp(s->key, KEY_BACKENDS, strlen(KEY_BACKENDS)) == 0)
        return setting_put_option(r, s, options, err);
    if (strncmp(s->key, "security.", strlen("security.")) == 0)
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "'%s' cannot change while the worker runs; certificates and keys are "
                           "replaced by their files, which it reads again (security.mtls.refresh)",
                           s->key);
    return tenrec_fail(err, TENREC_ECONFIG,
                       "has no setting '%s', expected " KEY_LOG_LEVEL ", worker.KEY or "
                       "backends.NAME.options.KEY",
                       s->key);
}

static tenrec_status settings_sort(struct reconfiguring *r, const struct tenrec_setting *s,
                                   size_t n, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    r->worker = node_new(NODE_MAP, &setting_place);
    r->backends = node_new(NODE_MAP, &setting_place);
    if (!r->worker || !r->backends)
        return memory_fail(err);
    for (size_t i = 0; i < n && st == TENREC_OK; i++) {
        if (!s[i].key || !s[i].value)
            return tenrec_fail(err, TENREC_EINVAL, "setting %zu: its key or value is NULL", i + 1);
        for (size_t k = 0; k < i; k++)
            if (strcmp(s[i].key, s[k].key) == 0)
                return tenrec_fail(err, TENREC_EINVAL, "setting '%s' is given twice", s[i].key);
        st = setting_sort(r, &s[i], err);
    }
    return st;
}

/* ---- checking, and then all at once ---------------------------------------------- */

static tenrec_status settings_check(struct reconfiguring *r, struct tenrec_worker *w,
                                    tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    if (r->worker->n)
        st = config_settings_change(w->settings, r->worker, &r->settings, err);
    if (st == TENREC_OK && r->backends->n)
        st = chain_change_begin(w->chain, &r->change, err);
    for (size_t i = 0; st == TENREC_OK && i < r->backends->n; i++)
        st = chain_change_add(r->change, r->backends->item[i]->key, r->backends->item[i], err);
    return st;
}

static void settings_commit(struct reconfiguring *r, struct tenrec_worker *w)
{
    if (r->settings)
        atomic_store(&w->timeout_ms, r->settings->rpc_timeout_ms == TENREC_FOREVER
                                         ? TENREC_TIMEOUT_NONE
                                         : (int64_t)r->settings->rpc_timeout_ms);
    if (r->log_level)
        tenrec_log_set_level(r->level);
    chain_change_commit(r->change);
}

tenrec_status reconfigure(struct tenrec_worker *w, const struct tenrec_setting *setting, size_t n,
                          const char *by, tenrec_error *err)
{
    struct reconfiguring r = { 0 };
    tenrec_status st = worker_enter(w, err);

    if (st != TENREC_OK)
        return st;
    st = settings_sort(&r, setting, n, err);
    if (st == TENREC_OK)
        st = settings_check(&r, w, err);
    if (st == TENREC_OK)
        settings_commit(&r, w);
    else
        chain_change_discard(r.change);
    worker_leave(w);
    for (size_t i = 0; st == TENREC_OK && i < n; i++)
        log_line(TENREC_LOG_WARN, w->self.name, "%s=%.200s from now on%s%s", setting[i].key,
                 setting[i].value, *by ? ", by " : "", by);
    options_drop(r.settings);
    node_drop(r.worker);
    node_drop(r.backends);
    return st;
}
