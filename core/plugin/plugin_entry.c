/* SPDX-License-Identifier: Apache-2.0 */
#include "core/plugin/plugin.h"

#include "core/config/config.h"

#include <string.h>

/* Checks `wraps` against the plugin's flag. */
static tenrec_status plugin_entry_check_wraps(const struct config_layer *from,
                                              const struct tenrec_plugin *p, tenrec_error *err)
{
    const bool wraps = p->flags & TENREC_PLUGIN_WRAPS;

    if (wraps == !!from->wraps)
        return TENREC_OK;
    if (wraps)
        return position_fail(err, TENREC_ECONFIG, &from->wraps_where,
                             "backend '%s': plugin '%s' wraps another backend: name it with "
                             "'wraps'",
                             from->name, p->name);
    return position_fail(err, TENREC_ECONFIG, &from->wraps_where,
                         "backend '%s': plugin '%s' wraps nothing: remove 'wraps: %s'", from->name,
                         p->name, from->wraps);
}

/* Puts "POSITION: backend 'name': " before the text; a URL from the program has no position. */
static tenrec_status plugin_entry_prefix(tenrec_error *err, tenrec_status st, const char *where,
                                         const struct config_layer *from)
{
    const bool nowhere = strcmp(where, "default") == 0;

    tenrec_error_prefix(err, "%s%s%s '%s'", nowhere ? "" : where, nowhere ? "" : ": ",
                        section_word(from->section), from->name);
    return st;
}

tenrec_status plugin_entry_load(const struct config_layer *from, struct plugin **ret,
                                void **ret_options, tenrec_error *err)
{
    static const int kind[] = { [SECTION_BACKENDS] = TENREC_PLUGIN_BACKEND,
                                [SECTION_STORES] = TENREC_PLUGIN_STORE,
                                [SECTION_OBSERVERS] = TENREC_PLUGIN_OBSERVER };
    const bool backend = from->section == SECTION_BACKENDS;
    char text[POSITION_TEXT_MAX];
    tenrec_status st = plugin_get_kind(from->plugin, kind[from->section], ret, err);

    if (st != TENREC_OK)
        return plugin_entry_prefix(err, st, position_text(&from->plugin_where, text), from);
    if (backend &&
        (st = plugin_entry_check_wraps(from, plugin_description(*ret), err)) != TENREC_OK)
        return st;
    st = options_make(plugin_description(*ret), from, ret_options, err);
    if (st == TENREC_EPLUGIN) /* a wrong default, which has no position */
        return plugin_entry_prefix(err, st, position_text(&from->plugin_where, text), from);
    if (st != TENREC_OK)
        return st;
    plugin_validate_begin(err);
    st = plugin_validate_end(plugin_loaded(*ret)->construct(*ret_options, err), "construct_options",
                             err);
    if (st != TENREC_OK)
        plugin_entry_prefix(err, st, options_where(plugin_description(*ret), from, text), from);
    return st;
}
