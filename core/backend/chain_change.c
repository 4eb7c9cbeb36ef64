/* SPDX-License-Identifier: Apache-2.0 */
#include "core/backend/chain_change.h"

#include "core/backend/chain_layer.h"
#include "core/base/memory.h"
#include "core/base/suggest.h"
#include "core/config/config.h"
#include "core/plugin/plugin_validate.h"
#include "core/plugin/registry.h"

#include <stdlib.h>
#include <string.h>

struct chain_change {
    struct chain *chain;
    size_t n;
    struct prepared {
        struct link *link;
        struct link_options *options; /* owns */
        const struct tenrec_reconfigure *ops;
        void *change;
    } v[];
};

tenrec_status chain_change_begin(struct chain *c, struct chain_change **ret, tenrec_error *err)
{
    struct chain_change *change = memory_new(1, sizeof *change + c->n * sizeof change->v[0]);

    if (!change)
        return memory_fail(err);
    change->chain = c;
    /* Shutdown waits for the threads of the agents, and this may be one of them. */
    if (pthread_mutex_trylock(&c->life) != 0)
        goto err_busy;
    if (pthread_mutex_trylock(&c->group) != 0)
        goto err_unlock;
    if (atomic_load(&c->state) == CHAIN_UP) {
        *ret = change;
        return TENREC_OK;
    }
    pthread_mutex_unlock(&c->group);
err_unlock:
    pthread_mutex_unlock(&c->life);
err_busy:
    free(change);
    return tenrec_fail(err, TENREC_EBUSY,
                       "the worker starts, stops or changes at this moment: try again");
}

static tenrec_status change_find(const struct chain *c, const char *name, struct link **ret,
                                 tenrec_error *err)
{
    struct suggestion near;

    suggest_init(&near, name);
    for (size_t i = 0; i < c->n; i++) {
        suggest_try(&near, c->link[i].name);
        *ret = (struct link *)(uintptr_t)&c->link[i];
        if (strcmp(c->link[i].name, name) == 0)
            return TENREC_OK;
    }
    return tenrec_fail(err, TENREC_ENOTFOUND, "this worker uses no backend '%s'%s", name,
                       suggest_hint(&near));
}

/* Checks the new options as those of a start are. */
static tenrec_status change_options(const struct link *l, const struct node *options, void **ret,
                                    tenrec_error *err)
{
    const struct config_layer layer = { .section = SECTION_BACKENDS,
                                        .name = l->name,
                                        .options = options };
    tenrec_status st = options_change(backend_plugin(l->backend), &layer, l->options, ret, err);

    if (st != TENREC_OK)
        return st;
    plugin_validate_begin(err);
    st = plugin_validate_end(backend_file(l->backend)->construct(*ret, err), "construct_options",
                             err);
    if (st == TENREC_OK)
        return st;
    options_drop(*ret);
    tenrec_error_prefix(err, "backend '%s'", l->name);
    return st;
}

tenrec_status chain_change_add(struct chain_change *change, const char *name,
                               const struct node *options, tenrec_error *err)
{
    struct prepared *p = &change->v[change->n];
    tenrec_status st = change_find(change->chain, name, &p->link, err);

    if (st != TENREC_OK)
        return st;
    p->options = memory_new(1, sizeof *p->options);
    if (!p->options)
        return memory_fail(err);
    st = change_options(p->link, options, &p->options->opts, err);
    if (st != TENREC_OK) {
        free(p->options);
        return st;
    }
    p->ops = (const void *)link_extension(p->link, TENREC_EXTENSION_RECONFIGURE, sizeof *p->ops);
    p->change = p->options->opts;
    plugin_validate_begin(err);
    if (!p->ops)
        st = tenrec_fail(err, TENREC_EUNSUPPORTED, "it cannot change while the worker runs");
    else if (p->ops->prepare)
        st = plugin_validate_end(
            p->ops->prepare(&p->link->agent, p->options->opts, &p->change, err), "prepare", err);
    if (st == TENREC_OK) {
        change->n++;
        return st;
    }
    options_drop(p->options->opts);
    free(p->options);
    tenrec_error_prefix(err, "backend '%s'", name);
    return st;
}

static void change_end(struct chain_change *change)
{
    pthread_mutex_unlock(&change->chain->group);
    pthread_mutex_unlock(&change->chain->life);
    free(change);
}

void chain_change_commit(struct chain_change *change)
{
    for (size_t i = 0; change && i < change->n; i++) {
        struct prepared *p = &change->v[i];

        p->ops->commit(&p->link->agent, p->change);
        p->link->options = p->options->opts;
        p->options->next = p->link->changed;
        p->link->changed = p->options;
    }
    if (change)
        change_end(change);
}

void chain_change_discard(struct chain_change *change)
{
    for (size_t i = 0; change && i < change->n; i++) {
        struct prepared *p = &change->v[i];

        if (p->ops->discard)
            p->ops->discard(&p->link->agent, p->change);
        options_drop(p->options->opts);
        free(p->options);
    }
    if (change)
        change_end(change);
}
