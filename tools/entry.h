/* SPDX-License-Identifier: Apache-2.0 */
/* entry.h - one entry of `backends:`, `stores:` or `observers:` with its plugin loaded and
 * its options made; nothing is started. */
#ifndef TENREC_TOOLS_ENTRY_H
#define TENREC_TOOLS_ENTRY_H

#include "mistakes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

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

/* Tries entries_open for each entry in a process of its own.
 *
 * m        receives each failure; NULL: the first one is returned
 * errors   EPLUGIN for a plugin that crashes, hangs or exits, with the position; entries_open
 *          reports any other failure */
tenrec_status entries_try(const struct tenrec_config *config, const struct mistakes *m,
                          tenrec_error *err);

/* Loads the plugin of every entry, fills and checks its options as a worker
 * would, and follows `backend:` to the wire.
 *
 * config   borrowed until entries_close; with `m` it loses what is wrong
 * m        receives each failure, and an entry that cannot be used has no plugin; NULL: the first
 *          failure is returned
 * errors   ECONFIG, EPLUGIN, EABI, all with the position
 */
tenrec_status entries_open(struct tenrec_config *config, const struct mistakes *m,
                           struct entries *ret, tenrec_error *err);
void entries_close(struct entries *e);

/* trial.c: calls a function that may crash or hang, in a process of its own. */

/* `to` receives the answer for the caller. */
typedef void trial_fn(void *arg, FILE *to);

/* What a function wrote; free(text). */
struct trial_output {
    char *text; /* ends with a '\0' that `len` does not count */
    size_t len;
};

/* Calls fn(arg) in a child, whose stdout and stderr are dropped. Returns true if fn returned within
 * ten seconds; else `text` says how the call ended: "is killed by signal 11 (Segmentation fault)",
 * "does not return within 10 s".
 *
 * ret   NULL: what fn writes is dropped, as is all beyond TRIAL_MAX; its text is NULL without
 *       memory, and where no child could be made */
bool trial_run(trial_fn *fn, void *arg, struct trial_output *ret, char *text, size_t size);

enum { TRIAL_MAX = 1 << 20 };

#endif
