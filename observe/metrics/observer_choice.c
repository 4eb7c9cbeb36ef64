/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/metrics/observer.h"

#include "core/base/memory.h"
#include "core/config/config.h"
#include "core/plugin/plugin.h"

#include <stdlib.h>

tenrec_status observer_choice_load(const struct tenrec_config *config, const char *name,
                                   const struct position *where, struct observer_choice **ret,
                                   tenrec_error *err)
{
    const struct config_layer layer = config_observer(config, name, where);
    struct observer_choice *c = memory_new(1, sizeof *c);
    tenrec_status st;

    if (!c)
        return memory_fail(err);
    atomic_init(&c->refs, 1);
    snprintf(c->name, sizeof c->name, "%s", name);
    st = plugin_entry_load(&layer, &c->plugin, &c->options, err);
    if (st == TENREC_OK)
        *ret = c;
    else
        observer_choice_drop(c);
    return st;
}

struct observer_choice *observer_choice_share(struct observer_choice *c)
{
    atomic_fetch_add(&c->refs, 1);
    return c;
}

void observer_choice_drop(struct observer_choice *c)
{
    if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
        return;
    options_drop(c->options);
    plugin_put(c->plugin);
    free(c);
}
