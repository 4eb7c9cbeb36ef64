/* SPDX-License-Identifier: Apache-2.0 */
/* chain_config.h - the backends of a configuration, loaded and with their options filled:
 * the layers of a chain. Starts nothing. */
#ifndef TENREC_BACKEND_CHAIN_CONFIG_H
#define TENREC_BACKEND_CHAIN_CONFIG_H

#include "core/backend/chain.h"

struct chain_config;
struct tenrec_config;

/* The chain that `backend:` begins. The configuration may be changed or dropped
 * afterwards.
 *
 * errors   with the position: ECONFIG (also from a plugin's construct), EPLUGIN,
 *          EABI, EEXIST, ENOMEM
 */
tenrec_status chain_config_open(const struct tenrec_config *config, struct chain_config **ret,
                                tenrec_error *err);

/* Outermost first; borrowed until chain_config_close. For chain_open. */
const struct chain_layer *chain_config_layers(const struct chain_config *s, size_t *ret_n);

/* After the chain is closed. NULL is fine. */
void chain_config_close(struct chain_config *s);

#endif
