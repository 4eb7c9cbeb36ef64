/* SPDX-License-Identifier: Apache-2.0 */
/* queue_test.c - spans on their way to a collector, which this program replaces. */
#include "otlp.h"

#include "core/base/clock.h"
#include "rpc/value/trace.h"

#include "../testing.h"

#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>

/* ---- the collector ------------------------------------------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tenrec_status answer; /* of a post */
static bool answers;         /* else a post lasts until its limit */
static unsigned posts;
static char *last; /* body of the last post */

static tenrec_status post(void *arg, const void *body, size_t len, uint32_t timeout_ms,
                          tenrec_error *err)
{
    const uint64_t until = clock_deadline_ms(timeout_ms);
    tenrec_status st;
    bool now;

    (void)arg;
    assert_in_range(timeout_ms, 1, QUEUE_POST_MS);
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

static void collector_answers(bool now, tenrec_status st)
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
    posts = 0;
    free(last);
    last = NULL;
    return 0;
}

/* ---- the core --------------------------------------------------------------------- */

TENREC_PRINTF(3, 4)
static void host_log(const void *self, enum tenrec_log_level level, const char *fmt, ...)
{
    (void)self, (void)level, (void)fmt;
}

static void host_span_done(struct tenrec_observer *self, struct tenrec_span *s, bool done)
{
    (void)self;
    trace_span_done(s, done);
}

static const struct tenrec_observer_host host = {
    .size = sizeof host,
    .log = host_log,
    .version = "1.2.3",
    .span_done = host_span_done,
};
static struct tenrec_observer observer = { .host = &host };

static struct queue *open_queue(void)
{
    struct queue *q;
    tenrec_error err;

    assert_status(queue_open(&observer, post, NULL, &q, &err), &err);
    return q;
}

/* ---- origins ---------------------------------------------------------------------- */

struct source {
    struct trace_sink sink; /* first */
    struct queue *queue;
};

static void source_add(struct trace_sink *sink, struct tenrec_span *s)
{
    queue_add(((struct source *)(void *)sink)->queue, s);
}

static struct source source_of(struct queue *q, const char *worker)
{
    return (struct source){
        .sink = { .origin = { "service", worker, "here", 7 }, .add = source_add },
        .queue = q,
    };
}

static void add(struct source *to, const char *function, unsigned n)
{
    struct trace_context t = { { 1 }, { 2 }, TRACE_SAMPLED };
    struct tenrec_span *s;

    while (n-- > 0) {
        s = trace_span_new(&to->sink, TENREC_SPAN_CLIENT, &t, false, function, "worker1");
        assert_non_null(s);
        trace_span_end(s, TENREC_OK, clock_now_ns());
    }
}

static uint64_t sent(const struct source *from)
{
    return atomic_load(&from->sink.sent);
}

static uint64_t dropped(const struct source *from)
{
    return atomic_load(&from->sink.dropped);
}

/* ---- cases ----------------------------------------------------------------------- */

static void spans_are_sent_within_their_period_and_in_batches(void **state)
{
    struct queue *q = open_queue();
    struct source from = source_of(q, "worker0");

    (void)state;
    collector_answers(true, TENREC_OK);
    add(&from, "f", 1);
    assert_becomes(sent(&from) == 1);
    add(&from, "f", 2 * QUEUE_BATCH_MAX + 1);
    assert_becomes(sent(&from) == 2 * QUEUE_BATCH_MAX + 2);
    assert_in_range(count_posts(), 4, 5); /* the thread may take one while they are added */
    assert_int_equal(dropped(&from), 0);
    queue_close(q);
}

static void a_worker_that_ends_sends_what_is_left(void **state)
{
    struct queue *q = open_queue();
    struct source from = source_of(q, "worker0"), other = source_of(q, "worker1");
    const uint64_t begun = clock_now_ns();

    (void)state;
    collector_answers(true, TENREC_OK);
    add(&from, "f", 3);
    add(&other, "f", 2);
    queue_leave(q, &from.sink.origin);
    assert_int_equal(sent(&from), 3);
    assert_true(clock_now_ns() - begun < UINT64_C(900000000) * testing_slow());
    queue_leave(q, &other.sink.origin);
    queue_close(q);
}

static void a_silent_collector_delays_an_end_by_a_second_at_most(void **state)
{
    struct queue *q = open_queue();
    struct source from = source_of(q, "worker0");
    uint64_t begun;

    (void)state;
    collector_answers(false, TENREC_OK);
    add(&from, "f", 3 * QUEUE_BATCH_MAX);
    assert_becomes(count_posts() == 1); /* one is under way */
    begun = clock_now_ns();
    queue_leave(q, &from.sink.origin);
    assert_true(clock_now_ns() - begun < UINT64_C(1300000000) * testing_slow());
    assert_int_equal(sent(&from), 0);
    collector_answers(true, TENREC_OK);
    queue_close(q); /* a batch that is still sent has no origin, and is not counted */
    assert_int_equal(sent(&from), 0);
}

static void beyond_the_bound_spans_are_dropped_and_counted(void **state)
{
    struct queue *q = open_queue();
    struct source from = source_of(q, "worker0");

    (void)state;
    collector_answers(false, TENREC_OK);
    add(&from, "f", QUEUE_BATCH_MAX);
    assert_becomes(count_posts() == 1); /* these have left the queue */
    add(&from, "f", QUEUE_MAX + 7);
    assert_int_equal(dropped(&from), 7);
    collector_answers(true, TENREC_OK);
    assert_becomes(sent(&from) == QUEUE_BATCH_MAX + QUEUE_MAX);
    queue_close(q);
}

static void refused_spans_are_dropped_others_sent_again(void **state)
{
    struct queue *q = open_queue();
    struct source from = source_of(q, "worker0");

    (void)state;
    collector_answers(true, TENREC_EPERM);
    add(&from, "f", QUEUE_BATCH_MAX);
    assert_becomes(dropped(&from) == QUEUE_BATCH_MAX);
    collector_answers(true, TENREC_ECONNECT);
    add(&from, "f", QUEUE_BATCH_MAX);
    assert_becomes(count_posts() == 2);
    collector_answers(true, TENREC_OK);
    assert_becomes(sent(&from) == QUEUE_BATCH_MAX);
    assert_int_equal(count_posts(), 3);
    queue_close(q);
}

static const char *string_at(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

/* The spans of the ith origin of the last request. */
static json_t *spans_of(const json_t *root, size_t i)
{
    const json_t *resource = json_array_get(json_object_get(root, "resourceSpans"), i);
    const json_t *scope = json_array_get(json_object_get(resource, "scopeSpans"), 0);

    return json_object_get(scope, "spans");
}

static void a_request_has_the_spans_of_each_origin_apart(void **state)
{
    static const char odd[] = "quote\"back\\slash\ttab";
    struct queue *q = open_queue();
    struct source from = source_of(q, "a \"worker\""), other = source_of(q, "worker1");
    const json_t *span;
    json_error_t why;
    json_t *root;

    (void)state;
    collector_answers(true, TENREC_OK);
    add(&from, odd, 1);
    add(&other, "g", 1);
    add(&from, "f", 1);
    queue_leave(q, &from.sink.origin);
    queue_leave(q, &other.sink.origin);
    queue_close(q);
    assert_int_equal(count_posts(), 1);
    root = json_loads(last, JSON_REJECT_DUPLICATES, &why);
    if (!root)
        fail_msg("%s in %s", why.text, last);
    assert_int_equal(json_array_size(spans_of(root, 0)), 2);
    assert_int_equal(json_array_size(spans_of(root, 1)), 1);
    span = json_array_get(spans_of(root, 0), 0);
    assert_string_equal(string_at(span, "name"), odd);
    assert_string_equal(string_at(span, "traceId"), "01000000000000000000000000000000");
    assert_string_equal(string_at(span, "parentSpanId"), "0200000000000000");
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(spans_are_sent_within_their_period_and_in_batches, forget),
        cmocka_unit_test_setup(a_worker_that_ends_sends_what_is_left, forget),
        cmocka_unit_test_setup(a_silent_collector_delays_an_end_by_a_second_at_most, forget),
        cmocka_unit_test_setup(beyond_the_bound_spans_are_dropped_and_counted, forget),
        cmocka_unit_test_setup(refused_spans_are_dropped_others_sent_again, forget),
        cmocka_unit_test_setup(a_request_has_the_spans_of_each_origin_apart, forget),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);

    free(last);
    return failed;
}
