/* SPDX-License-Identifier: Apache-2.0 */
/* entry.h - one entry of `backends:`, `stores:` or `observers:` with its plugin loaded and
 * its options made; nothing is started. */
#ifndef TENREC_TOOLS_ENTRY_H
#define TENREC_TOOLS_ENTRY_H

#include "core/config/config.h"

struct plugin;

struct entry {
    struct config_layer layer;
    struct plugin *backend;
    void *options;
};

struct entries {
    struct entry *v; /* backends, stores, then observers; each in file order */
    size_t n;        /* backends */
    size_t n_stores, n_observers;
};

static inline size_t entries_count(const struct entries *e)
{
    return e->n + e->n_stores + e->n_observers;
}

/* Tries entries_open for each entry in a process of its own. errors: EPLUGIN for a
 * plugin that crashes, hangs or exits, with the position; entries_open reports any other
 * failure */
tenrec_status entries_try(const struct tenrec_config *config, tenrec_error *err);

/* Loads the plugin of every entry, fills and checks its options as a worker
 * would, and follows `backend:` to the wire.
 *
 * config   borrowed until entries_close
 * errors   ECONFIG, EPLUGIN, EABI, all with the position
 */
tenrec_status entries_open(const struct tenrec_config *config, struct entries *ret,
                           tenrec_error *err);
void entries_close(struct entries *e);

#endif
