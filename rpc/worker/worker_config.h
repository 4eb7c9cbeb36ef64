/* SPDX-License-Identifier: Apache-2.0 */
/* worker_config.h - the configuration of a worker: settings, stores, chain. */
#ifndef TENREC_WORKER_WORKER_CONFIG_H
#define TENREC_WORKER_WORKER_CONFIG_H

#include "core/backend/chain.h"

#include <tenrec/config.h>

struct chain_config;
struct config_observe;
struct config_settings;
struct security;
struct stores;

/* Owns all. */
struct worker_config {
    struct config_settings *settings;
    struct chain_config *stack;
    struct stores *stores;
    struct security *security;
    struct config_observe *observe;
};

/* Reads and checks the settings and loads the plugins; opens nothing. `config` is borrowed during
 * the call; NULL loads the default one. */
tenrec_status worker_config_make(const struct tenrec_config *config, struct worker_config **ret,
                                 tenrec_error *err);
void worker_config_drop(struct worker_config *s);

/* Checks `stores:` and the plugin that init_method needs. errors: as stores_load */
tenrec_status worker_config_check_stores(const struct tenrec_config *config,
                                         const struct config_settings *s, tenrec_error *err);

tenrec_status worker_config_chain(const struct worker_config *s, const struct chain_identity *id,
                                  struct loop *loop, const struct chain_user *user,
                                  struct chain **ret, tenrec_error *err);

#endif
