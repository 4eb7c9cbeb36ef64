/* SPDX-License-Identifier: Apache-2.0 */
#include "group/store/plugin_store.h"

#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/chain/chain_options.h"
#include "core/config/secret.h"
#include "core/plugin/plugin_validate.h"
#include "group/store/bytes.h"
#include "group/store/stores.h"
#include "security/proof/security.h"

#include <stdlib.h>
#include <string.h>
#include <tenrec/config.h>
#include <tenrec/store_plugin.h>

struct plugin_store {
    struct store_backend backend;
    struct tenrec_plugin_store store;
    struct stores *stores; /* shares: the plugin and its options */
    char part[72];         /* "store/redis": the part of its log lines */
};

static struct tenrec_plugin_store *store_of(struct store_backend *b)
{
    return &((struct plugin_store *)b)->store;
}

/* A plugin may have left the error's status out. */
static tenrec_status plugin_prefix(struct store_backend *b, tenrec_status st, tenrec_error *err)
{
    if (st != TENREC_OK)
        tenrec_error_prefix(err, "%s", b->name);
    if (st != TENREC_OK && err)
        err->code = st;
    return st;
}

static tenrec_status plugin_set(struct store_backend *b, const char *key, const void *data,
                                size_t len, uint64_t deadline_ns, tenrec_error *err)
{
    struct tenrec_plugin_store *s = store_of(b);

    return plugin_prefix(b, s->ops->set(s, key, data, len, deadline_ns, err), err);
}

static tenrec_status plugin_add(struct store_backend *b, const char *key, int64_t delta,
                                uint64_t deadline_ns, int64_t *ret, tenrec_error *err)
{
    struct tenrec_plugin_store *s = store_of(b);

    return plugin_prefix(b, s->ops->add(s, key, delta, deadline_ns, ret, err), err);
}

/* The values of one call. */
struct plugin_values {
    struct store_value *value;
    uint32_t n;
};

static tenrec_status plugin_values_put(void *arg, uint32_t i, const void *data, size_t len,
                                       tenrec_error *err)
{
    struct plugin_values *t = arg;

    if (i >= t->n || t->value[i].data)
        return tenrec_fail(err, TENREC_EPROTOCOL, "the plugin gave value %u out of turn", i);
    t->value[i].len = len;
    if (!(t->value[i].data = bytes_copy(data, len)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a value of %zu bytes", len);
    return TENREC_OK;
}

static tenrec_status plugin_values_check(const struct plugin_values *t, tenrec_error *err)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (!t->value[i].data)
            return tenrec_fail(err, TENREC_EPROTOCOL, "the plugin did not give value %u", i);
    return TENREC_OK;
}

static tenrec_status plugin_compare_set(struct store_backend *b, const char *key,
                                        const struct store_value *expected,
                                        const struct store_value *desired, uint64_t deadline_ns,
                                        struct store_value *ret, tenrec_error *err)
{
    struct tenrec_plugin_store *s = store_of(b);
    struct plugin_values t = { ret, 1 };
    tenrec_status st = s->ops->compare_set(s, key, expected->data, expected->len, desired->data,
                                           desired->len, deadline_ns, plugin_values_put, &t, err);

    if (st == TENREC_OK)
        st = plugin_values_check(&t, err);
    if (st != TENREC_OK) {
        free(ret->data);
        *ret = (struct store_value){ 0 };
    }
    return plugin_prefix(b, st, err);
}

static tenrec_status plugin_get(struct store_backend *b, const char *const *keys, size_t n,
                                uint64_t deadline_ns, struct store_value *ret, bool *ret_missing,
                                tenrec_error *err)
{
    struct tenrec_plugin_store *s = store_of(b);
    struct plugin_values t = { ret, (uint32_t)n };
    tenrec_status st = s->ops->get(s, keys, t.n, deadline_ns, ret ? plugin_values_put : NULL, &t,
                                   ret_missing, err);

    if (st == TENREC_ETIMEDOUT)
        return st; /* the caller names the keys */
    if (st == TENREC_OK && ret)
        st = plugin_values_check(&t, err);
    return plugin_prefix(b, st, err);
}

static tenrec_status plugin_check(struct store_backend *b, const char *const *keys, size_t n,
                                  uint64_t deadline_ns, bool *ret_missing, tenrec_error *err)
{
    struct tenrec_plugin_store *s = store_of(b);

    return plugin_prefix(b, s->ops->check(s, keys, (uint32_t)n, deadline_ns, ret_missing, err),
                         err);
}

static tenrec_status plugin_delete(struct store_backend *b, const char *const *keys, size_t n,
                                   uint64_t deadline_ns, size_t *ret, tenrec_error *err)
{
    struct tenrec_plugin_store *s = store_of(b);
    uint32_t gone = 0;
    tenrec_status st = s->ops->remove(s, keys, (uint32_t)n, deadline_ns, &gone, err);

    *ret = gone;
    return plugin_prefix(b, st, err);
}

static tenrec_status plugin_num_keys(struct store_backend *b, uint64_t deadline_ns, int64_t *ret,
                                     tenrec_error *err)
{
    struct tenrec_plugin_store *s = store_of(b);

    return plugin_prefix(b, s->ops->num_keys(s, deadline_ns, ret, err), err);
}

static void plugin_free(struct plugin_store *p)
{
    stores_drop(p->stores);
    free(p);
}

/* The plugin bounds its close itself. */
static void plugin_destroy(struct store_backend *b, uint64_t deadline_ns)
{
    struct tenrec_plugin_store *s = store_of(b);

    (void)deadline_ns;
    s->ops->close(s);
    plugin_free((struct plugin_store *)b);
}

static const struct store_ops plugin_ops = {
    .set = plugin_set,
    .add = plugin_add,
    .compare_set = plugin_compare_set,
    .get = plugin_get,
    .check = plugin_check,
    .delete_keys = plugin_delete,
    .num_keys = plugin_num_keys,
    .destroy = plugin_destroy,
};

/* ---- the plugin's host ------------------------------------------------------ */

static const char *part_of(const struct tenrec_plugin_store *s)
{
    return ((const struct plugin_store *)(const void *)((const char *)s -
                                                        offsetof(struct plugin_store, store)))
        ->part;
}

static bool host_log_enabled(struct tenrec_plugin_store *self, enum tenrec_log_level level)
{
    (void)self;
    return log_enabled(level);
}

TENREC_PRINTF(3, 4)
static void host_log(struct tenrec_plugin_store *self, enum tenrec_log_level level, const char *fmt,
                     ...)
{
    va_list ap;

    va_start(ap, fmt);
    log_vline(level, part_of(self), fmt, ap);
    va_end(ap);
}

static const struct tenrec_store_host host = {
    .size = sizeof host,
    .abi_major = TENREC_ABI_MAJOR,
    .abi_minor = TENREC_ABI_MINOR,
    .log_enabled = host_log_enabled,
    .log = host_log,
};

/* ---- opening -------------------------------------------------------------- */

/* All slots but `name` and `address` are mandatory. A slot beyond the plugin's size is missing. */
static tenrec_status check_ops(const struct tenrec_plugin_store *s, tenrec_error *err)
{
    const struct tenrec_store_ops *o = s->ops;
    const char *missing = NULL;

    if (!o)
        return tenrec_fail(err, TENREC_EPLUGIN, "the plugin set no operations");
#define NEED(slot)                                                                                 \
    if (!TENREC_HAS(o, slot))                                                                      \
    missing = #slot
    NEED(set);
    NEED(add);
    NEED(compare_set);
    NEED(get);
    NEED(check);
    NEED(remove);
    NEED(num_keys);
    NEED(close);
#undef NEED
    return missing ? tenrec_fail(err, TENREC_EPLUGIN, "the plugin has no operation '%s'", missing)
                   : TENREC_OK;
}

/* Keeps the name and address, for which the core asks once. */
static void make_name(struct plugin_store *p, const char *url)
{
    const char *name = TENREC_HAS(p->store.ops, name) ? p->store.ops->name(&p->store) : NULL;
    char *masked = name ? NULL : secret_mask(url);
    const char *at;

    snprintf(p->backend.name, sizeof p->backend.name, "%s%s", name ? "" : "store ",
             name     ? name
             : masked ? masked
                      : "");
    free(masked);
    if (TENREC_HAS(p->store.ops, address) && (at = p->store.ops->address(&p->store)))
        snprintf(p->backend.at, sizeof p->backend.at, "%s", at);
}

static tenrec_status open_choice(struct stores *stores, const struct stores_choice *choice,
                                 const char *url, uint64_t deadline_ns, struct tenrec_store **ret,
                                 tenrec_error *err)
{
    const struct tenrec_store_init in = {
        .size = sizeof in, .url = url, .options = choice->options, .deadline_ns = deadline_ns
    };
    struct plugin_store *p = memory_new(1, sizeof *p);
    tenrec_status st;

    if (!p)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a store");
    p->stores = stores_share(stores);
    p->backend.ops = &plugin_ops;
    atomic_init(&p->backend.refs, 1);
    p->store.host = &host;
    snprintf(p->part, sizeof p->part, "store/%s", choice->plugin->name);
    plugin_validate_begin(err);
    st = plugin_validate_end(choice->init(&in, &p->store, err), "init", err);
    if (st != TENREC_OK) {
        plugin_free(p);
        return st;
    }
    if ((st = check_ops(&p->store, err)) != TENREC_OK) {
        if (p->store.ops && TENREC_HAS(p->store.ops, close))
            p->store.ops->close(&p->store);
        tenrec_error_prefix(err, "plugin '%s'", choice->plugin->name);
        plugin_free(p);
        return st;
    }
    make_name(p, url);
    return store_handle_new(&p->backend, "/", ret, err);
}

tenrec_status plugin_store_open(void *arg, const char *url, uint64_t deadline_ns,
                                struct tenrec_store **ret, tenrec_error *err)
{
    char scheme[STORES_SCHEME_MAX];
    struct stores *stores = arg, *own = NULL;
    struct stores_choice choice;
    tenrec_status st;

    if (!stores_scheme(url, scheme)) {
        char *masked = secret_mask(url);
        st = tenrec_fail(err, TENREC_EINVAL,
                         "\"%.200s\" is no store, expected tcp://host:port, file://path, "
                         "memory://name or PLUGIN://...",
                         masked ? masked : "");
        free(masked);
        return st;
    }
    st = stores_find(stores, scheme, &choice, err);
    if (st == TENREC_ENOTFOUND && (st = stores_load(NULL, scheme, &own, err)) == TENREC_OK) {
        stores = own;
        st = stores_find(stores, scheme, &choice, err);
    }
    if (st == TENREC_OK)
        st = open_choice(stores, &choice, url, deadline_ns, ret, err);
    stores_drop(own);
    if (st != TENREC_OK) /* a plugin's text may repeat anything */
        secret_scrub(err, url);
    return st;
}

tenrec_status plugin_store_open_configured(void *arg, const char *url, uint64_t deadline_ns,
                                           struct tenrec_store **ret, tenrec_error *err)
{
    char scheme[STORES_SCHEME_MAX];
    struct tenrec_config *config;
    struct stores *stores = NULL;
    tenrec_status st = tenrec_config_load(NULL, &config, err);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    st = stores_load(config, stores_scheme(url, scheme) ? scheme : NULL, &stores, err);
    tenrec_config_drop(config);
    if (st == TENREC_OK)
        st = plugin_store_open(stores, url, deadline_ns, ret, err);
    stores_drop(stores);
    return st;
}

tenrec_status tenrec_store_open(const char *url, int64_t ms, struct tenrec_store **ret,
                                tenrec_error *err)
{
    struct security *security = NULL;
    uint64_t deadline_ns = 0;
    tenrec_status st;

    if (ret)
        *ret = NULL;
    if (!url || !ret)
        return tenrec_fail(err, TENREC_EINVAL, "tenrec_store_open needs a url and a result");
    if ((st = store_deadline(ms, &deadline_ns, err)) != TENREC_OK)
        return st;
    if (strncmp(url, "tcp://", 6) == 0) /* the only kind that proves a secret */
        st = security_open_default(deadline_ns, &security, err);
    if (st == TENREC_OK)
        st = store_open_url(url, security, plugin_store_open_configured, NULL, deadline_ns, ret,
                            err);
    security_drop(security);
    return st;
}

tenrec_status tenrec_store_open_with(const struct tenrec_rpc_backend_options *options,
                                     const char *url, int64_t ms, struct tenrec_store **ret,
                                     tenrec_error *err)
{
    uint64_t deadline_ns = 0;
    tenrec_status st;

    if (ret)
        *ret = NULL;
    if (!options || !url || !ret)
        return tenrec_fail(err, TENREC_EINVAL,
                           "tenrec_store_open_with needs options, a url and a result");
    st = store_deadline(ms, &deadline_ns, err);
    if (st != TENREC_OK)
        return st;
    return store_open_url(url, chain_options_added(options, &security_addition), plugin_store_open,
                          chain_options_added(options, &stores_addition), deadline_ns, ret, err);
}
