/* SPDX-License-Identifier: Apache-2.0 */
/* observe_settings.h - the values of `observe:`. */
#ifndef TENREC_CONFIG_OBSERVE_SETTINGS_H
#define TENREC_CONFIG_OBSERVE_SETTINGS_H

#include "core/config/options.h"

/* Owns all texts in it. */
struct config_observe {
    const char *metrics; /* address of the endpoint; "": none */
    const char *metrics_observer;
    bool durations;
    const char *traces; /* address of the collector; "": none */
    const char *traces_observer;
    const char *traces_service;
    double traces_ratio;
    bool recorder;
    bool stacks;
    const char *dump_dir; /* "": none */
};

/* errors: ECONFIG with the position, ENOMEM */
tenrec_status config_observe_make(const struct tenrec_config *config, struct config_observe **ret,
                                  tenrec_error *err);
/* The defaults alone. errors: ENOMEM */
tenrec_status config_observe_default(struct config_observe **ret, tenrec_error *err);

void config_observe_drop(struct config_observe *observe); /* NULL is fine */

/* The table behind it, and its source; for config and `tenrec info`. */
extern const struct tenrec_plugin observe_table;
struct option_source observe_source(const struct tenrec_config *config);

#endif
