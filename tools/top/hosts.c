/* SPDX-License-Identifier: Apache-2.0 */
/* hosts.c - the table of workers, summed by host. */
#include "top/view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names of workers and ids make no sense in a sum: these columns have the number of workers, their
 * states, and the worst worker in their place. */
static const struct table_column *host_columns(void)
{
    static struct table_column column[VIEW_WORKER_COLUMNS];

    memcpy(column, view_workers_columns.column, sizeof column);
    column[VIEW_NAME].title = "HOST";
    column[VIEW_ID].title = "N";
    column[VIEW_WAYS].title = "WORST";
    column[VIEW_WAYS].priority = column[VIEW_STATE].priority;
    return column;
}

static int by_host(const void *a, const void *b)
{
    const struct rate_worker *x = a, *y = b;

    return strcmp(x->worker->host, y->worker->host);
}

/* A load is added, of durations the longest is kept. Unknown numbers count as none. */
static double number_join(enum table_kind kind, double sum, double one)
{
    if (isnan(sum) || isnan(one))
        return isnan(sum) ? one : sum;
    if (kind == TABLE_SECONDS)
        return one > sum ? one : sum;
    return sum + one;
}

/* "30 up, 1 lost" */
static void print_states(const struct rate_worker *first, size_t n, char to[TABLE_TEXT_MAX])
{
    size_t at = 0;

    *to = '\0';
    for (enum sample_state s = SAMPLE_UP; s <= SAMPLE_LOST; s++) {
        size_t there = 0;

        for (size_t i = 0; i < n; i++)
            there += first[i].worker->state == s;
        if (there > 0)
            at += (size_t)snprintf(to + at, TABLE_TEXT_MAX - at, "%s%zu %s", at ? ", " : "", there,
                                   sample_state_name(s));
    }
}

/* The row of the workers of one host. `by`: of the worst worker. */
static void host_row(const struct rate_worker *first, size_t n, int by, struct table_row *row,
                     char text[3][TABLE_TEXT_MAX])
{
    double worst = NAN;

    for (int c = 0; c < VIEW_WORKER_COLUMNS; c++)
        row->cell[c].number = NAN;
    for (size_t i = 0; i < n; i++) {
        struct table_cell cell[VIEW_WORKER_COLUMNS];

        view_worker_numbers(&first[i], cell);
        for (int c = 0; c < VIEW_WORKER_COLUMNS; c++)
            if (view_workers_columns.column[c].kind != TABLE_TEXT)
                row->cell[c].number = number_join(view_workers_columns.column[c].kind,
                                                  row->cell[c].number, cell[c].number);
        if (!isnan(cell[by].number) && (isnan(worst) || cell[by].number > worst)) {
            worst = cell[by].number;
            snprintf(text[1], TABLE_TEXT_MAX, "%s", first[i].worker->name);
        }
    }
    print_states(first, n, text[0]);
    row->cell[VIEW_NAME].text = *first->worker->host ? first->worker->host : "?";
    row->cell[VIEW_ID].number = (double)n;
    row->cell[VIEW_STATE].text = text[0];
    row->cell[VIEW_WAYS].text = text[1];
    row->cell[VIEW_WEIGHTS].text = text[2];
}

void view_hosts(const struct sample *before, const struct sample *now, int by, struct view *ret)
{
    struct rate_worker *w;
    size_t n = 0;

    view_workers(before, now, ret);
    ret->table.column = host_columns();
    w = ret->worker;
    if (ret->table.n == 0)
        return;
    if (view_workers_columns.column[by].kind == TABLE_TEXT || by == VIEW_ID)
        by = VIEW_CLIENT_P99;
    qsort(w, ret->table.n, sizeof *w, by_host);
    for (size_t i = 0, next; i < ret->table.n; i = next) {
        for (next = i + 1; next < ret->table.n && by_host(&w[i], &w[next]) == 0; next++)
            ;
        memset(ret->text[n], 0, sizeof ret->text[n]);
        host_row(&w[i], next - i, by, &ret->table.row[n], ret->text[n]);
        n++;
    }
    ret->table.n = n;
}
