/* SPDX-License-Identifier: Apache-2.0 */
/* durations.h - histograms of durations by the number of a series (series.h). Each thread counts
 * in memory of its own, without locked instructions; a reader sums. */
#ifndef TENREC_METRICS_DURATIONS_H
#define TENREC_METRICS_DURATIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <tenrec/observer_plugin.h>

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
