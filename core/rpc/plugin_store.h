/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_store.h - stores that are plugins, as the group's part sees stores: here
 * the two meet, which do not know each other. */
#ifndef TENREC_RPC_PLUGIN_STORE_H
#define TENREC_RPC_PLUGIN_STORE_H

#include "group/store.h"

struct stores;

/* A store_open_fn: `arg` is a struct stores, borrowed during the call. */
store_open_fn plugin_store_open;

#endif
