/* SPDX-License-Identifier: Apache-2.0 */
/* fake_clock.h - a clock for locks, of the test that includes it. */
#ifndef TESTS_GROUP_FAKE_CLOCK_H
#define TESTS_GROUP_FAKE_CLOCK_H

#include "group/lease.h"

/* Time advances only while a thread sleeps. */
static uint64_t now_ns;
static void (*while_asleep)(void);

static uint64_t fake_now(void *arg)
{
    (void)arg;
    return now_ns;
}

static void fake_sleep(void *arg, uint64_t us)
{
    (void)arg;
    now_ns += us * 1000u;
    if (while_asleep)
        while_asleep();
}

static const struct lease_clock fake = { fake_now, fake_sleep, NULL };

#endif
