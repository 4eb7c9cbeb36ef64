/* SPDX-License-Identifier: Apache-2.0 */
/* store_open.c - opening and closing: the kinds of this library and those of plugins alike. */
#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/chain/chain.h"
#include "core/config/config.h"
#include "core/plugin/plugin.h"
#include "group/store/store.h"
#include "security/proof/security.h"

#include <stdlib.h>
#include <string.h>
#include <tenrec/config.h>

#define DROP_MS 1000 /* of a drop, for changes for other processes */

/* ---- handles ---------------------------------------------------------------- */

static void store_base_free(struct store_base *b)
{
    stores_drop(b->stores);
    free(b);
}

static void store_base_put(struct store_base *b, uint64_t deadline_ns)
{
    if (atomic_fetch_sub(&b->refs, 1) != 1)
        return;
    b->self.ops->close(&b->self, deadline_ns);
    store_base_free(b);
}

/* Takes one reference to `b` (always). */
static tenrec_status handle_new(struct store_base *b, const char *prefix, struct tenrec_store **ret,
                                tenrec_error *err)
{
    size_t len = strlen(prefix);
    struct tenrec_store *s = memory_new(1, sizeof *s + len + 1);

    if (!s) {
        store_base_put(b, clock_now_ns());
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a store");
    }
    s->base = b;
    s->prefix_len = len;
    memcpy(s->prefix, prefix, len + 1);
    *ret = s;
    return TENREC_OK;
}

tenrec_status tenrec_store_open_prefix(struct tenrec_store *s, const char *prefix,
                                       struct tenrec_store **ret, tenrec_error *err)
{
    size_t len;
    tenrec_status st;
    char *whole;

    if (ret)
        *ret = NULL;
    if (!s || !prefix || !*prefix || !ret)
        return tenrec_fail(err, TENREC_EINVAL, "a prefixed store needs a store and a prefix");
    len = s->prefix_len + strlen(prefix) + 2;
    if (len > TENREC_STORE_MAX_KEY)
        return tenrec_fail(err, TENREC_ETOOBIG, "prefix of %zu bytes is longer than a key of %d",
                           len, TENREC_STORE_MAX_KEY);
    if (!(whole = memory_new(len, 1)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a store");
    snprintf(whole, len, "%s%s/", s->prefix, prefix);
    atomic_fetch_add(&s->base->refs, 1);
    st = handle_new(s->base, whole, ret, err);
    free(whole);
    return st;
}

void store_close(struct tenrec_store *s, uint64_t deadline_ns)
{
    if (!s)
        return;
    store_base_put(s->base, deadline_ns);
    free(s);
}

void tenrec_store_close(struct tenrec_store *s)
{
    store_close(s, clock_deadline_ms(DROP_MS));
}

void store_cut(struct tenrec_store *s)
{
    if (TENREC_HAS(s->base->self.ops, cut))
        s->base->self.ops->cut(&s->base->self);
}

void store_rest(struct tenrec_store *s)
{
    store_tcp_rest(&s->base->self);
}

const char *tenrec_store_name(const struct tenrec_store *s)
{
    return s->base->name;
}

const char *store_at(const struct tenrec_store *s)
{
    return s->base->at;
}

/* ---- the host --------------------------------------------------------------- */

static const struct tenrec_store_host host = {
    .size = sizeof host,
    .abi_major = TENREC_ABI_MAJOR,
    .abi_minor = TENREC_ABI_MINOR,
    .log_enabled = plugin_log_enabled,
    .log = plugin_log,
};

/* ---- opening ---------------------------------------------------------------- */

/* A slot beyond the plugin's size is missing. */
static tenrec_status check_ops(const struct tenrec_store_ops *o, tenrec_error *err)
{
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

static tenrec_status store_base_check(struct store_base *b, const struct stores_choice *choice,
                                      tenrec_error *err)
{
    const tenrec_status st = check_ops(b->self.ops, err);

    if (st == TENREC_OK)
        return st;
    if (b->self.ops && TENREC_HAS(b->self.ops, close))
        b->self.ops->close(&b->self, clock_deadline_ms(DROP_MS));
    if (choice->plugin)
        tenrec_error_prefix(err, "plugin '%s'", choice->plugin->name);
    return st;
}

/* Keeps the name and address, for which the core asks once. */
static void store_base_name(struct store_base *b, const char *url)
{
    const char *name = TENREC_HAS(b->self.ops, name) ? b->self.ops->name(&b->self) : NULL;
    char *masked = name ? NULL : secret_mask(url);
    const char *at;

    snprintf(b->name, sizeof b->name, "%s%s", name ? "" : "store ",
             name     ? name
             : masked ? masked
                      : "");
    free(masked);
    if (TENREC_HAS(b->self.ops, address) && (at = b->self.ops->address(&b->self)))
        snprintf(b->at, sizeof b->at, "%s", at);
}

tenrec_status store_new(const struct stores_choice *choice, struct stores *stores, const char *url,
                        uint64_t deadline_ns, struct tenrec_store **ret, tenrec_error *err)
{
    const struct tenrec_store_init in = {
        .size = sizeof in, .url = url, .options = choice->options, .deadline_ns = deadline_ns
    };
    struct store_base *b = memory_new(1, sizeof *b);
    tenrec_status st;

    if (!b)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a store");
    atomic_init(&b->refs, 1);
    b->self.host = &host;
    b->self.log_part = b->part;
    b->stores = stores ? stores_share(stores) : NULL;
    snprintf(b->part, sizeof b->part, "store%s%s", choice->plugin ? "/" : "",
             choice->plugin ? choice->plugin->name : "");
    plugin_validate_begin(err);
    st = plugin_validate_end(choice->init(&in, &b->self, err), "init", err);
    if (st == TENREC_OK)
        st = store_base_check(b, choice, err);
    if (st != TENREC_OK) {
        store_base_free(b);
        return st;
    }
    store_base_name(b, url);
    return handle_new(b, "/", ret, err);
}

static tenrec_status open_kind(tenrec_init_store_fn *init, const struct store_setup *setup,
                               const char *address, uint64_t deadline_ns, struct tenrec_store **ret,
                               tenrec_error *err)
{
    const struct stores_choice choice = { .init = init, .options = setup };

    return store_new(&choice, NULL, address, deadline_ns, ret, err);
}

tenrec_status store_tcp_open(const char *host_name, uint16_t port, struct security *security,
                             uint64_t deadline_ns, struct tenrec_store **ret, tenrec_error *err)
{
    const struct store_setup setup = { .security = security };
    char address[300];

    snprintf(address, sizeof address, strchr(host_name, ':') ? "[%s]:%u" : "%s:%u", host_name,
             port);
    return open_kind(store_tcp_init, &setup, address, deadline_ns, ret, err);
}

tenrec_status store_file_open(const char *path, uint32_t num_workers, uint64_t deadline_ns,
                              struct tenrec_store **ret, tenrec_error *err)
{
    const struct store_setup setup = { .num_workers = num_workers };

    return open_kind(store_file_init, &setup, path, deadline_ns, ret, err);
}

tenrec_status store_memory_open(const char *name, struct tenrec_store **ret, tenrec_error *err)
{
    const struct store_setup setup = { .num_workers = 0 };

    return open_kind(store_memory_init, &setup, name, CLOCK_NEVER, ret, err);
}

/* Finds the plugin of `scheme` in `stores`, or else loads it. ret_from: stores_drop, in any case */
static tenrec_status find_plugin(struct stores *stores, const char *scheme,
                                 struct stores **ret_from, struct stores_choice *ret,
                                 tenrec_error *err)
{
    struct tenrec_config *config = NULL;
    tenrec_status st = TENREC_OK;

    if (stores && (st = stores_find(stores, scheme, ret, err)) != TENREC_ENOTFOUND) {
        *ret_from = stores_share(stores);
        return st;
    }
    st = stores ? TENREC_OK : tenrec_config_load(NULL, &config, err);
    if (st == TENREC_OK)
        st = stores_load(config, scheme, ret_from, err);
    tenrec_config_drop(config);
    return st == TENREC_OK ? stores_find(*ret_from, scheme, ret, err) : st;
}

static tenrec_status open_plugin(struct stores *stores, const char *scheme, const char *url,
                                 uint64_t deadline_ns, struct tenrec_store **ret, tenrec_error *err)
{
    struct stores *from = NULL;
    struct stores_choice choice;
    tenrec_status st = find_plugin(stores, scheme, &from, &choice, err);

    if (st == TENREC_OK)
        st = store_new(&choice, from, url, deadline_ns, ret, err);
    stores_drop(from);
    if (st != TENREC_OK) /* a plugin's text may repeat anything */
        secret_scrub(err, url);
    return st;
}

tenrec_status store_open_url(const char *url, struct security *security, struct stores *stores,
                             uint64_t deadline_ns, struct tenrec_store **ret, tenrec_error *err)
{
    const struct store_setup setup = { .security = security };
    char scheme[STORES_SCHEME_MAX], *masked;
    tenrec_init_store_fn *init;
    tenrec_status st;

    if (stores_scheme(url, scheme)) {
        init = stores_own(scheme);
        return init ? open_kind(init, &setup, url + strlen(scheme) + 3, deadline_ns, ret, err)
                    : open_plugin(stores, scheme, url, deadline_ns, ret, err);
    }
    masked = secret_mask(url);
    st = tenrec_fail(err, TENREC_EINVAL,
                     "\"%.200s\" is no store, expected tcp://host:port, file://path, "
                     "memory://name or PLUGIN://...",
                     masked ? masked : "");
    free(masked);
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
        st = store_open_url(url, security, NULL, deadline_ns, ret, err);
    security_drop(security);
    return st;
}

tenrec_status tenrec_store_open_with(const struct tenrec_chain_options *options, const char *url,
                                     int64_t ms, struct tenrec_store **ret, tenrec_error *err)
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
    return store_open_url(url, chain_options_added(options, &security_addition),
                          chain_options_added(options, &stores_addition), deadline_ns, ret, err);
}
