/* SPDX-License-Identifier: Apache-2.0 */
/* security_settings.h - the values of `security:`. The room `security` makes its struct of them,
 * with the secret in hand. */
#ifndef TENREC_CONFIG_SECURITY_SETTINGS_H
#define TENREC_CONFIG_SECURITY_SETTINGS_H

#include "core/config/options.h"

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

#endif
