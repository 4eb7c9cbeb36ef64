/* SPDX-License-Identifier: Apache-2.0 */
/* options_change.c - options that change while their owner runs. */
#include "core/base/memory.h"
#include "core/config/observe_settings.h"
#include "core/config/options.h"
#include "core/config/settings.h"
#include "core/config/value.h"

#include <string.h>

/* Reads the values of src->map alone. */
static tenrec_status options_overlay(const struct tenrec_plugin *desc,
                                     const struct option_source *src, struct options_made *made,
                                     tenrec_error *err)
{
    for (uint32_t i = 0; i < desc->n_options; i++) {
        const struct tenrec_option opt = options_at(desc, i);
        const struct node *value = node_get(src->map, opt.key);
        char context[VALUE_CONTEXT_MAX];
        tenrec_status st;
        if (!value)
            continue;
        options_context(context, sizeof context, src, opt.key);
        st = opt.flags & TENREC_OPT_RUNTIME
                 ? options_read(&opt, src, value, &made->arena, made->opts, err)
                 : place_fail(err, TENREC_EUNSUPPORTED, &value->place,
                              "%s cannot change while the worker runs", context);
        if (st != TENREC_OK)
            return st;
    }
    return TENREC_OK;
}

tenrec_status options_copy(const struct tenrec_plugin *desc, const struct option_source *src,
                           const void *old, void **ret, tenrec_error *err)
{
    struct options_made *made;
    tenrec_status st = options_check_keys(desc, src, NULL, err);

    if (st != TENREC_OK)
        return st;
    made = memory_new(1, sizeof *made + desc->options_size + 1);
    if (!made)
        return memory_fail(err);
    memcpy(made->opts, old, desc->options_size);
    st = options_overlay(desc, src, made, err);
    if (st == TENREC_OK)
        *ret = made->opts;
    else
        options_drop(made->opts);
    return st;
}

tenrec_status options_change(const struct tenrec_plugin *desc, const struct config_layer *changes,
                             const void *old, void **ret, tenrec_error *err)
{
    const struct option_source src = options_source(changes);

    return options_copy(desc, &src, old, ret, err);
}

tenrec_status config_settings_change(const struct config_settings *old, const struct node *changes,
                                     struct config_settings **ret, tenrec_error *err)
{
    const struct option_source src = { .map = changes, .top = "worker" };
    void *copy = NULL;
    tenrec_status st = options_copy(&settings_table, &src, old, &copy, err);

    if (st == TENREC_OK)
        *ret = copy;
    return st;
}

tenrec_status config_observe_change(const struct config_observe *old, const struct node *changes,
                                    struct config_observe **ret, tenrec_error *err)
{
    const struct option_source src = { .map = changes, .top = "observe" };
    void *copy = NULL;
    tenrec_status st = options_copy(&observe_table, &src, old, &copy, err);

    if (st == TENREC_OK)
        *ret = copy;
    return st;
}
