/* SPDX-License-Identifier: Apache-2.0 */
/* bucket.h - a budget of time, without a clock: the caller gives the time.
 *
 * The generic cell rate algorithm: the budget is spent until the cost of all that passed is paid,
 * and may be spent ahead of the time by the burst. What costs more than the burst passes when the
 * budget is whole. */
#ifndef LIMIT_BUCKET_H
#define LIMIT_BUCKET_H

#include <stdint.h>

#define BUCKET_MAX_NS ((uint64_t)1 << 61) /* of a cost; sums of a few do not overflow */

struct bucket {
    uint64_t spent_until_ns; /* 0 at first */
};

/* The time that `amount` takes at `per_second`, 0: no limit. */
static inline uint64_t bucket_cost_ns(double per_second, double amount)
{
    const double ns = per_second > 0 ? amount * 1e9 / per_second : 0;

    return ns < (double)BUCKET_MAX_NS ? (uint64_t)ns : BUCKET_MAX_NS;
}

/* Returns the earliest time, at least `now`, at which `cost` may pass. */
static inline uint64_t bucket_due_ns(const struct bucket *b, uint64_t cost, uint64_t burst,
                                     uint64_t now)
{
    const uint64_t begin = b->spent_until_ns > now ? b->spent_until_ns : now;
    const uint64_t end = begin + (cost < burst ? cost : burst);

    return end > now + burst ? end - burst : now;
}

/* Spends `cost` on a message that arrived at `now`, whether it passes then or when it is due. */
static inline void bucket_spend(struct bucket *b, uint64_t cost, uint64_t now)
{
    const uint64_t end = (b->spent_until_ns > now ? b->spent_until_ns : now) + cost;

    b->spent_until_ns = end < BUCKET_MAX_NS ? end : BUCKET_MAX_NS;
}

#endif
