/* SPDX-License-Identifier: Apache-2.0 */
/* view.h - two samples as the table of workers. */
#ifndef TENREC_TOOLS_TOP_VIEW_H
#define TENREC_TOOLS_TOP_VIEW_H

#include "top/rate.h"
#include "top/table.h"

struct view {
    struct table table;
    struct rate_worker *worker;      /* owns; of each row */
    char (*text)[2][TABLE_TEXT_MAX]; /* owns; of each row */
};

/* The columns alone, to look up a key of them. */
extern const struct table view_workers_columns;

/* `before` may be NULL; both are borrowed until view_finish. A view without memory has no rows. */
void view_workers(const struct sample *before, const struct sample *now, struct view *ret);
void view_finish(struct view *v);

/* The calls of all workers per second. */
double view_total(const struct sample *before, const struct sample *now);

#endif
