/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - an option table and the sources of its values; for config only. */
#ifndef TENREC_CONFIG_OPTIONS_H
#define TENREC_CONFIG_OPTIONS_H

#include "core/base/memory.h"
#include "core/config/config.h"
#include "core/config/environment.h"

#include <stddef.h>

/* The sources of the values of one table. */
struct option_source {
    const struct node *map;        /* from file and code; NULL: empty */
    const struct environment *env; /* NULL: no variables */
    enum config_section section;   /* of the entry */
    const char *entry;             /* its name; NULL for a top-level map */
    const char *top;               /* the name of that: "worker", "security.mtls" */
    const char *item;              /* of a list of maps: its name in errors; else NULL */
    bool innermost;                /* the target of the short variables */
};

/* Callers get `opts`; the arena has the texts in it. */
struct options_made {
    struct arena arena;
    _Alignas(max_align_t) char opts[];
};

/* Refuses keys of the map that the table lacks; `also` (may be NULL) is one more
 * valid key. errors: ECONFIG */
tenrec_status options_check_keys(const struct tenrec_plugin *desc, const struct option_source *src,
                                 const char *also, tenrec_error *err);

/* The effective value: from code, else the variable, else the file, else the default;
 * without the words that "^a,b" in a variable excludes.
 *
 * ret      owned by the caller; NULL without any value
 */
tenrec_status options_resolve(const struct tenrec_option *opt, const struct option_source *src,
                              struct node **ret, tenrec_error *err);

/* Resolves and reads every option of the table into `opts`; an option without a value
 * stays unchanged. */
tenrec_status options_fill(const struct tenrec_plugin *desc, const struct option_source *src,
                           struct arena *arena, void *opts, tenrec_error *err);

/* The position of the effective value of a key of a top-level map. */
struct position options_key_where(const struct option_source *src, const char *key);

struct option_source options_source(const struct config_layer *layer);

/* Lists of maps, each with the keys of one table. */

/* The table of a record as a plugin's table, for the functions of options.h. */
struct tenrec_plugin record_table(const struct tenrec_option_record *record);

/* Reads the list of maps at `node` as value_read does; `ret` is the field of the options
 * struct. */
tenrec_status record_read_all(const struct tenrec_option *opt, const struct node *node,
                              const char *context, struct arena *arena,
                              struct tenrec_option_records *ret, tenrec_error *err);

#endif
