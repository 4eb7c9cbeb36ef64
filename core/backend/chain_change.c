/* SPDX-License-Identifier: Apache-2.0 */
/* chain_change.c - options of an agent that change while its chain runs. */
#include "core/backend/chain_layer.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/config/config.h"
#include "core/plugin/plugin.h"

#include <stdlib.h>
#include <string.h>

/* Checks the options as those of a start are. */
static tenrec_status link_make_options(const struct link *l, const struct node *options, void **ret,
                                       tenrec_error *err)
{
    const struct config_layer layer = { .section = SECTION_BACKENDS,
                                        .name = l->name,
                                        .options = options };
    tenrec_status st = options_make(plugin_description(l->backend), &layer, ret, err);

    if (st != TENREC_OK)
        return st;
    plugin_validate_begin(err);
    return plugin_validate_end(plugin_loaded(l->backend)->construct(*ret, err), "construct_options",
                               err);
}

/* The agent may read former options until its end, so all are kept until then. */
static tenrec_status link_change(struct link *l, const struct node *options, tenrec_error *err)
{
    const struct tenrec_reconfigure *ops =
        (const void *)link_extension(l, TENREC_EXTENSION_RECONFIGURE, sizeof *ops);
    struct link_options *kept = memory_new(1, sizeof *kept);
    tenrec_status st = kept ? TENREC_OK : memory_fail(err);

    if (kept && !ops)
        st = tenrec_fail(err, TENREC_EUNSUPPORTED,
                         "backend '%s' cannot change while the worker runs", l->name);
    if (st == TENREC_OK)
        st = link_make_options(l, options, &kept->opts, err);
    if (st == TENREC_OK) {
        plugin_validate_begin(err);
        st = plugin_validate_end(ops->change(&l->agent, kept->opts, err), "change", err);
    }
    if (st == TENREC_OK) {
        kept->next = l->changed;
        l->changed = kept;
    } else if (kept) {
        options_drop(kept->opts);
        free(kept);
    }
    return st;
}

static tenrec_status chain_change_link(struct chain *c, const char *name,
                                       const struct node *options, tenrec_error *err)
{
    struct suggestion near;

    suggest_init(&near, name);
    for (size_t i = 0; i < c->n; i++) {
        if (strcmp(c->link[i].name, name) == 0)
            return link_change(&c->link[i], options, err);
        suggest_try(&near, c->link[i].name);
    }
    return tenrec_fail(err, TENREC_ENOTFOUND, "this worker uses no backend '%s'%s", name,
                       suggest_hint(&near));
}

/* Shutdown waits for the threads of the agents, of which this may be one: nothing here waits. */
tenrec_status chain_change(struct chain *c, const char *name, const struct node *options,
                           tenrec_error *err)
{
    tenrec_status st = tenrec_fail(err, TENREC_EBUSY,
                                   "the worker starts, stops or changes at this moment: try again");

    if (pthread_mutex_trylock(&c->life) != 0)
        return st;
    if (pthread_mutex_trylock(&c->group) == 0) {
        if (atomic_load(&c->state) == CHAIN_UP)
            st = chain_change_link(c, name, options, err);
        pthread_mutex_unlock(&c->group);
    }
    pthread_mutex_unlock(&c->life);
    return st;
}
