/* SPDX-License-Identifier: Apache-2.0 */
#include "top/reading.h"

#include <math.h>

static double bucket_end(int i)
{
    return ldexp(1e-6, i);
}

double quantile_of(const int64_t bucket[QUANTILE_BUCKETS], double q)
{
    double total = 0, before = 0;

    for (int i = 0; i < QUANTILE_BUCKETS; i++)
        total += (double)bucket[i];
    if (total <= 0)
        return NAN;
    for (int i = 0; i < QUANTILE_BUCKETS - 1; i++) {
        const double n = (double)bucket[i], begin = i ? bucket_end(i - 1) : 0;

        if (n > 0 && before + n >= q * total)
            return begin + (bucket_end(i) - begin) * (q * total - before) / n;
        before += n;
    }
    return bucket_end(QUANTILE_BUCKETS - 2);
}
