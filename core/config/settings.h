/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - the tables behind `worker:`, `security:` and `observe:`, and the values of the last
 * two. config.h has those of `worker:`. */
#ifndef TENREC_CONFIG_SETTINGS_H
#define TENREC_CONFIG_SETTINGS_H

#include "core/config/options.h"

/* The table behind `worker:`; for config only. */

/* A table like that of a plugin's options, for struct config_settings. */
extern const struct tenrec_plugin settings_table;
#define SETTINGS_DEVICE_MAPS "device_maps" /* a key that no table can describe */
#define SETTINGS_DEVICE_MAPS_HELP                                                                  \
    "For each callee, its device for the tensors of each device here: {worker1: "                  \
    "{cuda:0: cuda:1}}."

struct option_source settings_source(const struct tenrec_config *config);

/* The position of the effective value of `worker.<key>`. */
struct position settings_where(const struct tenrec_config *config, const char *key);

/* The values of `security:`. The room `proof` makes its struct of them, with the secret in hand. */

/* A rule of `allow:`; the first that matches decides. */
struct config_rule {
    const char *function;           /* a name, or a pattern with '*' */
    struct tenrec_option_list from; /* names of workers, "any_member" */
};

/* Certificates of `mtls:`. "": not written. */
struct config_mtls {
    const char *ca, *cert, *key; /* files */
    uint64_t refresh_ms;         /* TENREC_FOREVER: never */
    struct tenrec_option_list names;
};

/* Owns all texts and arrays in it. */
struct config_security {
    const char *mode; /* "none", "secret", "tls", "mtls"; NULL: not written */
    struct position mode_where;
    const char *secret_file; /* "": none */
    struct position secret_file_where;
    const char *store_plain;            /* "same_user", "loopback", "all", "none" */
    const char *plain_peers;            /* "none", "same_user", "all" */
    const char *kernel_tls;             /* "auto", "off" */
    struct tenrec_option_records allow; /* struct config_rule */
    struct config_mtls mtls;
};

/* errors: ECONFIG with the position, ENOMEM */
tenrec_status config_security_make(const struct tenrec_config *config, struct config_security **ret,
                                   tenrec_error *err);
void config_security_drop(struct config_security *security); /* NULL is fine */

/* The tables behind it, and their sources; for config and `tenrec info`. */
#define SECURITY_MTLS_KEY "mtls"
extern const struct tenrec_plugin security_table;      /* for struct config_security */
extern const struct tenrec_plugin security_mtls_table; /* for struct config_mtls */
struct option_source security_source(const struct tenrec_config *config);
struct option_source security_mtls_source(const struct tenrec_config *config);

/* The values of `observe:`. */

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
