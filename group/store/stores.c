/* SPDX-License-Identifier: Apache-2.0 */
#include "group/store/store.h"

#include "core/base/fail.h"
#include "core/base/memory.h"
#include "core/chain/chain.h"
#include "core/config/config.h"
#include "core/plugin/plugin.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct choice {
    char *scheme;
    struct plugin *plugin; /* shared (counted); NULL if loading failed */
    void *options;
    tenrec_error err; /* of the failed loading */
};

struct stores {
    atomic_uint refs;
    size_t n;
    struct choice choice[];
};

bool stores_scheme(const char *url, char ret[STORES_SCHEME_MAX])
{
    size_t len = strspn(url, "abcdefghijklmnopqrstuvwxyz0123456789_-");

    if (len == 0 || len >= STORES_SCHEME_MAX || strncmp(url + len, "://", 3) != 0)
        return false;
    memcpy(ret, url, len);
    ret[len] = '\0';
    return true;
}

tenrec_init_store_fn *stores_own(const char *scheme)
{
    static tenrec_init_store_fn *const own[CONFIG_OTHER + 1] = { [CONFIG_TCP] = store_tcp_init,
                                                                 [CONFIG_FILE] = store_file_init,
                                                                 [CONFIG_MEMORY] =
                                                                     store_memory_init };

    return own[config_scheme_find(scheme)];
}

static void choice_release(struct choice *c)
{
    options_drop(c->options);
    plugin_put(c->plugin);
    c->options = NULL;
    c->plugin = NULL;
}

/* Called when the plugin does not exist. By custom a scheme with an additional s asks for TLS: a
 * plugin that speaks TLS opens it with the options of its own entry. A hint to drop the s would be
 * wrong. */
static tenrec_status choice_fill_tls(struct choice *c, const struct config_layer *from,
                                     tenrec_error *err)
{
    const size_t len = strlen(from->name);
    struct config_layer layer;
    char name[STORES_SCHEME_MAX];
    tenrec_error why;
    tenrec_status st;

    if (strcmp(from->name, from->plugin) != 0 || len < 2 || len >= sizeof name ||
        from->name[len - 1] != 's')
        return TENREC_EPLUGIN;
    snprintf(name, sizeof name, "%.*s", (int)len - 1, from->name);
    layer = from->config
                ? config_store(from->config, name)
                : (struct config_layer){ .section = SECTION_STORES, .name = name, .plugin = name };
    st = plugin_entry_load(&layer, &c->plugin, &c->options, &why);
    if (!c->plugin)
        return TENREC_EPLUGIN;
    if (plugin_description(c->plugin)->flags & TENREC_PLUGIN_TLS)
        return st == TENREC_OK ? st : fail_with(err, &why);
    choice_release(c);
    return position_fail(
        err, TENREC_EUNSUPPORTED, &from->plugin_where,
        "store '%s': %s:// asks for TLS, which the plugin '%s' does not speak: use a "
        "tunnel such as stunnel, and %s:// to its local end",
        from->name, from->name, name, name);
}

static tenrec_status choice_fill(struct choice *c, const struct config_layer *from,
                                 tenrec_error *err)
{
    tenrec_status st;

    if (!(c->scheme = memory_text(from->name)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for store '%s'", from->name);
    st = plugin_entry_load(from, &c->plugin, &c->options, err);
    return st == TENREC_EPLUGIN && !c->plugin ? choice_fill_tls(c, from, err) : st;
}

/* Lists the entries of the file, and one for `scheme` if the file has none. */
static tenrec_status list_layers(const struct tenrec_config *config, const char *scheme,
                                 struct config_layer **ret, size_t *ret_n, tenrec_error *err)
{
    struct config_layer *layer = NULL, *more;
    size_t n = 0, i;
    tenrec_status st = config ? config_entries(config, SECTION_STORES, &layer, &n, err) : TENREC_OK;

    for (i = 0; st == TENREC_OK && scheme && i < n && strcmp(layer[i].name, scheme) != 0; i++)
        ;
    if (st == TENREC_OK && scheme && i == n) {
        if (!(more = memory_resize(layer, n + 1, sizeof *layer))) {
            free(layer);
            return tenrec_fail(err, TENREC_ENOMEM, "no memory for store '%s'", scheme);
        }
        layer = more;
        if (config)
            layer[n++] = config_store(config, scheme);
        else
            layer[n++] = (struct config_layer){ .section = SECTION_STORES,
                                                .name = scheme,
                                                .plugin = scheme };
    }
    *ret = layer;
    *ret_n = n;
    return st;
}

static tenrec_status stores_load_layers(const struct tenrec_config *config, const char *scheme,
                                        bool strict, struct stores **ret, tenrec_error *err)
{
    struct config_layer *layer = NULL;
    struct stores *s;
    tenrec_error why = { 0 };
    size_t n = 0;
    tenrec_status st = list_layers(config, scheme, &layer, &n, err);

    if (st != TENREC_OK)
        return st;
    if (!(s = memory_new(1, sizeof *s + n * sizeof s->choice[0]))) {
        free(layer);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu stores", n);
    }
    atomic_init(&s->refs, 1);
    while (st == TENREC_OK && s->n < n) {
        struct choice *c = &s->choice[s->n];
        const char *name = layer[s->n].name;
        st = choice_fill(c, &layer[s->n++], &why);
        if (st == TENREC_OK)
            continue;
        choice_release(c);
        c->err = why;
        if (!strict && st != TENREC_ENOMEM && !(scheme && strcmp(scheme, name) == 0))
            st = TENREC_OK;
    }
    free(layer);
    if (st == TENREC_OK) {
        *ret = s;
        return st;
    }
    if (err)
        *err = why;
    stores_drop(s);
    return st;
}

const char *stores_plugin_scheme(const char *init_method, char buf[STORES_SCHEME_MAX])
{
    return stores_scheme(init_method, buf) && config_scheme_find(buf) == CONFIG_OTHER ? buf : NULL;
}

tenrec_status stores_load(const struct tenrec_config *config, const char *scheme,
                          struct stores **ret, tenrec_error *err)
{
    return stores_load_layers(config, scheme, false, ret, err);
}

tenrec_status stores_check(const struct tenrec_config *config, const struct config_settings *s,
                           tenrec_error *err)
{
    char buf[STORES_SCHEME_MAX];
    const char *scheme = stores_plugin_scheme(s->init_method, buf);
    struct stores_choice choice = { .plugin = NULL };
    struct stores *all = NULL;
    tenrec_status st = stores_load_layers(config, scheme, true, &all, err);

    if (st == TENREC_OK && scheme && (st = stores_find(all, scheme, &choice, err)) == TENREC_OK) {
        st = plugin_check_address(choice.plugin, choice.options, s->init_method, err);
        if (st != TENREC_OK && err) {
            secret_scrub(err, s->init_method);
            tenrec_error_prefix(err, "%s: init_method", s->init_method_where);
        }
    }
    stores_drop(all);
    return st;
}

struct stores *stores_share(struct stores *s)
{
    atomic_fetch_add(&s->refs, 1);
    return s;
}

void stores_drop(struct stores *s)
{
    if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    for (size_t i = 0; i < s->n; i++) {
        choice_release(&s->choice[i]);
        free(s->choice[i].scheme);
    }
    free(s);
}

tenrec_status stores_find(const struct stores *s, const char *scheme, struct stores_choice *ret,
                          tenrec_error *err)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct choice *c = &s->choice[i];
        if (!c->scheme || strcmp(c->scheme, scheme) != 0)
            continue;
        if (!c->plugin) {
            if (err)
                *err = c->err;
            return c->err.code;
        }
        *ret = (struct stores_choice){ .plugin = plugin_description(c->plugin),
                                       .init = plugin_loaded(c->plugin)->init_store,
                                       .options = c->options };
        return TENREC_OK;
    }
    return tenrec_fail(err, TENREC_ENOTFOUND, "no store '%s' is configured", scheme);
}

static tenrec_status stores_add(const struct tenrec_config *config, const struct config_settings *s,
                                void **ret, tenrec_error *err)
{
    char scheme[STORES_SCHEME_MAX];
    struct stores *made = NULL;
    tenrec_status st =
        stores_load(config, stores_plugin_scheme(s->init_method, scheme), &made, err);

    *ret = made;
    return st;
}

static void stores_remove(void *made)
{
    stores_drop(made);
}

const struct chain_addition stores_addition = { stores_add, stores_remove, NULL };
