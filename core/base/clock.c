/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base/clock.h"

#include <errno.h>
#include <limits.h>

enum { LONG_MS = 1000, TICK_MAX_NS = 10000000 };

uint64_t clock_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t clock_about_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t clock_later_ms(uint64_t now_ns, uint64_t ms)
{
    return ms >= (CLOCK_NEVER - now_ns) / 1000000u ? CLOCK_NEVER : now_ns + ms * 1000000u;
}

uint64_t clock_deadline_ms(uint64_t ms)
{
    return clock_later_ms(clock_now_ns(), ms);
}

uint64_t clock_deadline_about_ms(uint64_t ms)
{
    if (ms < LONG_MS)
        return clock_deadline_ms(ms);
    /* The coarse clock lags by up to one tick of the kernel. */
    return clock_later_ms(clock_about_ns() + TICK_MAX_NS, ms);
}

int clock_left_ms(uint64_t deadline_ns)
{
    uint64_t now, ms;

    if (deadline_ns == CLOCK_NEVER)
        return -1;
    now = clock_now_ns();
    if (now >= deadline_ns)
        return 0;
    ms = (deadline_ns - now + 999999u) / 1000000u;
    return ms > INT_MAX ? INT_MAX : (int)ms;
}

struct timespec *clock_left_ts(uint64_t deadline_ns, struct timespec *buf)
{
    uint64_t now, left;

    if (deadline_ns == CLOCK_NEVER)
        return NULL;
    now = clock_now_ns();
    left = now >= deadline_ns ? 0 : deadline_ns - now;
    buf->tv_sec = (time_t)(left / 1000000000u);
    buf->tv_nsec = (long)(left % 1000000000u);
    return buf;
}

bool clock_passed(uint64_t deadline_ns)
{
    return deadline_ns != CLOCK_NEVER && clock_now_ns() >= deadline_ns;
}

void clock_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

bool clock_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline_ns)
{
    const struct timespec until = { .tv_sec = (time_t)(deadline_ns / 1000000000u),
                                    .tv_nsec = (long)(deadline_ns % 1000000000u) };

    if (deadline_ns == CLOCK_NEVER)
        return pthread_cond_wait(cond, lock) == 0;
    return pthread_cond_timedwait(cond, lock, &until) != ETIMEDOUT && !clock_passed(deadline_ns);
}
