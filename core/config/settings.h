/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - the table behind `worker:`; for config only. */
#ifndef TENREC_CONFIG_SETTINGS_H
#define TENREC_CONFIG_SETTINGS_H

#include "config/options.h"

/* Described like a plugin's options, in a struct config_settings. */
extern const struct tenrec_plugin settings_table;
#define SETTINGS_DEVICE_MAPS "device_maps" /* the key that no table can describe */
#define SETTINGS_DEVICE_MAPS_HELP                                                                  \
    "For each callee, which of its devices gets the tensors of which of ours: {worker1: "          \
    "{cuda:0: cuda:1}}."

struct option_source settings_source(const struct tenrec_config *config);

/* Where the value in force of `worker.<key>` stands. */
struct place settings_place(const struct tenrec_config *config, const char *key);

#endif
