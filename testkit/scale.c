/* SPDX-License-Identifier: Apache-2.0 */
#include "testkit/scale.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <tenrec/testkit.h>
#include <time.h>

enum { SLOW_ADDRESS = 4, SLOW_THREAD = 8, SLOW_MAX = 1000 };

/* NULL in a program without the sanitizer. */
extern void __asan_init(void) __attribute__((weak));
extern void __tsan_init(void) __attribute__((weak));

static int64_t scale_factor(void)
{
    const char *text = secure_getenv("TENREC_TEST_SLOW");
    long n = text ? strtol(text, NULL, 10) : 0;

    if (n > 0)
        return n < SLOW_MAX ? n : SLOW_MAX;
    return __tsan_init ? SLOW_THREAD : __asan_init ? SLOW_ADDRESS : 1;
}

int64_t tenrec_test_stretch_ms(int64_t ms)
{
    static _Atomic int64_t known;
    int64_t f = atomic_load(&known);

    if (f == 0)
        atomic_store(&known, f = scale_factor());
    return ms > INT64_MAX / f ? TENREC_TIMEOUT_NONE : ms * f;
}

/* Milliseconds of CLOCK_MONOTONIC. */
static int64_t scale_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t scale_deadline(int64_t ms)
{
    int64_t now = scale_now();

    ms = tenrec_test_stretch_ms(ms);
    return ms > INT64_MAX - now ? INT64_MAX : now + ms;
}

int64_t scale_left(int64_t deadline)
{
    int64_t left = deadline - scale_now();

    return left > 0 ? left : 1;
}

bool scale_moment(int64_t deadline)
{
    poll(NULL, 0, 1);
    return scale_now() < deadline;
}
