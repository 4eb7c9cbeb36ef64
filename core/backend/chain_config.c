/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/chain_config.h"

#include "backend/plugin_validate.h"
#include "backend/registry.h"
#include "base/arena.h"
#include "base/memory.h"
#include "config/config.h"

#include <stdlib.h>
#include <string.h>

struct chain_config {
    struct arena texts;
    size_t n;
    struct chain_layer layer[];
};

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

/* Puts "PLACE: backend 'name': " before the text; a URL from the program has no place. */
static tenrec_status chain_config_prefix(tenrec_error *err, tenrec_status st, const char *place,
                                         const struct config_layer *from)
{
    const bool nowhere = strcmp(place, "default") == 0;

    tenrec_error_prefix(err, "%s%s%s '%s'", nowhere ? "" : place, nowhere ? "" : ": ",
                        section_word(from->section), from->name);
    return st;
}

tenrec_status chain_config_entry(const struct config_layer *from, struct backend **ret,
                                 void **ret_options, tenrec_error *err)
{
    const bool store = from->section == SECTION_STORES;
    char text[PLACE_TEXT_MAX];
    tenrec_status st = backend_get_kind(
        from->plugin, store ? TENREC_PLUGIN_STORE : TENREC_PLUGIN_BACKEND, ret, err);

    if (st != TENREC_OK)
        return chain_config_prefix(err, st, place_text(&from->plugin_place, text), from);
    if (!store && (st = check_wraps(from, backend_plugin(*ret), err)) != TENREC_OK)
        return st;
    st = options_make(backend_plugin(*ret), from, ret_options, err);
    if (st == TENREC_EPLUGIN) /* a wrong default, which has no place */
        return chain_config_prefix(err, st, place_text(&from->plugin_place, text), from);
    if (st != TENREC_OK)
        return st;
    plugin_validate_begin(err);
    st = plugin_validate_end(backend_file(*ret)->construct(*ret_options, err), "construct_options",
                             err);
    if (st != TENREC_OK)
        chain_config_prefix(err, st, options_place(backend_plugin(*ret), from, text), from);
    return st;
}

/* Borrows `from` during the call only. */
static tenrec_status layer_make(struct chain_config *s, struct chain_layer *layer,
                                const struct config_layer *from, tenrec_error *err)
{
    char text[PLACE_TEXT_MAX];
    void *options = NULL;
    tenrec_status st = chain_config_entry(from, &layer->backend, &options, err);

    layer->options = options;
    if (st != TENREC_OK)
        return st;
    layer->name = arena_text(&s->texts, from->name);
    layer->place = arena_text(&s->texts, options_place(backend_plugin(layer->backend), from, text));
    if (!layer->name || !layer->place)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for backend '%s'", from->name);
    return TENREC_OK;
}

tenrec_status chain_config_open(const struct tenrec_config *config, struct chain_config **ret,
                                tenrec_error *err)
{
    struct config_layer *from;
    struct chain_config *s;
    size_t n;
    tenrec_status st = config_layers(config, &from, &n, err);

    if (st != TENREC_OK)
        return st;
    s = memory_new(1, sizeof *s + n * sizeof s->layer[0]);
    if (!s)
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu backends", n);
    while (st == TENREC_OK && s->n < n) {
        st = layer_make(s, &s->layer[s->n], &from[s->n], err);
        s->n++; /* chain_config_close also undoes a half-made layer */
    }
    free(from);
    if (st == TENREC_OK)
        *ret = s;
    else
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
    for (size_t i = 0; i < s->n; i++) {
        options_drop((void *)(uintptr_t)s->layer[i].options); /* made here */
        backend_put(s->layer[i].backend);
    }
    arena_finish(&s->texts);
    free(s);
}
