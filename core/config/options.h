/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - an option table and what was written for it; for config only. */
#ifndef TENREC_CONFIG_OPTIONS_H
#define TENREC_CONFIG_OPTIONS_H

#include "base/arena.h"
#include "config/config.h"
#include "config/environment.h"

/* Where the values of one table come from. */
struct option_source {
    const struct node *map;        /* what file and code wrote; NULL: nothing */
    const struct environment *env; /* NULL: no variables */
    enum config_section section;   /* of the entry */
    const char *entry;             /* its name; NULL for `worker` */
    const char *item;              /* of a list of maps: how errors name it; else NULL */
    bool innermost;                /* the short variables are meant for it */
};

/* Is the table sound: types, offsets, sizes? errors: EPLUGIN */
tenrec_status options_check_table(const struct tenrec_plugin *desc, tenrec_error *err);

/* Refuses keys of the map that the table lacks; `also` (may be NULL) is a
 * further key that is allowed. errors: ECONFIG */
tenrec_status options_check_keys(const struct tenrec_plugin *desc, const struct option_source *src,
                                 const char *also, tenrec_error *err);

/* The value in force: what code said, else the variable, else the file, else
 * the default; with what "^a,b" in a variable excludes left out.
 *
 * ret      the caller owns it; NULL when nobody says anything
 */
tenrec_status options_resolve(const struct tenrec_option *opt, const struct option_source *src,
                              struct node **ret, tenrec_error *err);

/* Resolves and reads every option of the table into `opts`; one that nobody
 * says anything about stays as it is. */
tenrec_status options_fill(const struct tenrec_plugin *desc, const struct option_source *src,
                           struct arena *arena, void *opts, tenrec_error *err);

/* "backend 'flaky': option 'delay'" or "worker.name", as errors begin. */
void options_what(char *buf, size_t size, const struct option_source *src, const char *key);

struct option_source options_source(const struct config_layer *layer);

#endif
