#include "base/clock.h"

#include <limits.h>

uint64_t clock_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t clock_deadline_ms(uint64_t ms)
{
    uint64_t now = clock_now_ns();

    if (ms >= (CLOCK_NEVER - now) / 1000000u)
        return CLOCK_NEVER;
    return now + ms * 1000000u;
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
