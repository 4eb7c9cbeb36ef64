/* SPDX-License-Identifier: Apache-2.0 */
/* view.h - two samples as the tables of workers and of functions. */
#ifndef TENREC_TOOLS_TOP_VIEW_H
#define TENREC_TOOLS_TOP_VIEW_H

#include "top/rate.h"
#include "top/table.h"

struct view {
    struct table table;
    struct rate_worker *worker;      /* owns; of the table of workers */
    struct rate_function *function;  /* owns; of that of functions */
    char (*text)[3][TABLE_TEXT_MAX]; /* owns; of each row */
};

/* The columns alone, to look up a key of them. */
extern const struct table view_workers_columns, view_functions_columns;

/* `before` may be NULL; both are borrowed until view_finish. A view without memory has no rows. */
void view_workers(const struct sample *before, const struct sample *now, struct view *ret);
void view_functions(const struct sample *before, const struct sample *now, const char *worker,
                    struct view *ret);
void view_finish(struct view *v);

/* The calls of all workers per second. */
double view_total(const struct sample *before, const struct sample *now);

#endif
