/* SPDX-License-Identifier: Apache-2.0 */
/* view.h - two samples as the table of workers. */
#ifndef TENREC_TOOLS_TOP_VIEW_H
#define TENREC_TOOLS_TOP_VIEW_H

#include <stdint.h>

#include "tool.h"
#include "top/rate.h"
#include "top/sampler.h"
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

/* Samples on stdout, as tables or JSON. */

struct print_options {
    const char *sort; /* key of a column */
    int samples;      /* 0: without end */
    bool as_json;
};

/* Prints each sample after one interval. Returns the exit status. */
int print_samples(const struct tool *self, struct sampler *s, const struct print_options *o);

#endif
