/* SPDX-License-Identifier: Apache-2.0 */
#include "entry.h"

#include "core/plugin/plugin.h"

#include <stdlib.h>

/* All entries, with nothing loaded yet; entries_close always. */
static tenrec_status entries_list(const struct tenrec_config *config, struct entries *ret,
                                  tenrec_error *err)
{
    static const enum config_section section[] = { SECTION_BACKENDS, SECTION_STORES,
                                                   SECTION_OBSERVERS };
    struct config_layer *layer[3] = { NULL };
    size_t n[3] = { 0 }, all = 0;
    tenrec_status st = config_layers(config, &layer[0], &n[0], err);

    *ret = (struct entries){ 0 };
    if (st)
        return st;
    free(layer[0]); /* only checked that the chain ends at a wire */
    layer[0] = NULL;
    for (int i = 0; !st && i < 3; i++)
        st = config_entries(config, section[i], &layer[i], &n[i], err);
    if (!st && !(ret->v = calloc(n[0] + n[1] + n[2] + 1, sizeof *ret->v)))
        st = tenrec_fail(err, TENREC_ENOMEM, "out of memory");
    for (int i = 0; !st && i < 3; i++)
        for (size_t k = 0; k < n[i]; k++)
            ret->v[all++].layer = layer[i][k];
    if (!st) {
        ret->n = n[0];
        ret->n_stores = n[1];
        ret->n_observers = n[2];
    }
    for (int i = 0; i < 3; i++)
        free(layer[i]);
    return st;
}

static void entry_try(void *arg, FILE *to)
{
    struct entry *e = arg;
    tenrec_error err;

    (void)to;
    plugin_entry_load(&e->layer, &e->backend, &e->options, &err);
}

tenrec_status entries_try(const struct tenrec_config *config, const struct mistakes *m,
                          tenrec_error *err)
{
    struct entries all;
    tenrec_status st = entries_list(config, &all, err);
    char how[128], text[POSITION_TEXT_MAX];

    for (size_t i = 0; !st && i < entries_count(&all); i++) {
        struct entry *e = &all.v[i];

        if (trial_run(entry_try, e, NULL, how, sizeof how))
            continue;
        st = tenrec_fail(err, TENREC_EPLUGIN, "plugin '%s': loading it and checking its options %s",
                         e->layer.plugin, how);
        tenrec_error_prefix(err, "%s: %s '%s'", position_text(&e->layer.plugin_where, text),
                            section_word(e->layer.section), e->layer.name);
        if (m) {
            m->tell(m->arg, err);
            st = TENREC_OK;
        }
    }
    entries_close(&all);
    return st;
}

static tenrec_status entry_open(struct entry *e, tenrec_error *err)
{
    tenrec_status st = plugin_entry_load(&e->layer, &e->backend, &e->options, err);

    if (st == TENREC_OK)
        return st;
    options_drop(e->options);
    e->options = NULL;
    plugin_put(e->backend);
    e->backend = NULL;
    return st;
}

tenrec_status entries_open(struct tenrec_config *config, const struct mistakes *m,
                           struct entries *ret, tenrec_error *err)
{
    tenrec_status st = entries_list(config, ret, err);

    for (size_t i = 0; !st && i < entries_count(ret); i++) {
        bool again = true;

        while (again && (st = entry_open(&ret->v[i], err)) != TENREC_OK && m) {
            m->tell(m->arg, err);
            again = mistakes_leave_out_option(config, &ret->v[i].layer, err);
            st = TENREC_OK;
        }
    }
    if (st)
        entries_close(ret);
    return st;
}

void entries_close(struct entries *e)
{
    for (size_t i = 0; i < entries_count(e); i++) {
        options_drop(e->v[i].options);
        plugin_put(e->v[i].backend);
    }
    free(e->v);
    *e = (struct entries){ 0 };
}
