/* SPDX-License-Identifier: Apache-2.0 */
/* series.h - the names of what is measured, and the durations of each: for each side, worker,
 * function, peer and error a number. They are of the process, and outlive workers: a worker that
 * starts again under its name continues its series. */
#ifndef TENREC_METRICS_SERIES_H
#define TENREC_METRICS_SERIES_H

#include <stdbool.h>
#include <stdint.h>
#include <tenrec/error.h>
#include <tenrec/observer_plugin.h>

enum {
    SERIES_MAX = 4096, /* more are counted by series_dropped, not kept */
};

enum series_side { SERIES_CLIENT, SERIES_SERVER };

struct series {
    enum series_side side;
    tenrec_status status; /* TENREC_OK: of calls without an error */
    const char *worker;
    const char *method;
    const char *peer; /* the called worker; "" at the callee */
};

/* Returns the number of the series, from 1, which is made if there is none; 0 if there are too
 * many, or without memory. The texts are copied. */
uint32_t series_number(const struct series *key);

/* The series of a number; lives as long as the process. NULL beyond the last. */
const struct series *series_get(uint32_t number);

/* Durations that belong to no series, as there were too many. */
void series_drop(void);
uint64_t series_dropped(void);

/* ---- durations.c: histograms of durations by the number of a series. Each thread counts in memory
 * of its own, without locked instructions; a reader sums -----------------------------------------
 */

enum { DURATION_BUCKETS = TENREC_DURATION_BUCKETS };

struct durations {
    uint64_t n, sum_ns;
    uint64_t bucket[DURATION_BUCKETS];
};

/* Returns false without memory. */
bool durations_add(uint32_t series, uint64_t ns);

/* The sum over all threads, those that have ended among them. */
void durations_sum(uint32_t series, struct durations *ret);

#endif
