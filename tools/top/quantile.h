/* SPDX-License-Identifier: Apache-2.0 */
/* quantile.h - quantiles of durations that were counted in buckets. */
#ifndef TENREC_TOOLS_TOP_QUANTILE_H
#define TENREC_TOOLS_TOP_QUANTILE_H

#include <stdint.h>

enum { QUANTILE_BUCKETS = 26 };

/* Returns the duration in seconds that a part `q` (0 to 1) of the calls did not exceed,
 * interpolated within its bucket; NAN without calls. Bucket i ends at 2^i microseconds and the
 * first begins at 0; the last one has no end, and its calls count as long as its beginning. */
double quantile_of(const int64_t bucket[QUANTILE_BUCKETS], double q);

#endif
