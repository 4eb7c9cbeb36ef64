/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/worker/backend_options.h"

#include "core/backend/chain_config.h"
#include "core/base/memory.h"
#include "core/config/config.h"
#include "core/plugin/registry.h"
#include "group/store/plugin_store.h"
#include "group/store/store.h"
#include "security/proof/security.h"

#include <stdlib.h>
#include <string.h>

tenrec_status tenrec_construct_rpc_backend_options(const struct tenrec_config *config,
                                                   struct tenrec_rpc_backend_options **ret,
                                                   tenrec_error *err)
{
    struct tenrec_rpc_backend_options *o;
    tenrec_status st;

    *ret = NULL;
    if (!config)
        return tenrec_fail(err, TENREC_EINVAL, "construct_rpc_backend_options: no config");
    o = memory_new(1, sizeof *o);
    if (!o)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the options");
    st = worker_config_make(config, &o->setup, err);
    if (st != TENREC_OK) {
        free(o);
        return st;
    }
    *ret = o;
    return TENREC_OK;
}

void tenrec_rpc_backend_options_drop(struct tenrec_rpc_backend_options *options)
{
    if (!options)
        return;
    worker_config_drop(options->setup);
    free(options);
}

static uint32_t backend_options_prove(const struct tenrec_rpc_backend_options *options)
{
    size_t n;
    const struct chain_layer *layer = chain_config_layers(options->setup->stack, &n);

    return (backend_plugin(layer[n - 1].backend)->flags & TENREC_PLUGIN_PROVES) != 0;
}

void tenrec_rpc_backend_options_settings(const struct tenrec_rpc_backend_options *options,
                                         struct tenrec_backend_settings *ret)
{
    const struct config_settings *s = options->setup->settings;
    const struct tenrec_backend_settings all = {
        .size = ret->size,
        .num_worker_threads = (uint32_t)s->num_worker_threads,
        .rpc_timeout_ms = s->rpc_timeout_ms,
        .init_timeout_ms = s->init_timeout_ms,
        .max_queued_calls = (uint64_t)s->max_queued_calls,
        .init_method = s->init_method,
        .security_mode = (uint32_t)options->setup->security->mode,
        .backend_proves = backend_options_prove(options),
    };

    memcpy(ret, &all, ret->size < sizeof all ? ret->size : sizeof all);
}

tenrec_status tenrec_store_open_with(const struct tenrec_rpc_backend_options *options,
                                     const char *url, int64_t ms, struct tenrec_store **ret,
                                     tenrec_error *err)
{
    uint64_t deadline_ns = 0;
    tenrec_status st;

    if (ret)
        *ret = NULL;
    if (!options || !url || !ret)
        return tenrec_fail(err, TENREC_EINVAL,
                           "tenrec_store_open_with needs options, a url and a result");
    st = store_deadline(ms, &deadline_ns, err);
    if (st != TENREC_OK)
        return st;
    return store_open_url(url, options->setup->security, plugin_store_open, options->setup->stores,
                          deadline_ns, ret, err);
}
