/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/worker/worker_config.h"

#include "core/backend/chain_config.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/config/config.h"
#include "core/config/observe_settings.h"
#include "group/meeting/rendezvous.h"
#include "group/store/stores.h"
#include "security/proof/security.h"

#include <stdlib.h>
#include <tenrec/plugin.h>

void worker_config_drop(struct worker_config *s)
{
    if (!s)
        return;
    chain_config_close(s->stack);
    stores_drop(s->stores);
    security_drop(s->security);
    config_settings_drop(s->settings);
    config_observe_drop(s->observe);
    free(s);
}

tenrec_status worker_config_check_stores(const struct tenrec_config *config,
                                         const struct config_settings *s, tenrec_error *err)
{
    char scheme[STORES_SCHEME_MAX];

    return stores_check(config, stores_plugin_scheme(s->init_method, scheme), err);
}

/* A mistake in `observe:` turns all of it off, and stops no worker. */
static tenrec_status worker_config_observe(struct worker_config *s,
                                           const struct tenrec_config *config, tenrec_error *err)
{
    tenrec_error why;

    if (config_observe_make(config, &s->observe, &why) == TENREC_OK)
        return TENREC_OK;
    log_line(TENREC_LOG_WARN, "observe", "all of it stays off: %s", why.text);
    return config_observe_default(&s->observe, err);
}

static tenrec_status worker_config_load(struct worker_config *s, const struct tenrec_config *config,
                                        tenrec_error *err)
{
    char scheme[STORES_SCHEME_MAX];
    tenrec_status st = config_settings_make(config, &s->settings, err);

    if (st == TENREC_OK)
        st = rendezvous_check_settings(s->settings, err);
    if (st == TENREC_OK)
        st = worker_config_observe(s, config, err);
    if (st == TENREC_OK)
        st = security_open(config, CLOCK_NEVER, &s->security, err);
    if (st == TENREC_OK)
        st = stores_load(config, stores_plugin_scheme(s->settings->init_method, scheme), &s->stores,
                         err);
    return st == TENREC_OK ? chain_config_open(config, &s->stack, err) : st;
}

tenrec_status worker_config_make(const struct tenrec_config *config, struct worker_config **ret,
                                 tenrec_error *err)
{
    struct worker_config *s = memory_new(1, sizeof *s);
    struct tenrec_config *own = NULL;
    tenrec_status st = TENREC_OK;

    if (!s)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a worker's configuration");
    if (!config)
        st = tenrec_config_load(NULL, &own, err);
    if (st == TENREC_OK)
        st = worker_config_load(s, config ? config : own, err);
    tenrec_config_drop(own);
    if (st == TENREC_OK)
        *ret = s;
    else
        worker_config_drop(s);
    return st;
}

tenrec_status worker_config_chain(const struct worker_config *s, const struct chain_identity *id,
                                  struct loop *loop, const struct chain_user *user,
                                  struct chain **ret, tenrec_error *err)
{
    size_t n;
    const struct chain_layer *layer = chain_config_layers(s->stack, &n);
    struct chain_identity with = *id;

    with.guard = &s->security->guard;
    return chain_open(layer, n, &with, loop, user, ret, err);
}
