/* SPDX-License-Identifier: Apache-2.0 */
/* chain.h - the options of a chain: the backends of a configuration and the settings of
 * `worker:`, and what the folders above core add. */
#ifndef TENREC_CHAIN_CHAIN_H
#define TENREC_CHAIN_CHAIN_H

#include "core/backend/backend.h"

#include <tenrec/chain.h>

struct config_settings;

/* A part of the configuration that core does not know: `security:`, `stores:`. */
struct chain_addition {
    /* Reads and checks it. *ret may stay NULL. errors: ECONFIG with the position, and others */
    tenrec_status (*make)(const struct tenrec_config *config, const struct config_settings *s,
                          void **ret, tenrec_error *err);
    void (*drop)(void *made);                             /* NULL is passed, too */
    const struct chain_guard *(*guard)(const void *made); /* NULL: it guards no chain */
};

struct tenrec_chain_options {
    struct config_settings *settings;       /* owns */
    struct chain_config *layers;            /* owns */
    const struct chain_guard *guard;        /* of an addition; NULL: none guards */
    const struct chain_addition *const *of; /* NULL ends the list */
    void *added[];                          /* owns; in the order of `of` */
};

/* tenrec_chain_options_new with these additions, a list of the process that NULL
 * ends. */
tenrec_status chain_options_make(const struct tenrec_config *config,
                                 const struct chain_addition *const *additions,
                                 struct tenrec_chain_options **ret, tenrec_error *err);

/* What `addition` made; NULL if it is not in the list. */
void *chain_options_added(const struct tenrec_chain_options *o,
                          const struct chain_addition *addition);

#endif
