/* SPDX-License-Identifier: Apache-2.0 */
/* reading.h - the counters and durations of a worker at one time, from its answers. A worker is not
 * trusted: fields of the wrong type, and negative counts, are as missing. */
#ifndef TENREC_TOOLS_TOP_READING_H
#define TENREC_TOOLS_TOP_READING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenrec/types.h>
#include <tenrec/value.h>

/* quantile.c: quantiles of durations that were counted in buckets. */

enum { QUANTILE_BUCKETS = 26 };

/* Returns the duration in seconds that a part `q` (0 to 1) of the calls did not exceed,
 * interpolated within its bucket; NAN without calls. Bucket i ends at 2^i microseconds and the
 * first begins at 0; the last one has no end, and its calls count as long as its beginning. */
double quantile_of(const int64_t bucket[QUANTILE_BUCKETS], double q);

enum reading_number {
    READING_MADE,
    READING_SERVED,
    READING_TIMEOUTS,
    READING_LATE,
    READING_ACTIVE,   /* own calls that wait for their answer */
    READING_ANSWERED, /* calls being answered */
    READING_QUEUED,
    READING_THREADS,
    READING_IDLE,
    READING_BLOCKED,
    READING_POOL_BYTES,
    READING_SHARED_BYTES,
    READING_MAPPED_BYTES,
    READING_OWNED, /* referenced values here */
    READING_FORKS,
    READING_WEIGHTS,  /* their version here */
    READING_INJECTED, /* faults */
    READING_N
};

/* Of each number: its key in the debug info (NULL: a sum), and in the JSON of the command. */
extern const struct reading_name {
    const char *info, *json;
} reading_names[READING_N];

/* The durations of one function, of one side, with one peer and one error. */
struct reading_series {
    bool server;
    char function[256], peer[TENREC_NAME_MAX + 1], error[32];
    int64_t bucket[QUANTILE_BUCKETS];
};

struct reading_way {
    char name[24]; /* "shm", "uv+tls" */
    int peers;
};

enum { READING_WAYS = 8 };

struct reading {
    bool answered, timed; /* the worker answered; it counts durations */
    int64_t now_ns;       /* of the worker's clock */
    int64_t number[READING_N];
    struct reading_way way[READING_WAYS];
    int n_ways;
    struct reading_series *series; /* owns */
    size_t n_series;
};

/* Reads the answers of tenrec.debug_info and tenrec.metrics. Returns false if one is malformed, or
 * without memory. */
bool reading_take_info(struct reading *r, const struct tenrec_value *info);
bool reading_take_metrics(struct reading *r, const struct tenrec_value *metrics);

/* Adds counts (from 0 on), up to the largest number. */
static inline void reading_add(int64_t *sum, int64_t n)
{
    if (__builtin_add_overflow(*sum, n, sum))
        *sum = INT64_MAX;
}

/* Leaves it zeroed; safe on zeroed memory. */
void reading_finish(struct reading *r);

#endif
