/* SPDX-License-Identifier: Apache-2.0 */
/* clock_fast.h - CLOCK_MONOTONIC to within a microsecond, for a fraction of what reading it costs:
 * to take the time of each call.
 *
 * Reads the processor's counter where that has one frequency for ever and the kernel's own clock
 * uses it; else the clock. Each thread reads the clock again after a few milliseconds, so that the
 * two do not drift apart. Two times may be out of order by that microsecond. */
#ifndef TENREC_BASE_CLOCK_FAST_H
#define TENREC_BASE_CLOCK_FAST_H

#include <stdint.h>

#if defined(__x86_64__)
#include <x86intrin.h>

#include "core/base/fail.h"
#define CLOCK_FAST_COUNTER() __rdtsc()
#elif defined(__aarch64__)
static inline uint64_t clock_fast_counter(void)
{
    uint64_t n;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(n));
    return n;
}
#define CLOCK_FAST_COUNTER() clock_fast_counter()
#else
#define CLOCK_FAST_COUNTER() UINT64_MAX
#endif

enum { CLOCK_FAST_ERROR_NS = 1000 };

/* Of the thread: the counter and the clock at one moment. */
struct clock_fast {
    uint64_t counter, ns;
    uint64_t span;  /* counts for which this holds; 0: read again at once */
    uint64_t scale; /* nanoseconds of a count, times 2^32 */
};

extern _Thread_local struct clock_fast clock_fast_anchor STATIC_TLS;

/* The slow path: reads the clock, and sets the anchor. */
uint64_t clock_fast_anew(void);

static inline uint64_t clock_fast_ns(void)
{
    const struct clock_fast *a = &clock_fast_anchor;
    const uint64_t n = CLOCK_FAST_COUNTER() - a->counter;

    if (unlikely(n >= a->span))
        return clock_fast_anew();
    return a->ns + (n * a->scale >> 32);
}

#endif
