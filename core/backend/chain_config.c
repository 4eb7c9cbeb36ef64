/* SPDX-License-Identifier: Apache-2.0 */
#include "core/backend/backend.h"

#include "core/base/memory.h"
#include "core/config/config.h"
#include "core/plugin/plugin.h"

#include <stdlib.h>

struct chain_config {
    struct arena texts;
    size_t n;
    struct chain_layer layer[];
};

/* Borrows `from` during the call only. */
static tenrec_status layer_make(struct chain_config *s, struct chain_layer *layer,
                                const struct config_layer *from, tenrec_error *err)
{
    char text[POSITION_TEXT_MAX];
    void *options = NULL;
    tenrec_status st = plugin_entry_load(from, &layer->backend, &options, err);

    layer->options = options;
    if (st != TENREC_OK)
        return st;
    layer->name = arena_text(&s->texts, from->name);
    layer->where =
        arena_text(&s->texts, options_where(plugin_description(layer->backend), from, text));
    if (!layer->name || !layer->where)
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
        plugin_put(s->layer[i].backend);
    }
    arena_finish(&s->texts);
    free(s);
}
