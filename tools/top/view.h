/* SPDX-License-Identifier: Apache-2.0 */
/* view.h - two samples as the table of workers. */
#ifndef TENREC_TOOLS_TOP_VIEW_H
#define TENREC_TOOLS_TOP_VIEW_H

#include "outside.h"
#include "tool.h"
#include "top/sample.h"
#include "top/table.h"

#include <stdint.h>

/* sampler.c: reads a group again and again, from outside: its members in the store, then each
 * worker by calls that end at a deadline. One thread at a time. */

struct sampler {
    struct outside outside; /* the options; its worker is replaced when the members change */
    uint64_t interval_ms;
    bool store_away;    /* in the sample that is being taken */
    struct sample last; /* owns its list without readings: names, states and times */
};

/* Attaches for the first time. Call sampler_finish also after a failure. */
tenrec_status sampler_start(struct sampler *s, tenrec_error *err);

/* Takes one sample, which is finished within the interval. A store that is away is an error in the
 * sample. Returns ENOMEM only. */
tenrec_status sampler_take(struct sampler *s, struct sample *ret, tenrec_error *err);

void sampler_finish(struct sampler *s);

/* A sample and its rates as one JSON object (docs/observe.md). */

/* Prints one line on stdout. `before` may be NULL. */
void sample_json_print(const struct sample *before, const struct sample *now);

enum view_column {
    VIEW_NAME,
    VIEW_ID,
    VIEW_STATE,
    VIEW_MADE,
    VIEW_SERVED,
    VIEW_CLIENT_P50,
    VIEW_CLIENT_P99,
    VIEW_SERVER_P50,
    VIEW_SERVER_P99,
    VIEW_ACTIVE,
    VIEW_QUEUED,
    VIEW_BUSY,
    VIEW_BLOCKED,
    VIEW_POOL,
    VIEW_SHARED,
    VIEW_MAPPED,
    VIEW_REFS,
    VIEW_FAULTS,
    VIEW_TIMEOUTS,
    VIEW_LATE,
    VIEW_WEIGHTS,
    VIEW_WAYS,
    VIEW_WORKER_COLUMNS
};

struct view {
    struct table table;
    struct rate_worker *worker;      /* owns; of each row */
    char (*text)[3][TABLE_TEXT_MAX]; /* owns; of each row */
};

/* The columns alone, to look up a key of them. */
extern const struct table view_workers_columns;

/* `before` may be NULL; both are borrowed until view_finish. A view without memory has no rows. */
void view_workers(const struct sample *before, const struct sample *now, struct view *ret);
/* One row for each host: the sums of its workers, and the longest of their durations. The worst
 * worker is that with the largest number in column `by`. */
void view_hosts(const struct sample *before, const struct sample *now, int by, struct view *ret);
void view_finish(struct view *v);

/* The numbers of a worker, in the cells that have one. */
void view_worker_numbers(const struct rate_worker *rate, struct table_cell cell[]);

/* The calls of all workers per second. */
double view_total(const struct sample *before, const struct sample *now);

/* Samples on stdout, as tables or JSON. */

struct print_options {
    const char *sort; /* key of a column */
    bool by_host;
    int samples; /* 0: without end */
    bool as_json;
};

/* Prints each sample after one interval. Returns the exit status. */
int print_samples(const struct tool *self, struct sampler *s, const struct print_options *o);

#endif
