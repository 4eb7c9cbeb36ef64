/* SPDX-License-Identifier: Apache-2.0 */
#include "core/config/changes.h"

#include "core/base/memory.h"

#include <stdlib.h>
#include <string.h>

#define KEY_LOG_LEVEL "log_level"
#define KEY_WORKER "worker."
#define KEY_OBSERVE "observe."
#define KEY_BACKENDS "backends."
#define KEY_OPTIONS ".options."

static const struct place setting_place = { .kind = PLACE_SETTING };

static tenrec_status setting_put(struct node *map, const char *key, const char *value,
                                 tenrec_error *err)
{
    struct node *node = node_scalar(value, NODE_RAW, &setting_place);

    if (!node || node_add_key(map, key, &setting_place, node) != TENREC_OK)
        return memory_fail(err);
    return TENREC_OK;
}

/* "backends.NAME.options.KEY" */
static tenrec_status setting_put_option(struct config_changes *c, const struct tenrec_setting *s,
                                        const char *options, tenrec_error *err)
{
    const char *first = s->key + strlen(KEY_BACKENDS);
    char *name = strndup(first, (size_t)(options - first));
    struct node *map = name ? node_get(c->backends, name) : NULL;
    tenrec_status st = name ? TENREC_OK : memory_fail(err);

    if (name && !map) {
        map = node_new(NODE_MAP, &setting_place);
        if (!map || node_add_key(c->backends, name, &setting_place, map) != TENREC_OK)
            st = memory_fail(err);
    }
    free(name);
    return st == TENREC_OK ? setting_put(map, options + strlen(KEY_OPTIONS), s->value, err) : st;
}

static tenrec_status setting_sort(struct config_changes *c, const struct tenrec_setting *s,
                                  tenrec_error *err)
{
    const char *options;

    if (strcmp(s->key, KEY_LOG_LEVEL) == 0) {
        c->log_level = s->value;
        return TENREC_OK;
    }
    if (strncmp(s->key, KEY_WORKER, strlen(KEY_WORKER)) == 0)
        return setting_put(c->worker, s->key + strlen(KEY_WORKER), s->value, err);
    if (strncmp(s->key, KEY_OBSERVE, strlen(KEY_OBSERVE)) == 0)
        return setting_put(c->observe, s->key + strlen(KEY_OBSERVE), s->value, err);
    options = strstr(s->key, KEY_OPTIONS);
    if (options && strncmp(s->key, KEY_BACKENDS, strlen(KEY_BACKENDS)) == 0)
        return setting_put_option(c, s, options, err);
    if (strncmp(s->key, "security.", strlen("security.")) == 0)
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "'%s' cannot change while the worker runs; certificates and keys are "
                           "replaced by their files, which it reads again (security.mtls.refresh)",
                           s->key);
    return tenrec_fail(err, TENREC_ECONFIG,
                       "has no setting '%s', expected " KEY_LOG_LEVEL ", worker.KEY, "
                       "observe.KEY or backends.NAME.options.KEY",
                       s->key);
}

tenrec_status config_changes_sort(const struct tenrec_setting *s, size_t n,
                                  struct config_changes *c, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    *c = (struct config_changes){ .worker = node_new(NODE_MAP, &setting_place),
                                  .observe = node_new(NODE_MAP, &setting_place),
                                  .backends = node_new(NODE_MAP, &setting_place) };
    if (!c->worker || !c->observe || !c->backends)
        return memory_fail(err);
    for (size_t i = 0; i < n && st == TENREC_OK; i++) {
        if (!s[i].key || !s[i].value)
            return tenrec_fail(err, TENREC_EINVAL, "setting %zu: its key or value is NULL", i + 1);
        for (size_t k = 0; k < i; k++)
            if (strcmp(s[i].key, s[k].key) == 0)
                return tenrec_fail(err, TENREC_EINVAL, "setting '%s' is given twice", s[i].key);
        st = setting_sort(c, &s[i], err);
    }
    return st;
}

void config_changes_finish(struct config_changes *c)
{
    node_drop(c->worker);
    node_drop(c->observe);
    node_drop(c->backends);
}
