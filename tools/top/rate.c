/* SPDX-License-Identifier: Apache-2.0 */
#include "top/sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The calls by which a sample reads a worker; the worker counts them as served. */
enum { OWN_CALLS = 2 };

/* A worker that started again counts from zero. */
static double rate_per_s(int64_t before, int64_t now, double s)
{
    return s > 0 && now >= before ? (double)(now - before) / s : NAN;
}

static const struct reading_series *series_same(const struct reading *in,
                                                const struct reading_series *as, size_t hint)
{
    for (size_t i = 0; i < in->n_series; i++) {
        const struct reading_series *s = &in->series[(hint + i) % in->n_series];

        if (s->server == as->server && !strcmp(s->function, as->function) &&
            !strcmp(s->peer, as->peer) && !strcmp(s->error, as->error))
            return s;
    }
    return NULL;
}

/* Adds the calls of a series since `before` to `sum`. Returns their number. */
static int64_t series_add_since(const struct reading *before, const struct reading *now, size_t at,
                                int64_t sum[QUANTILE_BUCKETS])
{
    const struct reading_series *s = &now->series[at], *old = series_same(before, s, at);
    int64_t n = 0;

    for (int i = 0; i < QUANTILE_BUCKETS; i++) {
        const int64_t more = s->bucket[i] - (old ? old->bucket[i] : 0);

        if (more <= 0)
            continue;
        reading_add(&sum[i], more);
        reading_add(&n, more);
    }
    return n;
}

static double reading_seconds(const struct reading *before, const struct reading *now)
{
    return before->answered && now->answered && now->now_ns > before->now_ns
               ? (double)(now->now_ns - before->now_ns) / 1e9
               : NAN;
}

static void side_set(struct rate_side *side, const int64_t bucket[QUANTILE_BUCKETS], double per_s)
{
    *side = (struct rate_side){ per_s, quantile_of(bucket, 0.5), quantile_of(bucket, 0.99) };
}

void rate_of_worker(const struct sample_worker *before, const struct sample_worker *now,
                    struct rate_worker *ret)
{
    const struct reading none = { .n_series = 0 }, *a = before ? &before->reading : &none,
                         *b = &now->reading;
    const double s = reading_seconds(a, b);
    int64_t bucket[2][QUANTILE_BUCKETS] = { { 0 } }, calls[2] = { 0 }, served;

    *ret = (struct rate_worker){ .worker = now, .made_per_s = NAN, .served_per_s = NAN };
    for (size_t i = 0; s > 0 && i < b->n_series; i++)
        reading_add(&calls[b->series[i].server],
                    series_add_since(a, b, i, bucket[b->series[i].server]));
    side_set(&ret->client, bucket[0], s > 0 ? (double)calls[0] / s : NAN);
    side_set(&ret->server, bucket[1], s > 0 ? (double)calls[1] / s : NAN);
    if (!(s > 0))
        return;
    served = b->number[READING_SERVED] - OWN_CALLS;
    ret->made_per_s = rate_per_s(a->number[READING_MADE], b->number[READING_MADE], s);
    ret->served_per_s =
        served < a->number[READING_SERVED] && b->number[READING_SERVED] >= a->number[READING_SERVED]
            ? 0
            : rate_per_s(a->number[READING_SERVED], served, s);
}

/* ---- functions -------------------------------------------------------------------- */

/* While the workers are summed. */
struct rate_sum {
    struct rate_function f;
    int64_t bucket[2][QUANTILE_BUCKETS];
    double per_s[2];
};

struct rate_sums {
    struct rate_sum *sum;
    size_t n, room;
};

static struct rate_sum *sums_get(struct rate_sums *all, const char *name)
{
    struct rate_sum *s;

    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->sum[i].f.name, name) == 0)
            return &all->sum[i];
    if (all->n == all->room) {
        const size_t room = all->room ? 2 * all->room : 16;
        struct rate_sum *grown = realloc(all->sum, room * sizeof *grown);

        if (!grown)
            return NULL;
        all->sum = grown;
        all->room = room;
    }
    s = &all->sum[all->n++];
    *s = (struct rate_sum){ .per_s = { 0 } };
    snprintf(s->f.name, sizeof s->f.name, "%s", name);
    return s;
}

static void sum_add_error(struct rate_sum *sum, const char *status, int64_t calls)
{
    int i = 0;

    while (i < sum->f.n_errors && strcmp(sum->f.error[i].status, status) != 0)
        i++;
    if (i == RATE_ERRORS)
        return;
    if (i == sum->f.n_errors) {
        sum->f.error[i] = (struct rate_error){ .calls = 0 };
        snprintf(sum->f.error[i].status, sizeof sum->f.error[i].status, "%s", status);
        sum->f.n_errors++;
    }
    reading_add(&sum->f.error[i].calls, calls);
}

static bool sums_add(struct rate_sums *all, const struct reading *before, const struct reading *now)
{
    const double s = reading_seconds(before, now);

    for (size_t i = 0; i < now->n_series; i++) {
        const struct reading_series *series = &now->series[i];
        struct rate_sum *sum = sums_get(all, series->function);
        int64_t n;

        if (!sum)
            return false;
        if (!(s > 0))
            continue;
        n = series_add_since(before, now, i, sum->bucket[series->server]);
        sum->per_s[series->server] += (double)n / s;
        if (n && *series->error)
            sum_add_error(sum, series->error, n);
    }
    return true;
}

size_t rate_functions(const struct sample *before, const struct sample *now,
                      struct rate_function **ret)
{
    const struct reading none = { .n_series = 0 };
    struct rate_sums all = { .n = 0 };
    bool fits = true;

    *ret = NULL;
    for (size_t i = 0; i < now->n && fits; i++) {
        const struct sample_worker *w = &now->worker[i],
                                   *old = before ? sample_find(before, w->name, w->id) : NULL;

        fits = sums_add(&all, old ? &old->reading : &none, &w->reading);
    }
    if (fits && all.n)
        *ret = calloc(all.n, sizeof **ret);
    for (size_t i = 0; *ret && i < all.n; i++) {
        (*ret)[i] = all.sum[i].f;
        side_set(&(*ret)[i].client, all.sum[i].bucket[0], all.sum[i].per_s[0]);
        side_set(&(*ret)[i].server, all.sum[i].bucket[1], all.sum[i].per_s[1]);
    }
    free(all.sum);
    return *ret ? all.n : 0;
}
