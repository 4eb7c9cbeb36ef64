#include "rpc/setup.h"

#include "backend/registry.h"
#include "base/memory.h"
#include "config/config.h"

#include <stdlib.h>
#include <tenrec/future.h>

/* One link of the chain, with what chain_layer borrows. */
struct part {
    char *name;              /* owns */
    char *place;             /* owns */
    struct backend *backend; /* shared */
    void *options;           /* owns */
};

struct setup {
    struct config_settings *settings;
    struct part *part; /* outermost first */
    size_t n;
};

void setup_drop(struct setup *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++) {
        options_drop(s->part[i].options);
        if (s->part[i].backend)
            backend_put(s->part[i].backend);
        free(s->part[i].name);
        free(s->part[i].place);
    }
    free(s->part);
    config_settings_drop(s->settings);
    free(s);
}

static tenrec_status load_part(struct part *p, const struct config_layer *layer, tenrec_error *err)
{
    char place[PLACE_TEXT_MAX];
    tenrec_status st;

    p->name = memory_text(layer->name);
    p->place = memory_text(place_text(&layer->place, place));
    if (!p->name || !p->place)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for backend '%s'", layer->name);
    st = backend_get(layer->plugin, &p->backend, err);
    if (st != TENREC_OK) {
        tenrec_error_prefix(err, "%s: backend '%s'", place_text(&layer->plugin_place, place),
                            layer->name);
        return st;
    }
    st = options_make(backend_plugin(p->backend), layer, &p->options, err);
    if (st != TENREC_OK)
        return st;
    st = backend_construct(p->backend)(p->options, err);
    if (st != TENREC_OK)
        tenrec_error_prefix(err, "%s: backend '%s'", p->place, layer->name);
    return st;
}

static tenrec_status load(struct setup *s, const struct tenrec_config *config, tenrec_error *err)
{
    struct config_layer *layer = NULL;
    size_t n = 0;
    tenrec_status st = config_settings_make(config, &s->settings, err);

    if (st == TENREC_OK)
        st = config_layers(config, &layer, &n, err);
    if (st == TENREC_OK && !(s->part = memory_new(n, sizeof s->part[0])))
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu backends", n);
    for (; st == TENREC_OK && s->n < n; s->n++)
        st = load_part(&s->part[s->n], &layer[s->n], err);
    free(layer);
    return st;
}

tenrec_status setup_make(const struct tenrec_config *config, struct setup **ret, tenrec_error *err)
{
    struct setup *s = memory_new(1, sizeof *s);
    struct tenrec_config *own = NULL;
    tenrec_status st = TENREC_OK;

    if (!s)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a worker's configuration");
    if (!config)
        st = tenrec_config_load(NULL, &own, err);
    if (st == TENREC_OK)
        st = load(s, config ? config : own, err);
    tenrec_config_drop(own);
    if (st == TENREC_OK)
        *ret = s;
    else
        setup_drop(s);
    return st;
}

const struct config_settings *setup_settings(const struct setup *s)
{
    return s->settings;
}

int64_t setup_timeout_ms(const struct setup *s)
{
    return s->settings->rpc_timeout_ms == TENREC_FOREVER ? TENREC_TIMEOUT_NONE
                                                         : (int64_t)s->settings->rpc_timeout_ms;
}

tenrec_status setup_chain(const struct setup *s, const struct chain_identity *id, struct loop *loop,
                          const struct chain_user *user, struct chain **ret, tenrec_error *err)
{
    struct chain_layer *layer = memory_new(s->n, sizeof *layer);
    tenrec_status st;

    if (!layer)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu backends", s->n);
    for (size_t i = 0; i < s->n; i++)
        layer[i] = (struct chain_layer){ .name = s->part[i].name,
                                         .place = s->part[i].place,
                                         .backend = s->part[i].backend,
                                         .options = s->part[i].options };
    st = chain_open(layer, s->n, id, loop, user, ret, err);
    free(layer);
    return st;
}
