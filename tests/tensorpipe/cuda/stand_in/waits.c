/* SPDX-License-Identifier: Apache-2.0 */
/* waits.c - waiting for what streams do, here and in other processes. */
#include "stand_in.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS 50000000L /* interval at which a waiter checks that other processes live */
#define LIMIT_NS (60 * UINT64_C(1000000000))

static uint64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void word_wait(void *word, unsigned value, uint64_t *started, const char *call)
{
    static const struct timespec look = { 0, LOOK_NS };

    if (!*started)
        *started = now();
    if (now() - *started > LIMIT_NS) {
        fprintf(stderr, "stand-in of CUDA: %s has waited for 60 s\n", call);
        abort();
    }
    syscall(SYS_futex, word, FUTEX_WAIT, value, &look, NULL, 0);
}

void word_wake(void *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
