/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - Names and units of calls are those of OpenTelemetry's
 * conventions for RPC, as its observers write them for Prometheus. */
#include "prometheus.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum scope { OF_WORKER, OF_PROCESS };

/* A key of the debug info, and its metric. */
static const struct family {
    const char *key, *name, *help;
    enum scope scope;
    bool gauge;
} families[] = {
    { "agent.client_active_calls", "tenrec_client_active_calls",
      "Own calls that wait for their answer.", OF_WORKER, true },
    { "agent.server_active_calls", "tenrec_server_active_calls", "Calls being answered.", OF_WORKER,
      true },
    { "calls.made", "tenrec_calls_made_total", "Calls made.", OF_WORKER, false },
    { "calls.one_way", "tenrec_calls_one_way_total", "Of the calls made, one-way calls.", OF_WORKER,
      false },
    { "calls.timeouts", "tenrec_calls_timeouts_total", "Calls without an answer in time.",
      OF_WORKER, false },
    { "calls.late_replies", "tenrec_calls_late_replies_total", "Answers to calls that had ended.",
      OF_WORKER, false },
    { "calls.stray_replies", "tenrec_calls_stray_replies_total",
      "Answers to calls that went to another worker.", OF_WORKER, false },
    { "calls.refused", "tenrec_calls_refused_total", "Requests that security does not permit.",
      OF_WORKER, false },
    { "calls.served", "tenrec_calls_served_total", "Calls served.", OF_WORKER, false },
    { "pool.threads", "tenrec_pool_threads", "Threads of the pool.", OF_WORKER, true },
    { "pool.idle_threads", "tenrec_pool_idle_threads", "Of these, idle threads.", OF_WORKER, true },
    { "pool.blocked_threads", "tenrec_pool_blocked_threads",
      "Of these, threads that block in a wait of Tenrec.", OF_WORKER, true },
    { "pool.queued", "tenrec_pool_queued_calls", "Calls that wait for a thread.", OF_WORKER, true },
    { "group.size", "tenrec_group_members", "Members of the group.", OF_WORKER, true },
    { "rref.num_owner_rrefs", "tenrec_rref_owned", "Referenced values of this worker.", OF_WORKER,
      true },
    { "rref.num_forks", "tenrec_rref_forks", "References to them, in all workers.", OF_WORKER,
      true },
    { "rref.num_confirmed_users", "tenrec_rref_users",
      "References of this worker to values of others.", OF_WORKER, true },
    { "rref.num_pending_users", "tenrec_rref_pending_users",
      "References that their owner has not confirmed yet.", OF_WORKER, true },
    { "traces.sent", "tenrec_traces_sent_total", "Spans that a collector has accepted.", OF_WORKER,
      false },
    { "traces.dropped", "tenrec_traces_dropped_total", "Spans that were not sent.", OF_WORKER,
      false },
    { "memory.pool_limit_bytes", "tenrec_memory_pool_limit_bytes",
      "Limit of the memory that is kept for large tensors.", OF_PROCESS, true },
    { "memory.pool_kept_bytes", "tenrec_memory_pool_kept_bytes",
      "Memory that is kept for large tensors.", OF_PROCESS, true },
    { "memory.pool_used_bytes", "tenrec_memory_pool_used_bytes", "Memory of large tensors in use.",
      OF_PROCESS, true },
    { "memory.pool_fresh", "tenrec_memory_pool_fresh_total", "Allocations of new memory.",
      OF_PROCESS, false },
    { "memory.pool_reused", "tenrec_memory_pool_reused_total", "Reuses of memory.", OF_PROCESS,
      false },
    { "memory.shared_bytes", "tenrec_memory_shared_bytes", "Shared memory of this process.",
      OF_PROCESS, true },
    { "memory.shared_lent", "tenrec_memory_shared_loans", "Loans of it to other processes.",
      OF_PROCESS, true },
    { "memory.mapped_bytes", "tenrec_memory_mapped_bytes",
      "Shared memory of other processes, mapped here.", OF_PROCESS, true },
};

static const char *const other_prefixes[] = { "agent.",  "calls.",  "group.", "library.",
                                              "memory.", "plugin.", "pool.",  "rref.",
                                              "store.",  "traces.", "worker." };

static void family_begin(FILE *to, const char *name, const char *type, const char *help)
{
    fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void label_put(FILE *to, const char *before, const char *name, const char *value)
{
    fprintf(to, "%s%s=\"", before, name);
    for (const char *p = value; *p; p++) {
        if (*p == '\n')
            fputs("\\n", to);
        else if (*p == '"' || *p == '\\')
            fprintf(to, "\\%c", *p);
        else
            fputc(*p, to);
    }
    fputc('"', to);
}

static void process_put(FILE *to, const char *before)
{
    fprintf(to, "%sprocess_pid=\"%ld\"", before, (long)getpid());
}

/* ---- durations ----------------------------------------------------------- */

/* The series of the snapshot, by their labels. */
struct series_list {
    const struct tenrec_series **v; /* owns the list */
    size_t n;
};

/* By all labels but the called worker, so that the calls to all workers are neighbours. */
static int series_compare(const void *a, const void *b)
{
    const struct tenrec_series *const *pa = a, *const *pb = b, *x = *pa, *y = *pb;
    int order = (x->kind > y->kind) - (x->kind < y->kind);

    if (order == 0)
        order = strcmp(x->worker, y->worker);
    if (order == 0)
        order = strcmp(x->function, y->function);
    return order != 0 ? order : (x->status > y->status) - (x->status < y->status);
}

/* Returns false without memory. */
static bool series_sort(const struct tenrec_snapshot *all, struct series_list *ret)
{
    ret->n = all->n_series;
    ret->v = calloc(ret->n + 1, sizeof *ret->v);
    for (size_t i = 0; ret->v && i < ret->n; i++)
        ret->v[i] = &all->series[i];
    if (ret->v)
        qsort(ret->v, ret->n, sizeof *ret->v, series_compare);
    return ret->v != NULL;
}

/* The sum of series `*at` and, unless the called worker is a label, of those behind it with the
 * same labels; moves `*at` behind them. */
static struct tenrec_series series_join(const struct series_list *all, size_t *at, bool by_peer)
{
    struct tenrec_series sum = *all->v[(*at)++];

    if (!by_peer)
        sum.peer = NULL;
    for (; *at < all->n; (*at)++) {
        const struct tenrec_series *s = all->v[*at];

        if (by_peer || series_compare(&all->v[*at - 1], &all->v[*at]) != 0)
            break;
        sum.n += s->n;
        sum.sum_ns += s->sum_ns;
        for (int i = 0; i < TENREC_DURATION_BUCKETS; i++)
            sum.bucket[i] += s->bucket[i];
    }
    return sum;
}

static void series_labels(FILE *to, const struct tenrec_series *s)
{
    label_put(to, "{", "tenrec_worker_name", s->worker);
    process_put(to, ",");
    label_put(to, ",", "rpc_system_name", "tenrec");
    label_put(to, ",", "rpc_method", s->function);
    if (s->peer)
        label_put(to, ",", "server_address", s->peer);
    if (s->status != TENREC_OK)
        label_put(to, ",", "error_type", tenrec_status_name((tenrec_status)s->status));
}

/* The bounds of the buckets are the same in all series: the last two are always there. */
static void series_put(FILE *to, const char *name, const struct tenrec_series *s, int64_t step)
{
    const int last = TENREC_DURATION_BUCKETS - 1;
    uint64_t n = 0;

    for (int i = 0; i <= last; i++) {
        n += s->bucket[i];
        if (i < last && (last - 1 - i) % step != 0)
            continue;
        fprintf(to, "%s_bucket", name);
        series_labels(to, s);
        if (i + 1 < TENREC_DURATION_BUCKETS)
            fprintf(to, ",le=\"%.9g\"} %" PRIu64 "\n", (double)(1u << i) * 1e-6, n);
        else
            fprintf(to, ",le=\"+Inf\"} %" PRIu64 "\n", n);
    }
    fprintf(to, "%s_sum", name);
    series_labels(to, s);
    fprintf(to, "} %.9f\n%s_count", (double)s->sum_ns * 1e-9, name);
    series_labels(to, s);
    fprintf(to, "} %" PRIu64 "\n", s->n);
}

static bool durations_put(FILE *to, const struct tenrec_snapshot *all, const struct text_options *o)
{
    static const struct {
        enum tenrec_span_kind kind;
        const char *name, *help;
    } side[] = {
        { TENREC_SPAN_CLIENT, "rpc_client_call_duration_seconds",
          "Durations of outgoing calls, from the request to the completion of the future." },
        { TENREC_SPAN_SERVER, "rpc_server_call_duration_seconds",
          "Durations of served calls, from the arrival of the request to the sent answer." },
    };

    struct series_list list;

    if (!series_sort(all, &list))
        return false;
    for (int i = 0; i < 2; i++) {
        family_begin(to, side[i].name, "histogram", side[i].help);
        for (size_t k = 0; k < list.n;) {
            const struct tenrec_series s = series_join(&list, &k, o->server_address);

            if (s.kind == side[i].kind)
                series_put(to, side[i].name, &s, o->bucket_step);
        }
    }
    free(list.v);
    family_begin(to, "tenrec_metrics_dropped_total", "counter",
                 "Durations that are in no series, as there are too many.");
    fputs("tenrec_metrics_dropped_total", to);
    process_put(to, "{");
    fprintf(to, "} %" PRIu64 "\n", all->dropped);
    return true;
}

/* ---- readings ------------------------------------------------------------ */

static void family_put(FILE *to, const struct family *f, const struct tenrec_snapshot *all)
{
    family_begin(to, f->name, f->gauge ? "gauge" : "counter", f->help);
    for (size_t i = 0; i < all->n_readings; i++) {
        const struct tenrec_reading *r = &all->readings[i];

        if (strcmp(r->key, f->key) != 0)
            continue;
        fputs(f->name, to);
        process_put(to, "{");
        if (f->scope == OF_WORKER)
            label_put(to, ",", "tenrec_worker_name", r->worker);
        fprintf(to, "} %" PRIu64 "\n", r->value);
        if (f->scope == OF_PROCESS)
            return;
    }
}

static bool is_of_backend(const char *key)
{
    for (size_t i = 0; i < sizeof other_prefixes / sizeof other_prefixes[0]; i++)
        if (strncmp(key, other_prefixes[i], strlen(other_prefixes[i])) == 0)
            return false;
    return strchr(key, '.') != NULL;
}

static void backends_put(FILE *to, const struct tenrec_snapshot *all)
{
    char backend[64];

    family_begin(to, "tenrec_backend_value", "gauge",
                 "Counters and states of the agents, by the keys of their debug info.");
    for (size_t i = 0; i < all->n_readings; i++) {
        const struct tenrec_reading *r = &all->readings[i];
        const char *key = r->key, *dot;

        if (!is_of_backend(key))
            continue;
        key += strncmp(key, "backend.", 8) == 0 ? 8 : 0;
        dot = strchr(key, '.');
        if (!dot)
            continue;
        snprintf(backend, sizeof backend, "%.*s", (int)(dot - key), key);
        fputs("tenrec_backend_value", to);
        process_put(to, "{");
        label_put(to, ",", "tenrec_worker_name", r->worker);
        label_put(to, ",", "backend", backend);
        label_put(to, ",", "key", dot + 1);
        fprintf(to, "} %" PRIu64 "\n", r->value);
    }
}

/* Returns false without memory. */
static bool text_put(FILE *to, const struct tenrec_snapshot *all, const struct text_options *o,
                     const char *version)
{
    if (!durations_put(to, all, o))
        return false;
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        family_put(to, &families[i], all);
    backends_put(to, all);
    family_begin(to, "tenrec_build_info", "gauge", "The version that the process runs.");
    fputs("tenrec_build_info", to);
    process_put(to, "{");
    label_put(to, ",", "version", version);
    fputs("} 1\n", to);
    return true;
}

tenrec_status text_make(struct tenrec_observer *self, const struct text_options *o, char **ret,
                        size_t *ret_len, tenrec_error *err)
{
    struct tenrec_snapshot *all;
    char *text = NULL;
    size_t len = 0;
    bool whole = false;
    FILE *to;
    tenrec_status st = self->host->snapshot(self, &all, err);

    if (st != TENREC_OK)
        return st;
    to = open_memstream(&text, &len);
    if (to)
        whole = text_put(to, all, o, self->host->version);
    self->host->snapshot_free(self, all);
    if (!to || fclose(to) != 0 || !whole) {
        free(text);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the metrics");
    }
    *ret = text;
    *ret_len = len;
    return TENREC_OK;
}
