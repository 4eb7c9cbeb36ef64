/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/chain_config.h"

#include "backend/plugin_validate.h"
#include "backend/registry.h"
#include "base/memory.h"
#include "config/config.h"

#include <stdlib.h>

/* Owns the memory of a chain_layer. */
struct entry {
    char *name;
    char *place;
    void *options;
};

struct chain_config {
    size_t n;
    struct chain_layer *layer;
    struct entry *entry;
};

static void entry_drop(struct chain_layer *layer, struct entry *e)
{
    options_drop(e->options);
    free(e->name);
    free(e->place);
    backend_put(layer->backend);
}

/* Checks `wraps` against the plugin's flag. */
static tenrec_status check_wraps(const struct config_layer *from, const struct tenrec_plugin *p,
                                 tenrec_error *err)
{
    const bool wraps = p->flags & TENREC_PLUGIN_WRAPS;

    if (wraps == !!from->wraps)
        return TENREC_OK;
    if (wraps)
        return place_fail(err, TENREC_ECONFIG, &from->wraps_place,
                          "backend '%s': plugin '%s' wraps another backend: name it with "
                          "'wraps'",
                          from->name, p->name);
    return place_fail(err, TENREC_ECONFIG, &from->wraps_place,
                      "backend '%s': plugin '%s' wraps nothing: remove 'wraps: %s'", from->name,
                      p->name, from->wraps);
}

/* Puts "PLACE: backend 'name': " before the text. */
static void chain_config_prefix(tenrec_error *err, const char *place,
                                const struct config_layer *from)
{
    tenrec_error_prefix(err, "%s: %s '%s'", place, section_word(from->section), from->name);
}

tenrec_status chain_config_entry(const struct config_layer *from, struct backend **ret,
                                 void **ret_options, tenrec_error *err)
{
    const bool store = from->section == SECTION_STORES;
    char text[PLACE_TEXT_MAX];
    tenrec_status st = backend_get_kind(
        from->plugin, store ? TENREC_PLUGIN_STORE : TENREC_PLUGIN_BACKEND, ret, err);

    if (st != TENREC_OK) {
        chain_config_prefix(err, place_text(&from->plugin_place, text), from);
        return st;
    }
    if (!store && (st = check_wraps(from, backend_plugin(*ret), err)) != TENREC_OK)
        return st;
    st = options_make(backend_plugin(*ret), from, ret_options, err);
    if (st == TENREC_EPLUGIN) /* a wrong table, so no value has a place */
        chain_config_prefix(err, place_text(&from->plugin_place, text), from);
    if (st != TENREC_OK)
        return st;
    plugin_validate_begin(err);
    st = plugin_validate_end(backend_construct(*ret)(*ret_options, err), "construct_options", err);
    if (st != TENREC_OK)
        chain_config_prefix(err, options_place(backend_plugin(*ret), from, text), from);
    return st;
}

static tenrec_status entry_make(struct chain_layer *layer, struct entry *e,
                                const struct config_layer *from, tenrec_error *err)
{
    char text[PLACE_TEXT_MAX];
    tenrec_status st = chain_config_entry(from, &layer->backend, &e->options, err);

    if (st != TENREC_OK)
        return st;
    e->name = memory_text(from->name);
    e->place = memory_text(options_place(backend_plugin(layer->backend), from, text));
    if (!e->name || !e->place)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for backend '%s'", from->name);
    layer->name = e->name;
    layer->place = e->place;
    layer->options = e->options;
    return TENREC_OK;
}

/* Borrows `from` during the call only. */
static tenrec_status chain_config_make(const struct config_layer *from, size_t n,
                                       struct chain_config **ret, tenrec_error *err)
{
    struct chain_config *s = memory_new(1, sizeof *s);
    struct chain_layer *layer = memory_new(n, sizeof *layer);
    struct entry *entry = memory_new(n, sizeof *entry);
    tenrec_status st = TENREC_OK;

    if (!s || !layer || !entry) {
        free(s);
        free(layer);
        free(entry);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu backends", n);
    }
    s->layer = layer;
    s->entry = entry;
    while (st == TENREC_OK && s->n < n) {
        st = entry_make(&s->layer[s->n], &s->entry[s->n], &from[s->n], err);
        s->n++; /* chain_config_close also undoes a half-made entry */
    }
    if (st != TENREC_OK) {
        chain_config_close(s);
        return st;
    }
    *ret = s;
    return TENREC_OK;
}

tenrec_status chain_config_open(const struct tenrec_config *config, struct chain_config **ret,
                                tenrec_error *err)
{
    struct config_layer *from;
    tenrec_status st;
    size_t n;

    st = config_layers(config, &from, &n, err);
    if (st != TENREC_OK)
        return st;
    st = chain_config_make(from, n, ret, err);
    free(from);
    return st;
}

tenrec_status chain_config_check(const struct tenrec_config *config, tenrec_error *err)
{
    struct config_layer *from;
    struct chain_config *s;
    tenrec_status st;
    size_t n;

    st = config_entries(config, SECTION_BACKENDS, &from, &n, err);
    if (st != TENREC_OK)
        return st;
    st = chain_config_make(from, n, &s, err);
    free(from);
    if (st == TENREC_OK)
        chain_config_close(s);
    return st;
}

const struct chain_layer *chain_config_layers(const struct chain_config *s, size_t *ret_n)
{
    *ret_n = s->n;
    return s->layer;
}

void chain_config_close(struct chain_config *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++)
        entry_drop(&s->layer[i], &s->entry[i]);
    free(s->layer);
    free(s->entry);
    free(s);
}
