/* SPDX-License-Identifier: Apache-2.0 */
/* fake_clock.h - the clock of the test that includes it; link it with --wrap=clock_now_ns and
 * --wrap=nanosleep. */
#ifndef TESTS_GROUP_FAKE_CLOCK_H
#define TESTS_GROUP_FAKE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Time advances only while a thread sleeps. */
static uint64_t now_ns;
static void (*while_asleep)(void);

uint64_t __real_clock_now_ns(void);
uint64_t __wrap_clock_now_ns(void);
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);

uint64_t __wrap_clock_now_ns(void)
{
    return now_ns;
}

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left)
{
    (void)left;
    now_ns += (uint64_t)wanted->tv_sec * 1000000000u + (uint64_t)wanted->tv_nsec;
    if (while_asleep)
        while_asleep();
    return 0;
}

#endif
