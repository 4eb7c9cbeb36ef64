/* SPDX-License-Identifier: Apache-2.0 */
/* worker_config.h - what a worker takes from the configuration. */
#ifndef TENREC_WORKER_WORKER_CONFIG_H
#define TENREC_WORKER_WORKER_CONFIG_H

#include "backend/chain.h"

#include <tenrec/config.h>

struct config_settings;
struct setup;
struct stores;

/* Reads, loads and checks all of it; opens nothing. `config` is borrowed
 * during the call, NULL loads the default one. */
tenrec_status setup_make(const struct tenrec_config *config, struct setup **ret, tenrec_error *err);
void setup_drop(struct setup *s);

/* What the configuration's own part cannot check. errors: ECONFIG */
tenrec_status setup_check(const struct config_settings *s, tenrec_error *err);

/* All of `stores:`, and the plugin that init_method needs. errors: as stores_load */
tenrec_status setup_check_stores(const struct tenrec_config *config,
                                 const struct config_settings *s, tenrec_error *err);

const struct config_settings *setup_settings(const struct setup *s);
struct stores *setup_stores(const struct setup *s); /* borrowed until setup_drop */
int64_t setup_timeout_ms(const struct setup *s);

tenrec_status setup_chain(const struct setup *s, const struct chain_identity *id, struct loop *loop,
                          const struct chain_user *user, struct chain **ret, tenrec_error *err);

#endif
