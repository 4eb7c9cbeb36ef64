/* SPDX-License-Identifier: Apache-2.0 */
#include "future/enter.h"
#include "peer/worker.h"
#include "rref/rref_context.h"

struct rref_counts rrefs_count(struct tenrec_worker *w)
{
    struct rref_counts n = { .num_forks = 0 };

    if (worker_enter(w, NULL) == TENREC_OK) {
        n = rref_context_count(w->rrefs);
        worker_leave(w);
    }
    return n;
}

void rrefs_debug_info(struct tenrec_worker *w, tenrec_sink_fn *sink, void *arg)
{
    const struct rref_counts c = rrefs_count(w);
    const struct {
        const char *key;
        size_t n;
    } list[] = {
        { "rref.num_owner_rrefs", c.num_owner_rrefs },
        { "rref.num_forks", c.num_forks },
        { "rref.num_pending_users", c.num_pending_users },
        { "rref.num_confirmed_users", c.num_confirmed_users },
        { "rref.num_pending_children", c.num_pending_children },
        { "rref.num_pending_owners", c.num_pending_owners },
        { "rref.num_pending_futures", c.num_pending_futures },
        { "rref.num_tombstones", c.num_tombstones },
    };
    char text[24];

    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        snprintf(text, sizeof text, "%zu", list[i].n);
        sink(arg, list[i].key, text);
    }
}
