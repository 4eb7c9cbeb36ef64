#include "entry.h"

#include "backend/registry.h"

#include <stdlib.h>

static tenrec_status check_wraps(const struct entry *e, tenrec_error *err)
{
    const struct tenrec_plugin *p = backend_plugin(e->backend);
    bool wraps = p->flags & TENREC_PLUGIN_WRAPS;

    if (wraps && !e->layer.wraps)
        return place_fail(err, TENREC_ECONFIG, &e->layer.place,
                          "backend '%s': plugin '%s' wraps another backend: say which with 'wraps'",
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

    tenrec_error_prefix(err, "%s: backend '%s'", place_text(place, text), e->layer.name);
}

static tenrec_status entry_open(struct entry *e, tenrec_error *err)
{
    tenrec_status st = backend_get(e->layer.plugin, &e->backend, err);

    if (st) {
        put_place(err, e, &e->layer.plugin_place);
        return st;
    }
    st = check_wraps(e, err);
    if (!st)
        st = options_make(backend_plugin(e->backend), &e->layer, &e->options, err);
    if (st)
        return st;
    st = backend_construct(e->backend)(e->options, err);
    if (st)
        put_place(err, e, e->layer.options ? &e->layer.options->place : &e->layer.place);
    return st;
}

tenrec_status entries_open(const struct tenrec_config *config, struct entries *ret,
                           tenrec_error *err)
{
    struct config_layer *layer;
    size_t n;
    tenrec_status st = config_layers(config, &layer, &n, err);

    ret->v = NULL;
    ret->n = 0;
    if (st)
        return st;
    free(layer); /* only to see that the chain ends at a wire */
    st = config_entries(config, &layer, &n, err);
    if (st)
        return st;
    ret->v = calloc(n ? n : 1, sizeof *ret->v);
    if (!ret->v)
        st = tenrec_fail(err, TENREC_ENOMEM, "out of memory");
    for (size_t i = 0; !st && i < n; i++) {
        ret->v[i].layer = layer[i];
        ret->n++;
        st = entry_open(&ret->v[i], err);
    }
    free(layer);
    if (st)
        entries_close(ret);
    return st;
}

void entries_close(struct entries *e)
{
    for (size_t i = 0; i < e->n; i++) {
        options_drop(e->v[i].options);
        if (e->v[i].backend)
            backend_put(e->v[i].backend);
    }
    free(e->v);
    e->v = NULL;
    e->n = 0;
}
