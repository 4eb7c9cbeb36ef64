/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_store.h - adapts the stores of plugins to the interface of stores (group/store), which do
 * not know each other. */
#ifndef TENREC_STORE_PLUGIN_STORE_H
#define TENREC_STORE_PLUGIN_STORE_H

#include "group/store/store.h"

struct stores;

/* `arg` is a struct stores, borrowed during the call. */
store_open_fn plugin_store_open;

/* With the plugins that TENREC_CONFIG and the environment name; `arg` is NULL. */
store_open_fn plugin_store_open_configured;

#endif
