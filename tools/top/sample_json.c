/* SPDX-License-Identifier: Apache-2.0 */
#include "top/view.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *json_known(double number)
{
    return isnan(number) ? json_null() : json_real(number);
}

static json_t *json_side(const struct rate_side *side)
{
    return json_pack("{s:o, s:o, s:o}", "calls_per_s", json_known(side->per_s), "p50_s",
                     json_known(side->p50_s), "p99_s", json_known(side->p99_s));
}

static json_t *json_text(const char *raw)
{
    char clean[2 * TABLE_TEXT_MAX];
    json_t *text = json_string(raw);

    if (text)
        return text;
    /* A name of bytes that are no UTF-8. */
    snprintf(clean, sizeof clean, "%s", raw);
    for (char *c = clean; *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    return json_string(clean);
}

static json_t *json_worker(const struct rate_worker *rate, uint64_t now_ns)
{
    const struct sample_worker *w = rate->worker;
    json_t *ways = json_object(), *all;

    for (int i = 0; i < w->reading.n_ways; i++)
        json_object_set_new(ways, w->reading.way[i].name, json_integer(w->reading.way[i].peers));
    all = json_pack("{s:o, s:o, s:i, s:s, s:f, s:o, s:o, s:b, s:o, s:o, s:o}", "name",
                    json_text(w->name), "host", json_text(w->host), "id", (int)w->id, "state",
                    sample_state_name(w->state), "state_s",
                    now_ns > w->since_ns ? (double)(now_ns - w->since_ns) / 1e9 : 0.0, "made_per_s",
                    json_known(rate->made_per_s), "served_per_s", json_known(rate->served_per_s),
                    "durations", (int)w->reading.timed, "client", json_side(&rate->client),
                    "server", json_side(&rate->server), "ways", ways);
    if (*w->why)
        json_object_set_new(all, "why", json_text(w->why));
    for (int i = 0; i < READING_N && w->reading.answered; i++)
        json_object_set_new(all, reading_names[i].json, json_integer(w->reading.number[i]));
    return all;
}

static json_t *json_function(const struct rate_function *f)
{
    json_t *errors = json_object();

    for (int i = 0; i < f->n_errors; i++)
        json_object_set_new(errors, f->error[i].status, json_integer(f->error[i].calls));
    return json_pack("{s:o, s:o, s:o, s:o}", "function", json_text(f->name), "client",
                     json_side(&f->client), "server", json_side(&f->server), "errors", errors);
}

static json_t *json_sample(const struct sample *before, const struct sample *now)
{
    json_t *workers = json_array(), *functions = json_array(), *all;
    struct rate_function *f;
    const size_t n = rate_functions(before, now, &f);

    for (size_t i = 0; i < now->n; i++) {
        const struct sample_worker *w = &now->worker[i];
        struct rate_worker rate;

        rate_of_worker(before ? sample_find(before, w->name, w->id) : NULL, w, &rate);
        json_array_append_new(workers, json_worker(&rate, now->at_ns));
    }
    for (size_t i = 0; i < n; i++)
        json_array_append_new(functions, json_function(&f[i]));
    free(f);
    all = json_pack("{s:f, s:o, s:o, s:i, s:f, s:o, s:o}", "time", now->time, "group",
                    json_text(now->group), "store", json_text(now->store), "members", (int)now->n,
                    "calls_per_s", view_total(before, now), "workers", workers, "functions",
                    functions);
    if (all && *now->error)
        json_object_set_new(all, "error", json_text(now->error));
    return all;
}

void sample_json_print(const struct sample *before, const struct sample *now)
{
    json_t *all = json_sample(before, now);

    inspect_print_json(all);
    json_decref(all);
}
