/* SPDX-License-Identifier: Apache-2.0 */
#include "core/chain/chain.h"

#include "core/base/memory.h"
#include "core/config/config.h"
#include "core/plugin/plugin.h"

#include <stdlib.h>
#include <string.h>
#include <tenrec/proof.h>

static size_t additions_count(const struct chain_addition *const *additions)
{
    size_t n = 0;

    while (additions[n])
        n++;
    return n;
}

static tenrec_status options_add(struct tenrec_chain_options *o, const struct tenrec_config *config,
                                 tenrec_error *err)
{
    for (size_t i = 0; o->of[i]; i++) {
        tenrec_status st = o->of[i]->make(config, o->settings, &o->added[i], err);
        if (st != TENREC_OK)
            return st;
        if (o->of[i]->guard)
            o->guard = o->of[i]->guard(o->added[i]);
    }
    return TENREC_OK;
}

tenrec_status chain_options_make(const struct tenrec_config *config,
                                 const struct chain_addition *const *additions,
                                 struct tenrec_chain_options **ret, tenrec_error *err)
{
    struct tenrec_chain_options *o;
    tenrec_status st;

    *ret = NULL;
    if (!config)
        return tenrec_fail(err, TENREC_EINVAL, "tenrec_chain_options_new: config is NULL");
    o = memory_new(1, sizeof *o + additions_count(additions) * sizeof o->added[0]);
    if (!o)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the options");
    o->of = additions;
    st = config_settings_make(config, &o->settings, err);
    if (st == TENREC_OK)
        st = options_add(o, config, err);
    if (st == TENREC_OK)
        st = chain_config_open(config, &o->layers, err);
    if (st == TENREC_OK)
        *ret = o;
    else
        tenrec_chain_options_drop(o);
    return st;
}

void *chain_options_added(const struct tenrec_chain_options *o,
                          const struct chain_addition *addition)
{
    for (size_t i = 0; o->of[i]; i++)
        if (o->of[i] == addition)
            return o->added[i];
    return NULL;
}

void tenrec_chain_options_drop(struct tenrec_chain_options *options)
{
    if (!options)
        return;
    chain_config_close(options->layers);
    for (size_t i = additions_count(options->of); i-- > 0;)
        options->of[i]->drop(options->added[i]);
    config_settings_drop(options->settings);
    free(options);
}

static uint32_t options_prove(const struct tenrec_chain_options *options)
{
    size_t n;
    const struct chain_layer *layer = chain_config_layers(options->layers, &n);

    return (plugin_description(layer[n - 1].backend)->flags & TENREC_PLUGIN_PROVES) != 0;
}

void tenrec_chain_options_settings(const struct tenrec_chain_options *options,
                                   struct tenrec_chain_settings *ret)
{
    const struct config_settings *s = options->settings;
    const struct chain_guard *guard = options->guard;
    const struct tenrec_chain_settings all = {
        .size = ret->size,
        .num_worker_threads = (uint32_t)s->num_worker_threads,
        .rpc_timeout_ms = s->rpc_timeout_ms,
        .init_timeout_ms = s->init_timeout_ms,
        .max_queued_calls = (uint64_t)s->max_queued_calls,
        .init_method = s->init_method,
        .security_mode = guard ? (uint32_t)guard->mode(guard) : (uint32_t)TENREC_SECURITY_NONE,
        .backend_proves = options_prove(options),
    };

    memcpy(ret, &all, ret->size < sizeof all ? ret->size : sizeof all);
}
