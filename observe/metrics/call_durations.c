/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/metrics/metrics.h"

#include "observe/metrics/series.h"

#include "core/base/fail.h"
#include "core/base/memory.h"
#include "core/base/threads.h"
#include "rpc/call/calls.h"

#include <stdlib.h>
#include <string.h>

enum {
    CACHE = 64,  /* series that a thread finds without a lock; a power of two */
    SERVED = -2, /* in place of a peer */
};

/* The latest series of a place. */
struct cached {
    uint32_t start; /* of the worker; 0: empty */
    tenrec_peer to;
    uint32_t number;
    const char *method; /* the series' own */
};

/* Allocated: the library's part of the static TLS block must stay small, else no program can load
 * it by dlopen. */
static _Thread_local struct {
    struct thread_end end;
    struct cached *cache; /* owns; CACHE places, or NULL */
    struct cached *last;  /* of these, as threads repeat a call; or NULL */
} mine STATIC_TLS;

static void cache_end(void)
{
    free(mine.cache);
    mine.cache = mine.last = NULL;
}

/* Returns NULL without memory. */
static struct cached *cache_begin(void)
{
    if (thread_end_follow(&mine.end, cache_end))
        mine.cache = memory_new(CACHE, sizeof *mine.cache);
    return mine.cache;
}

/* Names of one program differ at their ends, or in their lengths. */
static unsigned cache_slot(const char *method, size_t len, tenrec_peer to)
{
    const unsigned ends =
        (unsigned char)method[0] * 7u + (len ? (unsigned char)method[len - 1] : 0);

    return (ends + (unsigned)len * 31u + (unsigned)to * 13u) % CACHE;
}

static bool is_of(const struct cached *c, const struct tenrec_worker *w, const char *method,
                  tenrec_peer to)
{
    return c && c->start == w->start && c->to == to && strcmp(c->method, method) == 0;
}

static uint32_t call_series_find(struct tenrec_worker *w, const char *method, tenrec_peer to)
{
    const size_t len = strlen(method);
    struct cached *cache = unlikely(!mine.cache) ? cache_begin() : mine.cache;
    struct cached *c = cache ? &cache[cache_slot(method, len, to)] : NULL;
    const bool served = to == SERVED;
    struct series key;
    uint32_t number;

    mine.last = c;
    if (is_of(c, w, method, to))
        return c->number;
    key = (struct series){ .side = served ? SERIES_SERVER : SERIES_CLIENT,
                           .worker = w->self.name,
                           .method = method,
                           .peer = served ? "" : peers_name(&w->peers, to) };
    number = series_number(&key);
    if (number && c)
        *c = (struct cached){ w->start, to, number, series_get(number)->method };
    return number;
}

static uint32_t call_series(struct tenrec_worker *w, const char *method, tenrec_peer to)
{
    return is_of(mine.last, w, method, to) ? mine.last->number : call_series_find(w, method, to);
}

/* Calls that fail have series of their own. */
static uint32_t error_series(uint32_t number, tenrec_status status)
{
    struct series key;

    if (!number)
        return 0;
    key = *series_get(number);
    key.status = status;
    return series_number(&key);
}

/* The fast clock may be a microsecond late. */
static uint64_t time_between(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? to_ns - from_ns : 0;
}

static void call_count(uint32_t number, tenrec_status status, uint64_t ns)
{
    if (unlikely(status != TENREC_OK))
        number = error_series(number, status);
    if (!number || !durations_add(number, ns))
        series_drop();
}

static void durations_begin(struct tenrec_worker *w, struct call_spec *spec)
{
    spec->seen.series = call_series(w, spec->function, spec->to);
    if (unlikely(!spec->seen.series))
        series_drop();
}

static void durations_ended(struct tenrec_worker *w, const struct future_call *c,
                            struct tenrec_msg *answer, tenrec_status status, uint64_t now_ns)
{
    (void)w, (void)answer;
    if (c->seen.series && c->id >= 0) /* else there are too many, or it was not sent */
        call_count(c->seen.series, status, time_between(c->seen.begun_ns, now_ns));
}

static void durations_served(struct tenrec_call *c, struct tenrec_msg **answer,
                             tenrec_status status, uint64_t now_ns)
{
    (void)answer;
    call_count(call_series(c->worker, c->function->name, SERVED), status,
               time_between(c->arrived_ns, now_ns));
}

const struct call_observer call_durations_observer = {
    .begin = durations_begin,
    .ended = durations_ended,
    .served = durations_served,
};
