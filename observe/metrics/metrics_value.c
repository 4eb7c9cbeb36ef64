/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_value.c - the durations of a worker's calls as a value (tenrec/observe.h). */
#include "core/base/clock.h"
#include "core/base/memory.h"
#include "observe/metrics/metrics.h"
#include "observe/metrics/series.h"
#include "rpc/call/calls.h"
#include "rpc/call/observe.h"
#include "rpc/future/worker.h"

#include <stdlib.h>
#include <string.h>

struct rows {
    struct arena arena;
    struct tenrec_value *row;
    size_t n, room;
};

enum { FIELDS = 7 };

static bool rows_add(struct rows *all, const struct series *s, const struct durations *d)
{
    struct tenrec_value *bucket = arena_new(&all->arena, DURATION_BUCKETS, sizeof *bucket);
    struct tenrec_entry *field = arena_new(&all->arena, FIELDS, sizeof *field);
    struct tenrec_value *grown = memory_grow(all->row, all->n, &all->room, sizeof *grown);

    if (grown)
        all->row = grown;
    if (!bucket || !field || !grown)
        return false;
    for (int i = 0; i < DURATION_BUCKETS; i++)
        bucket[i] = tenrec_value_int((int64_t)d->bucket[i]);
    field[0] =
        (struct tenrec_entry){ "side",
                               tenrec_value_text(s->side == SERIES_CLIENT ? "client" : "server") };
    field[1] = (struct tenrec_entry){ "function", tenrec_value_text(s->method) };
    field[2] = (struct tenrec_entry){ "worker", tenrec_value_text(s->peer) };
    field[3] = (struct tenrec_entry){
        "error", tenrec_value_text(s->status == TENREC_OK ? "" : tenrec_status_name(s->status))
    };
    field[4] = (struct tenrec_entry){ "count", tenrec_value_int((int64_t)d->n) };
    field[5] = (struct tenrec_entry){ "sum_ns", tenrec_value_int((int64_t)d->sum_ns) };
    field[6] = (struct tenrec_entry){ "buckets", tenrec_value_array(bucket, DURATION_BUCKETS) };
    all->row[all->n++] = tenrec_value_map(field, FIELDS);
    return true;
}

static bool rows_fill(struct rows *all, const char *worker)
{
    const struct series *s;
    struct durations d;

    for (uint32_t i = 1; (s = series_get(i)); i++) {
        if (strcmp(s->worker, worker) != 0)
            continue;
        durations_sum(i, &d);
        if (d.n && !rows_add(all, s, &d))
            return false;
    }
    return true;
}

tenrec_status metrics_value(struct tenrec_worker *w, value_fn *fn, void *arg, tenrec_error *err)
{
    struct rows all = { .n = 0 };
    tenrec_status st = rows_fill(&all, w->self.name) ? TENREC_OK : memory_fail(err);

    if (st == TENREC_OK) {
        struct tenrec_entry field[] = {
            { "now_ns", tenrec_value_int((int64_t)clock_now_ns()) },
            { "on", tenrec_value_bool(observe_has(w, OBSERVER_DURATIONS)) },
            { "dropped", tenrec_value_int((int64_t)series_dropped()) },
            { "calls", tenrec_value_array(all.row, all.n) },
        };
        const struct tenrec_value v = tenrec_value_map(field, sizeof field / sizeof field[0]);
        st = fn(arg, &v, err);
    }
    arena_finish(&all.arena);
    free(all.row);
    return st;
}

static tenrec_status metrics_answer(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    (void)arg;
    return metrics_value(tenrec_call_worker(call), function_return, call, err);
}

tenrec_status metrics_serve(struct functions *f, tenrec_error *err)
{
    return functions_add(f, METRICS_FUNCTION, metrics_answer, NULL, TENREC_INLINE, err);
}
