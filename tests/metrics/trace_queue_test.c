/* SPDX-License-Identifier: Apache-2.0 */
/* trace_queue_test.c - spans on their way to an exporter, which this program replaces. */
#include "observe/metrics/trace_queue.h"

#include "core/base/clock.h"

#include "../testing.h"

#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>

/* ---- the exporter ------------------------------------------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tenrec_status answer;   /* of a post */
static bool answers;           /* else a post lasts until its limit */
static unsigned posts, closed; /* closed: while no sink is left */
static char *last;             /* body of the last post */
static int an_exporter;

tenrec_status __wrap_exporter_open(struct exporter_choice *choice, const char *address,
                                   struct exporter **ret, tenrec_error *err);
void __wrap_exporter_close(struct exporter *e);
tenrec_status __wrap_exporter_post(struct exporter *e, const void *body, size_t len,
                                   uint32_t timeout_ms, tenrec_error *err);

tenrec_status __wrap_exporter_open(struct exporter_choice *choice, const char *address,
                                   struct exporter **ret, tenrec_error *err)
{
    (void)choice, (void)address, (void)err;
    *ret = (struct exporter *)(void *)&an_exporter;
    return TENREC_OK;
}

void __wrap_exporter_close(struct exporter *e)
{
    if (e)
        closed++;
}

tenrec_status __wrap_exporter_post(struct exporter *e, const void *body, size_t len,
                                   uint32_t timeout_ms, tenrec_error *err)
{
    const uint64_t until = clock_deadline_ms(timeout_ms);
    tenrec_status st;
    bool now;

    (void)e;
    assert_in_range(timeout_ms, 1, TRACE_POST_MS);
    pthread_mutex_lock(&lock);
    posts++;
    free(last);
    last = strndup(body, len);
    do {
        now = answers;
        st = answer;
        pthread_mutex_unlock(&lock);
        if (!now)
            poll(NULL, 0, 1);
        pthread_mutex_lock(&lock);
    } while (!now && !clock_passed(until));
    pthread_mutex_unlock(&lock);
    if (!now)
        return tenrec_fail(err, TENREC_ETIMEDOUT, "no answer");
    return st == TENREC_OK ? st : tenrec_fail(err, st, "as the test says");
}

static void exporter_answers(bool now, tenrec_status st)
{
    pthread_mutex_lock(&lock);
    answers = now;
    answer = st;
    pthread_mutex_unlock(&lock);
}

static unsigned count_posts(void)
{
    unsigned n;

    pthread_mutex_lock(&lock);
    n = posts;
    pthread_mutex_unlock(&lock);
    return n;
}

static int forget(void **state)
{
    (void)state;
    posts = closed = 0;
    free(last);
    last = NULL;
    return 0;
}

/* ---- sinks ---------------------------------------------------------------------- */

static struct trace_sink *sink_open(const char *worker)
{
    struct trace_sink *sink = trace_export_new();
    tenrec_error err;

    assert_non_null(sink);
    assert_status(trace_export_start(sink, NULL, "somewhere", "service", worker, &err), &err);
    return sink;
}

static void sink_close(struct trace_sink *sink)
{
    trace_export_stop(sink);
    trace_export_drop(sink);
}

static void add(struct trace_sink *sink, const char *function, unsigned n)
{
    struct trace_context t = { { 1 }, { 2 }, TRACE_SAMPLED };
    struct trace_span *s;

    while (n-- > 0) {
        s = trace_span_new(sink, TRACE_CLIENT, &t, false, function, "worker1");
        assert_non_null(s);
        trace_span_end(s, TENREC_OK, clock_now_ns());
    }
}

static uint64_t sent(const struct trace_sink *sink)
{
    return atomic_load(&sink->sent);
}

static uint64_t dropped(const struct trace_sink *sink)
{
    return atomic_load(&sink->dropped);
}

/* ---- cases ----------------------------------------------------------------------- */

static void spans_are_sent_within_their_period_and_in_batches(void **state)
{
    struct trace_sink *sink = sink_open("worker0");

    (void)state;
    exporter_answers(true, TENREC_OK);
    add(sink, "f", 1);
    assert_becomes(sent(sink) == 1);
    add(sink, "f", 2 * TRACE_BATCH_MAX + 1);
    assert_becomes(sent(sink) == 2 * TRACE_BATCH_MAX + 2);
    assert_in_range(count_posts(), 4, 5); /* the thread may take one while they are added */
    assert_int_equal(dropped(sink), 0);
    sink_close(sink);
    assert_int_equal(closed, 1);
}

static void a_worker_that_ends_sends_what_is_left(void **state)
{
    struct trace_sink *sink = sink_open("worker0"), *other = sink_open("worker1");
    const uint64_t begun = clock_now_ns();

    (void)state;
    exporter_answers(true, TENREC_OK);
    assert_int_equal(closed, 1); /* they share the exporter */
    add(sink, "f", 3);
    add(other, "f", 2);
    trace_export_stop(sink);
    assert_int_equal(sent(sink), 3);
    assert_true(clock_now_ns() - begun < UINT64_C(900000000) * testing_slow());
    add(sink, "f", 1); /* of a function that still runs */
    assert_int_equal(dropped(sink), 1);
    trace_export_drop(sink);
    sink_close(other);
    assert_int_equal(closed, 2);
}

static void a_silent_collector_delays_an_end_by_a_second_at_most(void **state)
{
    struct trace_sink *sink = sink_open("worker0");
    uint64_t begun;

    (void)state;
    exporter_answers(false, TENREC_OK);
    add(sink, "f", 3 * TRACE_BATCH_MAX);
    assert_becomes(count_posts() == 1); /* one is under way */
    begun = clock_now_ns();
    trace_export_stop(sink);
    assert_true(clock_now_ns() - begun < UINT64_C(1300000000) * testing_slow());
    assert_int_equal(sent(sink), 0);
    trace_export_drop(sink);
}

static void beyond_the_bound_spans_are_dropped_and_counted(void **state)
{
    struct trace_sink *sink = sink_open("worker0");

    (void)state;
    exporter_answers(false, TENREC_OK);
    add(sink, "f", TRACE_BATCH_MAX);
    assert_becomes(count_posts() == 1); /* these have left the queue */
    add(sink, "f", TRACE_QUEUE_MAX + 7);
    assert_int_equal(dropped(sink), 7);
    exporter_answers(true, TENREC_OK);
    assert_becomes(sent(sink) == TRACE_BATCH_MAX + TRACE_QUEUE_MAX);
    sink_close(sink);
}

static void refused_spans_are_dropped_others_sent_again(void **state)
{
    struct trace_sink *sink = sink_open("worker0");

    (void)state;
    exporter_answers(true, TENREC_EPERM);
    add(sink, "f", TRACE_BATCH_MAX);
    assert_becomes(dropped(sink) == TRACE_BATCH_MAX);
    exporter_answers(true, TENREC_ECONNECT);
    add(sink, "f", TRACE_BATCH_MAX);
    assert_becomes(count_posts() == 2);
    exporter_answers(true, TENREC_OK);
    assert_becomes(sent(sink) == TRACE_BATCH_MAX);
    assert_int_equal(count_posts(), 3);
    sink_close(sink);
}

static const char *string_at(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

static void any_name_of_a_function_is_json(void **state)
{
    static const char *const row[][2] = {
        { "plain", "plain" },
        { "quote\"back\\slash", "quote\"back\\slash" },
        { "tab\tline\n\x01", "tab\tline\n\x01" },
        { "h\xc3\xa9", "h\xc3\xa9" },
        { "half\xc3", "half\xef\xbf\xbd" },
        { "\xff\xfe", "\xef\xbf\xbd\xef\xbf\xbd" },
    };
    enum { N = sizeof row / sizeof *row };
    struct trace_sink *sink = sink_open("a \"worker\"");
    const json_t *spans, *span;
    json_error_t why;
    json_t *root;

    (void)state;
    exporter_answers(true, TENREC_OK);
    for (size_t i = 0; i < N; i++)
        add(sink, row[i][0], 1);
    trace_export_stop(sink);
    assert_int_equal(sent(sink), N);
    root = json_loads(last, JSON_REJECT_DUPLICATES, &why);
    if (!root)
        fail_msg("%s in %s", why.text, last);
    spans =
        json_object_get(json_array_get(json_object_get(root, "resourceSpans"), 0), "scopeSpans");
    spans = json_object_get(json_array_get(spans, 0), "spans");
    assert_int_equal(json_array_size(spans), N);
    for (size_t i = 0; i < N; i++) {
        span = json_array_get(spans, i);
        assert_string_equal(string_at(span, "name"), row[i][1]);
        assert_string_equal(string_at(span, "traceId"), "01000000000000000000000000000000");
        assert_string_equal(string_at(span, "parentSpanId"), "0200000000000000");
    }
    json_decref(root);
    trace_export_drop(sink);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(spans_are_sent_within_their_period_and_in_batches, forget),
        cmocka_unit_test_setup(a_worker_that_ends_sends_what_is_left, forget),
        cmocka_unit_test_setup(a_silent_collector_delays_an_end_by_a_second_at_most, forget),
        cmocka_unit_test_setup(beyond_the_bound_spans_are_dropped_and_counted, forget),
        cmocka_unit_test_setup(refused_spans_are_dropped_others_sent_again, forget),
        cmocka_unit_test_setup(any_name_of_a_function_is_json, forget),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);

    free(last);
    return failed;
}
