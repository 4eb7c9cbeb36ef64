/* SPDX-License-Identifier: Apache-2.0 */
/* rate_test.c - quantiles, and rates of two samples, of `tenrec top`. */
#include "top/sample.h"

#include "../../testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void assert_near(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-9 + 1e-6 * fabs(expected)))
        fail_msg("%.12g, expected %.12g", got, expected);
}

static void a_quantile_is_interpolated_within_its_bucket(void **state)
{
    int64_t bucket[QUANTILE_BUCKETS] = { 0 };

    (void)state;
    assert_true(isnan(quantile_of(bucket, 0.5)));
    bucket[3] = 10; /* 4 to 8 us */
    assert_near(quantile_of(bucket, 0.5), 6e-6);
    assert_near(quantile_of(bucket, 1), 8e-6);
    bucket[0] = 10; /* 0 to 1 us */
    assert_near(quantile_of(bucket, 0.25), 0.5e-6);
    assert_near(quantile_of(bucket, 0.5), 1e-6);
    bucket[QUANTILE_BUCKETS - 1] = 1000; /* without an end: where it begins */
    assert_near(quantile_of(bucket, 0.99), 16.777216);
}

static void begin(struct sample_worker *w, const char *name, int64_t now_ns, size_t n)
{
    *w = (struct sample_worker){ .state = SAMPLE_UP };
    snprintf(w->name, sizeof w->name, "%s", name);
    w->reading.answered = w->reading.timed = true;
    w->reading.now_ns = now_ns;
    w->reading.series = calloc(n ? n : 1, sizeof *w->reading.series);
    assert_non_null(w->reading.series);
    w->reading.n_series = n;
}

static void set_series(struct sample_worker *w, size_t i, bool server, const char *function,
                       const char *error, int64_t calls)
{
    struct reading_series *s = &w->reading.series[i];

    s->server = server;
    snprintf(s->function, sizeof s->function, "%s", function);
    snprintf(s->error, sizeof s->error, "%s", error);
    s->bucket[3] = calls;
}

static void a_rate_is_that_of_the_workers_own_clock(void **state)
{
    struct sample_worker before, now;
    struct rate_worker rate;

    (void)state;
    begin(&before, "w", 1000000000, 0);
    begin(&now, "w", 3000000000, 1);
    before.reading.number[READING_MADE] = 10;
    now.reading.number[READING_MADE] = 30;
    before.reading.number[READING_SERVED] = 5;
    now.reading.number[READING_SERVED] = 17; /* two by the sample itself */
    set_series(&now, 0, false, "add", "", 20);
    rate_of_worker(&before, &now, &rate);
    assert_near(rate.made_per_s, 10);
    assert_near(rate.served_per_s, 5);
    assert_near(rate.client.per_s, 10);
    assert_near(rate.client.p50_s, 6e-6);
    assert_true(isnan(rate.server.p50_s));
    reading_finish(&before.reading);
    reading_finish(&now.reading);
}

static void a_rate_is_unknown_without_two_answers_or_after_a_restart(void **state)
{
    struct sample_worker before, now;
    struct rate_worker rate;

    (void)state;
    begin(&before, "w", 1000, 0);
    begin(&now, "w", 2000, 0);
    rate_of_worker(NULL, &now, &rate);
    assert_true(isnan(rate.made_per_s) && isnan(rate.served_per_s));
    before.reading.answered = false;
    rate_of_worker(&before, &now, &rate);
    assert_true(isnan(rate.made_per_s));
    before.reading.answered = true;
    before.reading.number[READING_MADE] = before.reading.number[READING_SERVED] = 1000;
    rate_of_worker(&before, &now, &rate);
    assert_true(isnan(rate.made_per_s) && isnan(rate.served_per_s));
    reading_finish(&before.reading);
    reading_finish(&now.reading);
}

static void an_idle_worker_serves_nothing(void **state)
{
    struct sample_worker before, now;
    struct rate_worker rate;

    (void)state;
    begin(&before, "w", 1000000000, 0);
    begin(&now, "w", 2000000000, 0);
    before.reading.number[READING_SERVED] = 7;
    now.reading.number[READING_SERVED] = 8; /* by one call of ours that was counted late */
    rate_of_worker(&before, &now, &rate);
    assert_near(rate.served_per_s, 0);
    reading_finish(&before.reading);
    reading_finish(&now.reading);
}

static void functions_are_summed_over_workers_and_errors_counted(void **state)
{
    struct sample_worker old[2], fresh[2];
    const struct sample before = { .worker = old, .n = 2 }, now = { .worker = fresh, .n = 2 };
    struct rate_function *f;

    (void)state;
    for (int i = 0; i < 2; i++) {
        begin(&old[i], i ? "b" : "a", 1000000000, 1);
        begin(&fresh[i], i ? "b" : "a", 2000000000, 3);
        set_series(&old[i], 0, false, "add", "", 1);
        set_series(&fresh[i], 0, true, "add", "", 4);
        set_series(&fresh[i], 1, false, "add", "ETIMEDOUT", 2);
        set_series(&fresh[i], 2, false, "add", "", 11);
    }
    assert_int_equal(rate_functions(&before, &now, &f), 1);
    assert_string_equal(f->name, "add");
    assert_near(f->client.per_s, 24);
    assert_near(f->server.per_s, 8);
    assert_int_equal(f->n_errors, 1);
    assert_string_equal(f->error[0].status, "ETIMEDOUT");
    assert_int_equal(f->error[0].calls, 4);
    free(f);
    for (int i = 0; i < 2; i++) {
        reading_finish(&old[i].reading);
        reading_finish(&fresh[i].reading);
    }
}

static void answers_of_other_types_are_no_reading(void **state)
{
    struct tenrec_entry entry[] = { { "calls.made", tenrec_value_text("many") },
                                    { "pool.queued", tenrec_value_int(3) },
                                    { "tensorpipe.peer.1.transport",
                                      tenrec_value_text("tenrec_ring") },
                                    { "tensorpipe.peer.1.encryption", tenrec_value_text("none") },
                                    { "transport", tenrec_value_int(1) },
                                    { "x.peer..transport", tenrec_value_int(1) } };
    const struct tenrec_value info = tenrec_value_map(entry, sizeof entry / sizeof entry[0]),
                              number = tenrec_value_int(1);
    struct tenrec_entry row[] = { { "buckets", tenrec_value_int(1) } };
    const struct tenrec_value rows[] = { tenrec_value_map(row, 1), tenrec_value_int(1) };
    struct tenrec_entry calls[] = { { "calls", tenrec_value_array(rows, 2) } };
    const struct tenrec_value metrics = tenrec_value_map(calls, 1);
    struct reading r = { .n_series = 0 };

    (void)state;
    assert_false(reading_take_info(&r, &number));
    assert_false(reading_take_metrics(&r, &number));
    assert_true(reading_take_info(&r, &info));
    assert_int_equal(r.number[READING_MADE], 0);
    assert_int_equal(r.number[READING_QUEUED], 3);
    assert_int_equal(r.n_ways, 1);
    assert_string_equal(r.way[0].name, "ring");
    assert_true(reading_take_metrics(&r, &metrics));
    assert_int_equal(r.n_series, 0);
    reading_finish(&r);
}

/* A worker may say anything. */
static void counts_of_no_worker_neither_overflow_nor_go_below_zero(void **state)
{
    struct tenrec_value full[QUANTILE_BUCKETS], negative[QUANTILE_BUCKETS];
    struct tenrec_entry entry[] = {
        { "calls.served", tenrec_value_int(INT64_MIN) },
        { "backends.f.rules.0.injected", tenrec_value_int(INT64_MAX) },
        { "backends.f.rules.1.injected", tenrec_value_int(INT64_MAX) },
    };
    const struct tenrec_value info = tenrec_value_map(entry, 3);
    struct tenrec_entry row[2][2] = { { { "function", tenrec_value_text("f") } },
                                      { { "function", tenrec_value_text("f") } } };
    const struct tenrec_value rows[] = { tenrec_value_map(row[0], 2), tenrec_value_map(row[0], 2),
                                         tenrec_value_map(row[1], 2) };
    struct tenrec_entry calls[] = { { "calls", tenrec_value_array(rows, 3) },
                                    { "now_ns", tenrec_value_int(INT64_MAX) } };
    const struct tenrec_value metrics = tenrec_value_map(calls, 2);
    struct sample_worker before = { .state = SAMPLE_UP }, now = before;
    struct rate_worker rate;

    (void)state;
    for (int i = 0; i < QUANTILE_BUCKETS; i++) {
        full[i] = tenrec_value_int(INT64_MAX);
        negative[i] = tenrec_value_int(INT64_MIN);
    }
    row[0][1] = (struct tenrec_entry){ "buckets", tenrec_value_array(full, QUANTILE_BUCKETS) };
    row[1][1] = (struct tenrec_entry){ "buckets", tenrec_value_array(negative, QUANTILE_BUCKETS) };
    before.reading.answered = now.reading.answered = true;
    assert_true(reading_take_info(&now.reading, &info));
    assert_int_equal(now.reading.number[READING_SERVED], 0);
    assert_int_equal(now.reading.number[READING_INJECTED], INT64_MAX);
    assert_true(reading_take_metrics(&now.reading, &metrics));
    rate_of_worker(&before, &now, &rate);
    assert_true(rate.client.per_s > 0 && isfinite(rate.client.per_s));
    assert_true(rate.client.p99_s > 0);
    reading_finish(&now.reading);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quantile_is_interpolated_within_its_bucket),
        cmocka_unit_test(a_rate_is_that_of_the_workers_own_clock),
        cmocka_unit_test(a_rate_is_unknown_without_two_answers_or_after_a_restart),
        cmocka_unit_test(an_idle_worker_serves_nothing),
        cmocka_unit_test(functions_are_summed_over_workers_and_errors_counted),
        cmocka_unit_test(answers_of_other_types_are_no_reading),
        cmocka_unit_test(counts_of_no_worker_neither_overflow_nor_go_below_zero),
    };

    return cmocka_run_group_tests_name("top_rate", tests, NULL, NULL);
}
