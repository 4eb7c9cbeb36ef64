/* SPDX-License-Identifier: Apache-2.0 */
/* durations_test.c - histograms of durations, and the numbers of series. */
#include "observe/metrics/series.h"

#include "../testing.h"

#include <pthread.h>
#include <stdio.h>

static uint32_t series_of(const char *method)
{
    const struct series key = {
        .side = SERIES_CLIENT, .worker = "w", .method = method, .peer = "p"
    };

    return series_number(&key);
}

static void each_series_has_one_number_and_keeps_its_names(void **state)
{
    const uint32_t a = series_of("alpha"), b = series_of("beta");
    struct series failed = *series_get(a);

    (void)state;
    assert_int_not_equal(a, b);
    assert_int_equal(series_of("alpha"), a);
    assert_string_equal(series_get(a)->method, "alpha");
    assert_string_equal(series_get(a)->peer, "p");
    failed.status = TENREC_ETIMEDOUT;
    assert_int_not_equal(series_number(&failed), a);
    assert_null(series_get(0));
    assert_null(series_get(SERIES_MAX + 1));
}

static void texts_that_join_to_the_same_are_two_series(void **state)
{
    const struct series one = { .worker = "ab", .method = "c", .peer = "" },
                        other = { .worker = "a", .method = "bc", .peer = "" };

    (void)state;
    assert_int_not_equal(series_number(&one), series_number(&other));
}

static void a_bucket_ends_at_its_bound(void **state)
{
    const uint32_t s = series_of("bounds");
    struct durations d;

    (void)state;
    durations_add(s, 0);
    durations_add(s, 1000); /* 1 us: the first bucket ends with it */
    durations_add(s, 1001); /* the second */
    durations_add(s, 2000);
    durations_add(s, 4096000);        /* 2^12 us */
    durations_add(s, UINT64_MAX / 4); /* centuries: the last */
    durations_sum(s, &d);
    assert_int_equal(d.n, 6);
    assert_int_equal(d.bucket[0], 2);
    assert_int_equal(d.bucket[1], 2);
    assert_int_equal(d.bucket[12], 1);
    assert_int_equal(d.bucket[DURATION_BUCKETS - 1], 1);
}

static void *add_thousand(void *arg)
{
    const uint32_t *series = arg;

    for (int i = 0; i < 1000; i++)
        assert_true(durations_add(*series, 5000));
    return NULL;
}

static void counts_of_ended_threads_stay(void **state)
{
    uint32_t s = series_of("threads");
    pthread_t thread[4];
    struct durations d;

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, add_thousand, &s), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    durations_sum(s, &d);
    assert_int_equal(d.n, 4000);
    assert_int_equal(d.sum_ns, 4000ull * 5000);
    assert_int_equal(d.bucket[3], 4000); /* more than 4 us, at most 8 */
}

/* The last case: it leaves no room for others. */
static void more_series_than_fit_get_no_number(void **state)
{
    char name[32];
    uint32_t number = 1;
    int made = 0;

    (void)state;
    for (; number && made <= SERIES_MAX; made++) {
        snprintf(name, sizeof name, "many%d", made);
        number = series_of(name);
    }
    assert_int_equal(number, 0);
    assert_non_null(series_get(SERIES_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_series_has_one_number_and_keeps_its_names),
        cmocka_unit_test(texts_that_join_to_the_same_are_two_series),
        cmocka_unit_test(a_bucket_ends_at_its_bound),
        cmocka_unit_test(counts_of_ended_threads_stay),
        cmocka_unit_test(more_series_than_fit_get_no_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
