/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - the table behind `worker:`; for config only. */
#ifndef TENREC_CONFIG_SETTINGS_H
#define TENREC_CONFIG_SETTINGS_H

#include "core/config/options.h"

/* A table like that of a plugin's options, for struct config_settings. */
extern const struct tenrec_plugin settings_table;
#define SETTINGS_DEVICE_MAPS "device_maps" /* a key that no table can describe */
#define SETTINGS_DEVICE_MAPS_HELP                                                                  \
    "For each callee, its device for the tensors of each device here: {worker1: "                  \
    "{cuda:0: cuda:1}}."

struct option_source settings_source(const struct tenrec_config *config);

/* The position of the effective value of `worker.<key>`. */
struct position settings_where(const struct tenrec_config *config, const char *key);

#endif
