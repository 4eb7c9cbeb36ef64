/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - deadlines: CLOCK_MONOTONIC nanoseconds, TENREC_STORE_NEVER for none. */
#ifndef REDIS_CLOCK_H
#define REDIS_CLOCK_H

#include <tenrec/store_plugin.h>
#include <time.h>

static inline uint64_t clock_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_in_ms(uint64_t ms)
{
    return clock_now() + ms * 1000000u;
}

/* The deadline of the answers to an operation with `deadline_ns`, for all its requests
 * together. */
static inline uint64_t clock_answer(uint64_t deadline_ns)
{
    const uint64_t more_ns = 80000000; /* of 100 ms */

    return deadline_ns > TENREC_STORE_NEVER - more_ns ? TENREC_STORE_NEVER : deadline_ns + more_ns;
}

static inline bool clock_over(uint64_t deadline_ns)
{
    return deadline_ns != TENREC_STORE_NEVER && clock_now() >= deadline_ns;
}

/* Timeout for poll(2): -1 without a deadline, at most a minute. */
static inline int clock_poll_ms(uint64_t deadline_ns)
{
    uint64_t now;

    if (deadline_ns == TENREC_STORE_NEVER)
        return -1;
    now = clock_now();
    if (now >= deadline_ns)
        return 0;
    if (deadline_ns - now > 60000000000u)
        return 60000;
    return (int)((deadline_ns - now + 999999u) / 1000000u);
}

/* Sleeps before a retry, but not beyond the deadline; doubles the gap, up to `most_ms`. */
static inline void clock_pause(uint64_t *gap_ms, uint64_t most_ms, uint64_t deadline_ns)
{
    const int left = clock_poll_ms(deadline_ns);
    const uint64_t ms = left >= 0 && (uint64_t)left < *gap_ms ? (uint64_t)left : *gap_ms;

    nanosleep(
        &(struct timespec){ .tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000 },
        NULL);
    *gap_ms = *gap_ms * 2 < most_ms ? *gap_ms * 2 : most_ms;
}

static inline struct timespec clock_timespec(uint64_t deadline_ns)
{
    return (struct timespec){ .tv_sec = (time_t)(deadline_ns / 1000000000u),
                              .tv_nsec = (long)(deadline_ns % 1000000000u) };
}

#endif
