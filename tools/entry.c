/* SPDX-License-Identifier: Apache-2.0 */
#include "entry.h"

#include "backend/plugin_validate.h"
#include "backend/registry.h"
#include "trial.h"

#include <stdlib.h>

static tenrec_status check_wraps(const struct entry *e, tenrec_error *err)
{
    const struct tenrec_plugin *p = backend_plugin(e->backend);
    bool wraps = p->flags & TENREC_PLUGIN_WRAPS;

    if (wraps && !e->layer.wraps)
        return place_fail(err, TENREC_ECONFIG, &e->layer.place,
                          "backend '%s': plugin '%s' wraps another backend: name it with 'wraps'",
                          e->layer.name, p->name);
    if (!wraps && e->layer.wraps)
        return place_fail(err, TENREC_ECONFIG, &e->layer.wraps_place,
                          "backend '%s': plugin '%s' wraps nothing: remove 'wraps'", e->layer.name,
                          p->name);
    return TENREC_OK;
}

static void put_place(tenrec_error *err, const struct entry *e, const struct place *place)
{
    char text[PLACE_TEXT_MAX];

    tenrec_error_prefix(err, "%s: %s '%s'", place_text(place, text), section_word(e->layer.section),
                        e->layer.name);
}

static tenrec_status entry_open(struct entry *e, tenrec_error *err)
{
    bool is_store = e->layer.section == SECTION_STORES;
    char text[PLACE_TEXT_MAX];
    tenrec_status st = backend_get_kind(
        e->layer.plugin, is_store ? TENREC_PLUGIN_STORE : TENREC_PLUGIN_BACKEND, &e->backend, err);

    if (st) {
        put_place(err, e, &e->layer.plugin_place);
        return st;
    }
    if (!is_store)
        st = check_wraps(e, err);
    if (!st)
        st = options_make(backend_plugin(e->backend), &e->layer, &e->options, err);
    if (st == TENREC_EPLUGIN) /* the plugin's table is wrong, not a value in the file */
        put_place(err, e, &e->layer.plugin_place);
    if (st)
        return st;
    plugin_validate_begin(err);
    st = plugin_validate_end(backend_construct(e->backend)(e->options, err), "construct_options",
                             err);
    if (st)
        tenrec_error_prefix(err, "%s: %s '%s'",
                            options_place(backend_plugin(e->backend), &e->layer, text),
                            section_word(e->layer.section), e->layer.name);
    return st;
}

/* Lists all entries without loading plugins. Call entries_close also after a failure. */
static tenrec_status entries_list(const struct tenrec_config *config, struct entries *ret,
                                  tenrec_error *err)
{
    struct config_layer *layer, *store = NULL;
    size_t n, n_stores = 0;
    tenrec_status st = config_layers(config, &layer, &n, err);

    *ret = (struct entries){ 0 };
    if (st)
        return st;
    free(layer); /* only checked that the chain ends at a wire */
    st = config_entries(config, &layer, &n, err);
    if (st)
        return st;
    st = config_stores(config, &store, &n_stores, err);
    if (!st && !(ret->v = calloc(n + n_stores + 1, sizeof *ret->v)))
        st = tenrec_fail(err, TENREC_ENOMEM, "out of memory");
    for (size_t i = 0; !st && i < n + n_stores; i++)
        ret->v[i].layer = i < n ? layer[i] : store[i - n];
    if (!st) {
        ret->n = n;
        ret->n_stores = n_stores;
    }
    free(layer);
    free(store);
    return st;
}

static void entry_try(void *arg)
{
    tenrec_error err;

    entry_open(arg, &err);
}

tenrec_status entries_try(const struct tenrec_config *config, tenrec_error *err)
{
    struct entries all;
    tenrec_status st = entries_list(config, &all, err);
    char how[128];

    for (size_t i = 0; !st && i < all.n + all.n_stores; i++) {
        struct entry *e = &all.v[i];

        if (trial_run(entry_try, e, how, sizeof how))
            continue;
        st = tenrec_fail(err, TENREC_EPLUGIN, "plugin '%s': loading it and checking its options %s",
                         e->layer.plugin, how);
        put_place(err, e, &e->layer.plugin_place);
    }
    entries_close(&all);
    return st;
}

tenrec_status entries_open(const struct tenrec_config *config, struct entries *ret,
                           tenrec_error *err)
{
    tenrec_status st = entries_list(config, ret, err);

    for (size_t i = 0; !st && i < ret->n + ret->n_stores; i++)
        st = entry_open(&ret->v[i], err);
    if (st)
        entries_close(ret);
    return st;
}

void entries_close(struct entries *e)
{
    for (size_t i = 0; i < e->n + e->n_stores; i++) {
        options_drop(e->v[i].options);
        if (e->v[i].backend)
            backend_put(e->v[i].backend);
    }
    free(e->v);
    *e = (struct entries){ 0 };
}
