/* setup.h - what a worker takes from the configuration. */
#ifndef TENREC_RPC_SETUP_H
#define TENREC_RPC_SETUP_H

#include "backend/chain.h"

#include <tenrec/config.h>

struct config_settings;
struct setup;

/* Reads, loads and checks all of it; opens nothing. `config` is borrowed
 * during the call, NULL loads the default one. */
tenrec_status setup_make(const struct tenrec_config *config, struct setup **ret, tenrec_error *err);
void setup_drop(struct setup *s);

/* What the configuration's own part cannot check. errors: ECONFIG */
tenrec_status setup_check(const struct config_settings *s, tenrec_error *err);

const struct config_settings *setup_settings(const struct setup *s);
int64_t setup_timeout_ms(const struct setup *s);

tenrec_status setup_chain(const struct setup *s, const struct chain_identity *id, struct loop *loop,
                          const struct chain_user *user, struct chain **ret, tenrec_error *err);

#endif
