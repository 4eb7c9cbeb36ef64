/* SPDX-License-Identifier: Apache-2.0 */
#include "top/view.h"

#include "core/base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct table_column worker_column[VIEW_WORKER_COLUMNS] = {
    [VIEW_NAME] = { "name", "WORKER", 10, 9, TABLE_TEXT },
    [VIEW_ID] = { "id", "ID", 4, 6, TABLE_COUNT },
    [VIEW_STATE] = { "state", "STATE", 8, 8, TABLE_TEXT },
    [VIEW_MADE] = { "made", "MADE/s", 7, 8, TABLE_RATE },
    [VIEW_SERVED] = { "served", "SERV/s", 7, 8, TABLE_RATE },
    [VIEW_CLIENT_P50] = { "p50", "C.P50", 6, 7, TABLE_SECONDS },
    [VIEW_CLIENT_P99] = { "p99", "C.P99", 6, 7, TABLE_SECONDS },
    [VIEW_SERVER_P50] = { "server_p50", "S.P50", 6, 4, TABLE_SECONDS },
    [VIEW_SERVER_P99] = { "server_p99", "S.P99", 6, 5, TABLE_SECONDS },
    [VIEW_ACTIVE] = { "active", "ACTIVE", 6, 5, TABLE_COUNT },
    [VIEW_QUEUED] = { "queued", "QUEUE", 6, 7, TABLE_COUNT },
    [VIEW_BUSY] = { "busy", "BUSY", 5, 5, TABLE_COUNT },
    [VIEW_BLOCKED] = { "blocked", "BLOCK", 6, 3, TABLE_COUNT },
    [VIEW_POOL] = { "pool", "POOL", 6, 6, TABLE_BYTES },
    [VIEW_SHARED] = { "shared", "SHARED", 6, 3, TABLE_BYTES },
    [VIEW_MAPPED] = { "mapped", "MAPPED", 6, 2, TABLE_BYTES },
    [VIEW_REFS] = { "refs", "REFS", 5, 3, TABLE_COUNT },
    [VIEW_FAULTS] = { "faults", "FAULTS", 6, 4, TABLE_COUNT },
    [VIEW_TIMEOUTS] = { "timeouts", "TIMEO", 6, 4, TABLE_COUNT },
    [VIEW_LATE] = { "late", "LATE", 5, 2, TABLE_COUNT },
    [VIEW_WEIGHTS] = { "weights", "WEIGHTS", 8, 2, TABLE_TEXT },
    [VIEW_WAYS] = { "ways", "WAYS", 8, 1, TABLE_TEXT },
};

const struct table view_workers_columns = { worker_column, VIEW_WORKER_COLUMNS, NULL, 0 };

static void print_state(const struct sample_worker *w, uint64_t now_ns, char to[TABLE_TEXT_MAX])
{
    const unsigned long long s = (now_ns - w->since_ns) / 1000000000;

    if (w->state == SAMPLE_UP || w->since_ns > now_ns)
        snprintf(to, TABLE_TEXT_MAX, "%s", sample_state_name(w->state));
    else if (s < 600)
        snprintf(to, TABLE_TEXT_MAX, "%s %llus", sample_state_name(w->state), s);
    else
        snprintf(to, TABLE_TEXT_MAX, "%s %llum", sample_state_name(w->state), s / 60);
}

static void print_ways(const struct reading *r, char to[TABLE_TEXT_MAX])
{
    size_t at = 0;

    *to = '\0';
    for (int i = 0; i < r->n_ways; i++)
        at += (size_t)snprintf(to + at, TABLE_TEXT_MAX - at, "%s%s %d", i ? " " : "",
                               r->way[i].name, r->way[i].peers);
}

/* A version, of which no digit is left out. */
static void print_weights(const struct reading *r, char to[TABLE_TEXT_MAX])
{
    const int64_t version = r->number[READING_WEIGHTS];

    *to = '\0';
    if (version > 0)
        snprintf(to, TABLE_TEXT_MAX, "%lld", (long long)version);
}

void view_worker_numbers(const struct rate_worker *rate, struct table_cell cell[])
{
    static const struct {
        enum view_column column;
        enum reading_number number;
    } same[] = {
        { VIEW_QUEUED, READING_QUEUED },       { VIEW_BLOCKED, READING_BLOCKED },
        { VIEW_POOL, READING_POOL_BYTES },     { VIEW_SHARED, READING_SHARED_BYTES },
        { VIEW_MAPPED, READING_MAPPED_BYTES }, { VIEW_REFS, READING_FORKS },
        { VIEW_FAULTS, READING_INJECTED },     { VIEW_TIMEOUTS, READING_TIMEOUTS },
        { VIEW_LATE, READING_LATE },
    };
    const struct reading *r = &rate->worker->reading;

    for (int i = VIEW_ID + 1; i < VIEW_WORKER_COLUMNS; i++)
        cell[i].number = NAN;
    cell[VIEW_ID].number = rate->worker->id;
    cell[VIEW_MADE].number = rate->made_per_s;
    cell[VIEW_SERVED].number = rate->served_per_s;
    cell[VIEW_CLIENT_P50].number = rate->client.p50_s;
    cell[VIEW_CLIENT_P99].number = rate->client.p99_s;
    cell[VIEW_SERVER_P50].number = rate->server.p50_s;
    cell[VIEW_SERVER_P99].number = rate->server.p99_s;
    if (!r->answered)
        return;
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        cell[same[i].column].number = (double)r->number[same[i].number];
    cell[VIEW_ACTIVE].number =
        (double)r->number[READING_ACTIVE] + (double)r->number[READING_ANSWERED];
    cell[VIEW_BUSY].number = (double)(r->number[READING_THREADS] - r->number[READING_IDLE]);
}

static bool view_make(struct view *v, const struct table *columns, size_t n)
{
    v->table = *columns;
    v->table.row = calloc(n ? n : 1, sizeof *v->table.row);
    v->text = calloc(n ? n : 1, sizeof *v->text);
    v->table.n = v->table.row && v->text ? n : 0;
    return v->table.n > 0;
}

void view_workers(const struct sample *before, const struct sample *now, struct view *ret)
{
    *ret = (struct view){ .worker = calloc(now->n ? now->n : 1, sizeof *ret->worker) };
    if (!view_make(ret, &view_workers_columns, ret->worker ? now->n : 0))
        return;
    for (size_t i = 0; i < now->n; i++) {
        const struct sample_worker *w = &now->worker[i];
        struct table_row *row = &ret->table.row[i];

        rate_of_worker(before ? sample_find(before, w->name, w->id) : NULL, w, &ret->worker[i]);
        view_worker_numbers(&ret->worker[i], row->cell);
        print_state(w, now->at_ns, ret->text[i][0]);
        print_ways(&w->reading, ret->text[i][1]);
        print_weights(&w->reading, ret->text[i][2]);
        row->cell[VIEW_NAME].text = w->name;
        row->cell[VIEW_STATE].text = ret->text[i][0];
        row->cell[VIEW_WAYS].text = ret->text[i][1];
        row->cell[VIEW_WEIGHTS].text = ret->text[i][2];
    }
}

void view_finish(struct view *v)
{
    free(v->table.row);
    free(v->text);
    free(v->worker);
    *v = (struct view){ .worker = NULL };
}

double view_total(const struct sample *before, const struct sample *now)
{
    double total = 0;

    for (size_t i = 0; i < now->n; i++) {
        const struct sample_worker *w = &now->worker[i];
        struct rate_worker rate;

        rate_of_worker(before ? sample_find(before, w->name, w->id) : NULL, w, &rate);
        total += isnan(rate.made_per_s) ? 0 : rate.made_per_s;
    }
    return total;
}
