/* SPDX-License-Identifier: Apache-2.0 */
#include "top/reading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERIES_MOST = 8192 }; /* twice what a worker keeps */

const struct reading_name reading_names[READING_N] = {
    [READING_MADE] = { "calls.made", "calls_made" },
    [READING_SERVED] = { "calls.served", "calls_served" },
    [READING_TIMEOUTS] = { "calls.timeouts", "timeouts" },
    [READING_LATE] = { "calls.late_replies", "late_replies" },
    [READING_ACTIVE] = { "agent.client_active_calls", "client_active_calls" },
    [READING_ANSWERED] = { "agent.server_active_calls", "server_active_calls" },
    [READING_QUEUED] = { "pool.queued", "queued" },
    [READING_THREADS] = { "pool.threads", "threads" },
    [READING_IDLE] = { "pool.idle_threads", "idle_threads" },
    [READING_BLOCKED] = { "pool.blocked_threads", "blocked_threads" },
    [READING_POOL_BYTES] = { "memory.pool_used_bytes", "pool_used_bytes" },
    [READING_SHARED_BYTES] = { "memory.shared_bytes", "shared_bytes" },
    [READING_MAPPED_BYTES] = { "memory.mapped_bytes", "mapped_bytes" },
    [READING_OWNED] = { "rref.num_owner_rrefs", "owned_references" },
    [READING_FORKS] = { "rref.num_forks", "references" },
    [READING_WEIGHTS] = { "weights.version", "weights_version" },
    [READING_INJECTED] = { NULL, "faults_injected" },
};

static bool is_count(const struct tenrec_value *v)
{
    return v->type == TENREC_VALUE_INT && v->u.integer >= 0;
}

static int64_t map_count(const struct tenrec_value *map, const char *key)
{
    const struct tenrec_value *v = tenrec_value_find(map, key);

    return v && is_count(v) ? v->u.integer : 0;
}

static const char *map_text(const struct tenrec_value *map, const char *key)
{
    const struct tenrec_value *v = tenrec_value_find(map, key);

    return v && v->type == TENREC_VALUE_TEXT ? v->u.text : "";
}

static bool key_ends(const char *key, const char *end)
{
    const size_t n = strlen(key), m = strlen(end);

    return n >= m && strcmp(key + n - m, end) == 0;
}

static void reading_add_way(struct reading *r, const char *name)
{
    int i = 0;

    while (i < r->n_ways && strcmp(r->way[i].name, name) != 0)
        i++;
    if (i == READING_WAYS)
        return;
    if (i == r->n_ways) {
        snprintf(r->way[i].name, sizeof r->way[i].name, "%s", name);
        r->n_ways++;
    }
    r->way[i].peers++;
}

/* "tensorpipe.peer.3.transport" */
static void reading_take_way(struct reading *r, const struct tenrec_value *info,
                             const struct tenrec_entry *e)
{
    static const char ours[] = "tenrec_"; /* tenrec_ring */
    char key[192], name[24];
    const size_t stem = strlen(e->key) - strlen("transport");
    const char *encryption;

    if (e->value.type != TENREC_VALUE_TEXT || strcmp(e->value.u.text, "none") == 0 ||
        stem > sizeof key - sizeof "encryption")
        return;
    snprintf(key, sizeof key, "%.*sencryption", (int)stem, e->key);
    encryption = map_text(info, key);
    snprintf(name, sizeof name, "%.16s%s",
             e->value.u.text +
                 (strncmp(e->value.u.text, ours, sizeof ours - 1) ? 0 : sizeof ours - 1),
             *encryption && strcmp(encryption, "none") != 0 ? "+tls" : "");
    reading_add_way(r, name);
}

static bool key_counts_faults(const char *key)
{
    return (strstr(key, ".rules.") && key_ends(key, ".injected")) ||
           strstr(key, ".injected_failures.") || strstr(key, ".injected_delays.");
}

bool reading_take_info(struct reading *r, const struct tenrec_value *info)
{
    if (info->type != TENREC_VALUE_MAP)
        return false;
    for (uint64_t i = 0; i < info->n; i++) {
        const struct tenrec_entry *e = &info->u.map[i];

        for (int k = 0; k < READING_INJECTED; k++)
            if (is_count(&e->value) && strcmp(e->key, reading_names[k].info) == 0)
                r->number[k] = e->value.u.integer;
        if (is_count(&e->value) && key_counts_faults(e->key))
            reading_add(&r->number[READING_INJECTED], e->value.u.integer);
        else if (strstr(e->key, ".peer.") && key_ends(e->key, ".transport"))
            reading_take_way(r, info, e);
    }
    r->number[READING_ANSWERED] -= r->number[READING_ANSWERED] > 0; /* the call that asks */
    return true;
}

static bool series_take(struct reading_series *s, const struct tenrec_value *row)
{
    const struct tenrec_value *bucket = tenrec_value_find(row, "buckets");

    if (!bucket || bucket->type != TENREC_VALUE_ARRAY || bucket->n != QUANTILE_BUCKETS)
        return false;
    s->server = strcmp(map_text(row, "side"), "server") == 0;
    snprintf(s->function, sizeof s->function, "%s", map_text(row, "function"));
    snprintf(s->peer, sizeof s->peer, "%s", map_text(row, "worker"));
    snprintf(s->error, sizeof s->error, "%s", map_text(row, "error"));
    for (int i = 0; i < QUANTILE_BUCKETS; i++)
        if (is_count(&bucket->u.array[i]))
            s->bucket[i] = bucket->u.array[i].u.integer;
    return true;
}

bool reading_take_metrics(struct reading *r, const struct tenrec_value *metrics)
{
    const struct tenrec_value *on = tenrec_value_find(metrics, "on"),
                              *calls = tenrec_value_find(metrics, "calls");
    uint64_t n;

    if (!calls || calls->type != TENREC_VALUE_ARRAY)
        return false;
    r->timed = on && on->type == TENREC_VALUE_BOOL && on->u.boolean;
    r->now_ns = map_count(metrics, "now_ns");
    n = calls->n < SERIES_MOST ? calls->n : SERIES_MOST;
    r->series = calloc(n ? n : 1, sizeof *r->series);
    if (!r->series)
        return false;
    for (uint64_t i = 0; i < n; i++)
        /* Calls of tools that read the worker, as this one, are no load of the group. */
        if (strncmp(map_text(&calls->u.array[i], "function"), "tenrec.", 7) != 0)
            r->n_series += series_take(&r->series[r->n_series], &calls->u.array[i]);
    return true;
}

void reading_finish(struct reading *r)
{
    free(r->series);
    *r = (struct reading){ .n_series = 0 };
}
