/* SPDX-License-Identifier: Apache-2.0 */
/* layers.c - the entries of `backends:`, `stores:` and `observers:` for the rooms above. */
#include "core/base/memory.h"
#include "core/config/options.h"
#include "core/config/state.h"

#include <stdio.h>
#include <string.h>

static struct config_layer layers_make(const struct tenrec_config *config,
                                       enum config_section section, const struct node *entry)
{
    const struct node *plugin = node_get(entry, "plugin"), *wraps = node_get(entry, "wraps");

    return (struct config_layer){
        .config = config,
        .section = section,
        .name = entry->key,
        .plugin = plugin->text,
        .wraps = wraps ? wraps->text : NULL,
        .where = entry->key_where,
        .plugin_where = plugin->where,
        .wraps_where = wraps ? wraps->where : entry->key_where,
        .options = node_get(entry, "options"),
        /* of a store: the short variables are meant for backends */
        .innermost = section == SECTION_BACKENDS && !wraps,
    };
}

/* The outermost entry of the chain in use. */
static const struct node *layers_first(const struct tenrec_config *config,
                                       const struct node *entries)
{
    return node_get(entries, node_get(config->root, "backend")->text);
}

static const struct node *layers_next(const struct node *entries, const struct node *entry)
{
    const struct node *wraps = node_get(entry, "wraps");

    return wraps ? node_get(entries, wraps->text) : NULL;
}

static const struct node *layers_innermost(const struct tenrec_config *config,
                                           const struct node *entries)
{
    const struct node *entry = layers_first(config, entries);

    while (layers_next(entries, entry))
        entry = layers_next(entries, entry);
    return entry;
}

tenrec_status config_layers(const struct tenrec_config *config, struct config_layer **ret,
                            size_t *ret_n, tenrec_error *err)
{
    const struct node *entries = node_get(config->root, "backends");
    struct config_layer *layer = memory_new(entries->n, sizeof *layer);
    size_t n = 0;

    if (!layer)
        return memory_fail(err);
    for (const struct node *e = layers_first(config, entries); e; e = layers_next(entries, e))
        layer[n++] = layers_make(config, SECTION_BACKENDS, e);
    *ret = layer;
    *ret_n = n;
    return TENREC_OK;
}

tenrec_status config_entries(const struct tenrec_config *config, enum config_section section,
                             struct config_layer **ret, size_t *ret_n, tenrec_error *err)
{
    const struct node *entries = node_get(config->root, section_key(section));
    const size_t n = entries ? entries->n : 0;
    struct config_layer *layer = memory_new(n ? n : 1, sizeof *layer);

    if (!layer)
        return memory_fail(err);
    for (size_t i = 0; i < n; i++) {
        layer[i] = layers_make(config, section, entries->item[i]);
        if (section == SECTION_BACKENDS)
            layer[i].innermost = entries->item[i] == layers_innermost(config, entries);
    }
    *ret = layer;
    *ret_n = n;
    return TENREC_OK;
}

/* The entry, or the plugin of its name. */
static struct config_layer layers_named(const struct tenrec_config *config,
                                        enum config_section section, const char *name,
                                        const struct position *where)
{
    const struct node *entry = node_get(node_get(config->root, section_key(section)), name);

    if (entry)
        return layers_make(config, section, entry);
    return (struct config_layer){
        .config = config,
        .section = section,
        .name = name,
        .plugin = name,
        .where = *where,
        .plugin_where = *where,
        .wraps_where = *where,
    };
}

struct config_layer config_store(const struct tenrec_config *config, const char *scheme)
{
    return layers_named(config, SECTION_STORES, scheme,
                        &node_get(config->root, "init_method")->where);
}

struct config_layer config_observer(const struct tenrec_config *config, const char *name,
                                    const struct position *where)
{
    return layers_named(config, SECTION_OBSERVERS, name, where);
}

static void add_variable(char *buf, const char *join, const char *name)
{
    const size_t used = strlen(buf);

    snprintf(buf + used, POSITION_TEXT_MAX - used, "%s%s", join, name);
}

const char *options_where(const struct tenrec_plugin *desc, const struct config_layer *layer,
                          char buf[POSITION_TEXT_MAX])
{
    const bool written = layer->where.kind != POSITION_DEFAULT;
    size_t n = 0;

    position_text(&layer->where, buf);
    for (uint32_t i = 0; layer->config && i < desc->n_options; i++) {
        const char *key = options_at(desc, i).key;
        const char *alias = layer->innermost ? environment_short_name(key) : NULL;
        char name[2][ENVIRONMENT_NAME_MAX] = { "", "" };
        snprintf(name[0], sizeof name[0], "%s", alias ? alias : "");
        environment_option_name(name[1], layer->section, layer->name, key);
        for (size_t k = 0; k < 2; k++) {
            if (!environment_get(&layer->config->env, name[k]))
                continue;
            if (n == 0 && !written)
                *buf = '\0';
            add_variable(buf, n ? ", " : written ? " with environment " : "environment ", name[k]);
            n++;
        }
    }
    return buf;
}
