/* SPDX-License-Identifier: Apache-2.0 */
/* set.c - the function by which a caller that holds the group secret changes a running worker. */
#include "rpc/worker/worker.h"

#include "core/backend/backend.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/config/node.h"
#include "core/config/value.h"
#include "rpc/call/calls.h"
#include "rpc/future/worker.h"

#include <stdlib.h>
#include <string.h>

#define KEY_BACKENDS "backends."
#define KEY_OPTIONS ".options."

static tenrec_status set_log_level(const char *value, tenrec_error *err)
{
    enum tenrec_log_level level;

    if (!log_level_find(value, &level))
        return tenrec_fail(err, TENREC_ECONFIG, "log_level: expected " LOG_LEVELS ", found '%s'",
                           value);
    tenrec_log_set_level(level);
    return TENREC_OK;
}

static tenrec_status set_rpc_timeout(struct tenrec_worker *w, const char *value, tenrec_error *err)
{
    uint64_t ms;
    tenrec_status st = quantity_duration(value, false, &ms, err);

    if (st == TENREC_OK)
        st = tenrec_worker_set_rpc_timeout(
            w, ms == TENREC_FOREVER ? TENREC_TIMEOUT_NONE : (int64_t)ms, err);
    if (st != TENREC_OK)
        tenrec_error_prefix(err, "worker.rpc_timeout");
    return st;
}

/* Options that are not given have their defaults. */
static tenrec_status set_option(struct tenrec_worker *w, const char *name, const char *key,
                                const char *value, tenrec_error *err)
{
    static const struct position where = { .kind = POSITION_SETTING };
    struct node *map = node_new(NODE_MAP, &where), *node = node_scalar(value, NODE_RAW, &where);
    tenrec_status st = TENREC_OK;

    if (!map || !node || node_add_key(map, key, &where, node) != TENREC_OK)
        st = memory_fail(err);
    else
        st = chain_change(w->chain, name, map, err);
    node_drop(map);
    return st;
}

static tenrec_status set_setting(struct tenrec_worker *w, const char *key, const char *value,
                                 tenrec_error *err)
{
    const char *options = strstr(key, KEY_OPTIONS);
    tenrec_status st;
    char *name;

    if (strcmp(key, "log_level") == 0)
        return set_log_level(value, err);
    if (strcmp(key, "worker.rpc_timeout") == 0)
        return set_rpc_timeout(w, value, err);
    if (!options || strncmp(key, KEY_BACKENDS, strlen(KEY_BACKENDS)) != 0)
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "'%s' cannot change while the worker runs, expected log_level, "
                           "worker.rpc_timeout or " KEY_BACKENDS "NAME" KEY_OPTIONS "KEY",
                           key);
    key += strlen(KEY_BACKENDS);
    name = strndup(key, (size_t)(options - key));
    st = name ? set_option(w, name, options + strlen(KEY_OPTIONS), value, err) : memory_fail(err);
    free(name);
    return st;
}

/* The name of a caller without a proof is only a claim. */
static tenrec_status set_answer(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct tenrec_worker *w = tenrec_call_worker(call);
    const char *key, *value, *by = tenrec_call_from(call).name;
    tenrec_status st = tenrec_call_get_args(call, err, "ss", &key, &value);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    if (tenrec_call_proof(call) != TENREC_PROVED_SECRET)
        return tenrec_fail(err, TENREC_EPERM,
                           "settings change for callers that have proved the group secret; "
                           "this caller has proved nothing: see security.mode");
    st = set_setting(w, key, value, err);
    if (st == TENREC_OK)
        log_line(TENREC_LOG_WARN, w->self.name, "%s=%.200s from now on%s%s", key, value,
                 *by ? ", by " : "", by);
    return st;
}

/* Inline, so that it answers even if blocked functions fill the pool. */
tenrec_status set_serve(struct functions *f, tenrec_error *err)
{
    return functions_add(f, "tenrec.set", set_answer, NULL, TENREC_INLINE, err);
}
