/* SPDX-License-Identifier: Apache-2.0 */
/* fake_clock.h - the clock of the test that includes it; link it with --wrap=clock_now_ns,
 * --wrap=nanosleep and --wrap=store_wait_round. */
#ifndef TESTS_GROUP_FAKE_CLOCK_H
#define TESTS_GROUP_FAKE_CLOCK_H

#include "group/store/store.h"

#include <stdint.h>
#include <time.h>

/* Time advances only while a thread sleeps. */
static uint64_t now_ns;
static void (*while_asleep)(void);

uint64_t __real_clock_now_ns(void);
uint64_t __wrap_clock_now_ns(void);
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);

/* What is done meanwhile may sleep, too. */
static inline void fall_asleep(void)
{
    void (*once)(void) = while_asleep;

    while_asleep = NULL;
    if (once)
        once();
    if (!while_asleep)
        while_asleep = once;
}

uint64_t __wrap_clock_now_ns(void)
{
    return now_ns;
}

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left)
{
    (void)left;
    now_ns += (uint64_t)wanted->tv_sec * 1000000000u + (uint64_t)wanted->tv_nsec;
    fall_asleep();
    return 0;
}

tenrec_status __wrap_store_wait_round(struct tenrec_store *s, const char *const *keys, size_t n,
                                      uint64_t until_ns, uint64_t deadline_ns, bool *ret_missing,
                                      tenrec_error *err);

/* A wait for one key. */
tenrec_status __wrap_store_wait_round(struct tenrec_store *s, const char *const *keys, size_t n,
                                      uint64_t until_ns, uint64_t deadline_ns, bool *ret_missing,
                                      tenrec_error *err)
{
    tenrec_status st = store_check_all(s, keys, n, deadline_ns, ret_missing, err);

    if (st != TENREC_OK || !*ret_missing)
        return st;
    if (until_ns > now_ns)
        now_ns = until_ns;
    fall_asleep();
    st = store_check_all(s, keys, n, deadline_ns, ret_missing, err);
    return st == TENREC_OK && *ret_missing ? TENREC_ETIMEDOUT : st;
}

#endif
