/* SPDX-License-Identifier: Apache-2.0 */
/* environment.h - the TENREC_ variables of the process at the time the
 * configuration was made. */
#ifndef TENREC_CONFIG_ENVIRONMENT_H
#define TENREC_CONFIG_ENVIRONMENT_H

#include "core/config/config.h"
#include "core/config/node.h"

#define ENVIRONMENT_NAME_MAX 192

struct variable {
    char *name;
    char *value;
};

struct environment {
    struct variable *v;
    size_t n;
};

/* Copies the variables that begin with TENREC_; an empty variable counts as not set.
 * errors: ENOMEM */
tenrec_status environment_read(struct environment *env, tenrec_error *err);

/* Safe on zeroed memory. */
void environment_finish(struct environment *env);

/* The variable, borrowed; NULL when it is not set. */
const struct variable *environment_get(const struct environment *env, const char *name);

/* "TENREC_BACKENDS__<entry>__<option>", "TENREC_STORES__..." by the section, and
 * "TENREC_<top>__<key>" for a key of a top-level map: "worker", "security.mtls". */
void environment_option_name(char buf[ENVIRONMENT_NAME_MAX], enum config_section section,
                             const char *entry, const char *option);
void environment_key_name(char buf[ENVIRONMENT_NAME_MAX], const char *top, const char *key);

/* The short name for this option of the innermost backend
 * ("TENREC_TRANSPORTS"), or NULL. Index for environment_short. */
const char *environment_short_name(const char *option);
#define ENVIRONMENT_N_SHORT 4
const char *environment_short(size_t i, const char **ret_option);

/* Warns that nothing reads this variable: once per name and process. */
TENREC_PRINTF(2, 3)
void environment_warn(const char *name, const char *fmt, ...);

/* The position of a value from this variable. */
struct position environment_where(const struct variable *variable);

#endif
