/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/metrics/metrics.h"

#include "core/base/memory.h"
#include "observe/metrics/series.h"
#include "observe/profiler/profiler.h"
#include "observe/recorder/recorder.h"
#include "rpc/future/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct snapshot {
    struct tenrec_snapshot view; /* first */
    struct arena texts;
    struct tenrec_reading *reading;
    size_t room;
    struct tenrec_series *series;
    size_t series_room;
    const char *worker; /* of the worker that is read now */
    bool failed;        /* no memory */
};

/* Texts among the values are left out. */
static void on_pair(void *arg, const char *key, const char *text)
{
    struct snapshot *s = arg;
    struct tenrec_reading *grown;
    const char *copy;
    char *end;
    uint64_t value;

    if (*text < '0' || *text > '9')
        return;
    errno = 0;
    value = strtoull(text, &end, 10);
    if (*end || errno)
        return;
    grown = memory_grow(s->reading, s->view.n_readings, &s->room, sizeof *grown);
    copy = arena_text(&s->texts, key);
    if (grown)
        s->reading = grown;
    if (grown && copy)
        s->reading[s->view.n_readings++] = (struct tenrec_reading){ s->worker, copy, value };
    else
        s->failed = true;
}

/* The lock is held meanwhile, so that no worker ends; nothing that reads waits for a peer. */
static void snapshot_read_workers(struct snapshot *s)
{
    for (struct recorder *r = recorders_lock(); r; r = r->next) {
        s->worker = arena_text(&s->texts, r->worker->self.name);
        if (s->worker)
            debug_info_list(r->worker, on_pair, s);
        else
            s->failed = true;
    }
    recorders_unlock();
}

static void snapshot_add_series(struct snapshot *s, const struct series *of,
                                const struct durations *d)
{
    struct tenrec_series *to =
        memory_grow(s->series, s->view.n_series, &s->series_room, sizeof *to);

    if (!to) {
        s->failed = true;
        return;
    }
    s->series = to;
    to += s->view.n_series++;
    *to = (struct tenrec_series){
        .worker = of->worker, /* a series and its texts live as long as the process */
        .function = of->method,
        .peer = of->side == SERIES_CLIENT ? of->peer : NULL,
        .n = d->n,
        .sum_ns = d->sum_ns,
        .kind = of->side == SERIES_CLIENT ? TENREC_SPAN_CLIENT : TENREC_SPAN_SERVER,
        .status = of->status,
    };
    memcpy(to->bucket, d->bucket, sizeof to->bucket);
}

static void snapshot_read_series(struct snapshot *s)
{
    const struct series *of;
    struct durations d;

    for (uint32_t i = 1; (of = series_get(i)); i++) {
        durations_sum(i, &d);
        if (d.n > 0)
            snapshot_add_series(s, of, &d);
    }
}

tenrec_status snapshot_make(struct tenrec_snapshot **ret, tenrec_error *err)
{
    struct snapshot *s = memory_new(1, sizeof *s);

    if (!s)
        return memory_fail(err);
    snapshot_read_workers(s);
    snapshot_read_series(s);
    s->view.dropped = series_dropped();
    s->view.readings = s->reading;
    s->view.series = s->series;
    if (s->failed) {
        snapshot_drop(&s->view);
        return memory_fail(err);
    }
    *ret = &s->view;
    return TENREC_OK;
}

void snapshot_drop(struct tenrec_snapshot *view)
{
    struct snapshot *s = (struct snapshot *)(void *)view;

    if (!s)
        return;
    arena_finish(&s->texts);
    free(s->reading);
    free(s->series);
    free(s);
}
