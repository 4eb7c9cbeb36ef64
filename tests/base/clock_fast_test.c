/* SPDX-License-Identifier: Apache-2.0 */
/* clock_fast_test.c - the fast clock beside the clock. */
#include "core/base/clock_fast.h"

#include "core/base/clock.h"

#include "../testing.h"

#include <pthread.h>

enum {
    LAST_NS = 30000000, /* several anchors */
    OFF_NS = 100000,    /* what the frequency's error may cost, and far more */
};

/* The clock is read before and after: a thread that loses the processor proves nothing less. */
static void *stay_near(void *arg)
{
    const uint64_t until = clock_now_ns() + LAST_NS;
    uint64_t before, fast, after;
    bool *near = arg;

    do {
        before = clock_now_ns();
        fast = clock_fast_ns();
        after = clock_now_ns();
        *near = *near && fast + OFF_NS >= before && fast <= after + OFF_NS;
    } while (*near && after < until);
    return NULL;
}

static void it_stays_near_the_clock_in_all_threads(void **state)
{
    bool near[3] = { true, true, true };
    pthread_t thread[3];

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, stay_near, &near[i]), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < 3; i++)
        assert_true(near[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_stays_near_the_clock_in_all_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
