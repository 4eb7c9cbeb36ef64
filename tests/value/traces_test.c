/* SPDX-License-Identifier: Apache-2.0 */
/* traces_test.c - contexts on their way through three workers, and the spans of both sides of each
 * call, on the backend named in argv. */
#include <tenrec/trace.h>

#include "core/base/clock.h"
#include "observe/metrics/metrics.h"
#include "rpc/value/trace.h"

#include "../support/cluster.h"
#include "../testing.h"
#include "relay.h"
#include "rpc/call/calls.h"

#include <pthread.h>
#include <stdlib.h>

#define PARENT "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
#define UNSAMPLED "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"

enum { ID_LEN = 35, SPAN_AT = 36, SPAN_LEN = 16 }; /* of a text; with the version */

static struct cluster three;

/* ---- a sink that keeps the spans -------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tenrec_span *kept;
static size_t n_kept;

static void keep(struct trace_sink *sink, struct tenrec_span *s)
{
    (void)sink;
    pthread_mutex_lock(&lock);
    s->next = kept;
    kept = s;
    n_kept++;
    pthread_mutex_unlock(&lock);
}

static struct trace_sink sink = { .add = keep };

static size_t count_kept(void)
{
    size_t n;

    pthread_mutex_lock(&lock);
    n = n_kept;
    pthread_mutex_unlock(&lock);
    return n;
}

/* The span with that id as text in hex. */
static const struct tenrec_span *span_of(const char *id)
{
    char text[SPAN_LEN];

    for (const struct tenrec_span *s = kept; s; s = s->next) {
        trace_hex(s->span_id, sizeof s->span_id, text);
        if (memcmp(text, id, SPAN_LEN) == 0)
            return s;
    }
    fail_msg("no span has the id %.16s", id);
    return NULL;
}

static const struct tenrec_span *parent_of(const struct tenrec_span *s)
{
    char text[SPAN_LEN];

    trace_hex(s->parent, sizeof s->parent, text);
    return span_of(text);
}

static void forget_spans(void)
{
    struct tenrec_span *s;

    pthread_mutex_lock(&lock);
    while ((s = kept)) {
        kept = s->next;
        free(s);
    }
    n_kept = 0;
    pthread_mutex_unlock(&lock);
}

/* ---- three workers ------------------------------------------------------------ */

/* ratio < 0: no spans are kept */
static void open_three(double ratio)
{
    static const char *const extra[] = { "worker.num_worker_threads=2", NULL };

    cluster_open(&three, 3, extra, relay_register);
    for (size_t i = 0; ratio >= 0 && i < three.n; i++) {
        metrics_of(three.worker[i])->sink = &sink;
        atomic_store(&metrics_of(three.worker[i])->trace_below, trace_below(ratio));
        observe_turn(three.worker[i], OBSERVER_TRACES, true);
    }
}

static void close_three(void)
{
    for (size_t i = 0; i < three.n; i++) {
        observe_turn(three.worker[i], OBSERVER_TRACES, false);
        metrics_of(three.worker[i])->sink = NULL; /* the worker would stop and free it */
    }
    cluster_close(&three, TENREC_GRACEFUL);
    forget_spans();
}

/* Calls `function` through worker1 and worker2, and copies the contexts that these saw. */
static void call_through(const char *function, const char *traceparent,
                         char ret[2][TENREC_TRACEPARENT_SIZE])
{
    const struct tenrec_call_options options = { .size = sizeof options,
                                                 .traceparent = traceparent };
    struct tenrec_value way = tenrec_value_text("worker2"), *got = NULL;
    tenrec_error err;

    assert_status(
        tenrec_rpc_sync(three.worker[0], "worker1", function, &way, 1, &options, &got, &err), &err);
    assert_int_equal(got->n, 2);
    for (int i = 0; i < 2; i++)
        snprintf(ret[i], TENREC_TRACEPARENT_SIZE, "%s", got->u.array[i].u.text);
    tenrec_value_drop(got);
}

static const char *const ways[] = { "relay", "relay_inline", "relay_later" };
enum { WAYS = sizeof ways / sizeof *ways };

/* ---- contexts ------------------------------------------------------------------ */

static void a_context_given_by_the_program_travels_unchanged_where_no_span_is_made(void **state)
{
    char seen[2][TENREC_TRACEPARENT_SIZE];

    (void)state;
    open_three(-1);
    for (int i = 0; i < WAYS; i++) {
        call_through(ways[i], PARENT, seen);
        assert_string_equal(seen[0], PARENT);
        assert_string_equal(seen[1], PARENT);
    }
    close_three();
}

static void the_context_of_the_thread_is_that_of_its_calls(void **state)
{
    char seen[2][TENREC_TRACEPARENT_SIZE];
    struct tenrec_trace_scope scope;
    tenrec_error err;

    (void)state;
    open_three(-1);
    assert_status(tenrec_trace_enter(UNSAMPLED, &scope, &err), &err);
    call_through("relay", NULL, seen);
    assert_string_equal(seen[1], UNSAMPLED);
    call_through("relay", PARENT, seen); /* the options come first */
    assert_string_equal(seen[1], PARENT);
    tenrec_trace_leave(&scope);
    call_through("relay", NULL, seen);
    assert_string_equal(seen[0], "none");
    close_three();
}

/* Deliveries run on any waiting thread, so that a context might reach calls of others. */
static void a_call_without_a_context_gets_none_from_a_thread_that_has_one(void **state)
{
    const struct tenrec_call_options options = { .size = sizeof options, .traceparent = PARENT };
    char seen[2][TENREC_TRACEPARENT_SIZE];
    struct tenrec_value way[] = { tenrec_value_text("worker2"), tenrec_value_text("worker0") };
    struct tenrec_future *f[8];
    tenrec_error err;

    (void)state;
    open_three(-1);
    for (int i = 0; i < 8; i++)
        assert_status(tenrec_rpc_async(three.worker[0], "worker1", ways[i % WAYS], way, 2, &options,
                                       &f[i], &err),
                      &err);
    for (int i = 0; i < 20; i++) {
        call_through(ways[i % WAYS], NULL, seen);
        assert_string_equal(seen[0], "none");
        assert_string_equal(seen[1], "none");
    }
    for (int i = 0; i < 8; i++) {
        assert_status(tenrec_future_wait(f[i], CLUSTER_LONG_MS, &err), &err);
        assert_string_equal(tenrec_future_value(f[i])->u.array[2].u.text, PARENT);
        tenrec_future_drop(f[i]);
    }
    close_three();
}

static void a_wrong_text_is_refused_by_calls_and_creations(void **state)
{
    const struct tenrec_call_options options = { .size = sizeof options, .traceparent = "00-4BF9" };
    struct tenrec_future *f;
    struct tenrec_rref *r;
    tenrec_error err;

    (void)state;
    open_three(-1);
    assert_int_equal(
        tenrec_rpc_async(three.worker[0], "worker1", "relay", NULL, 0, &options, &f, &err),
        TENREC_EINVAL);
    assert_text_has(err.text, "call options: traceparent '00-4BF9' has 7 characters, expected 55");
    assert_int_equal(
        tenrec_remote(three.worker[0], "worker1", "relay", NULL, 0, &options, &r, &err),
        TENREC_EINVAL);
    close_three();
}

static void a_creation_carries_the_context(void **state)
{
    const struct tenrec_call_options options = { .size = sizeof options, .traceparent = PARENT };
    struct tenrec_value way = tenrec_value_text("worker2"), *got = NULL;
    struct tenrec_rref *r;
    tenrec_error err;

    (void)state;
    open_three(-1);
    assert_status(tenrec_remote(three.worker[0], "worker1", "relay", &way, 1, &options, &r, &err),
                  &err);
    assert_status(tenrec_rref_to_here(r, NULL, &got, &err), &err);
    assert_string_equal(got->u.array[1].u.text, PARENT);
    tenrec_value_drop(got);
    tenrec_rref_drop(r);
    close_three();
}

/* ---- spans ---------------------------------------------------------------------- */

static void check_span(const struct tenrec_span *s, enum tenrec_span_kind kind,
                       const char *function, const char *peer)
{
    assert_int_equal(s->kind, kind);
    assert_string_equal(s->function, function);
    if (peer)
        assert_string_equal(s->peer, peer);
    assert_int_equal(s->status, TENREC_OK);
    assert_true(s->start_ns > 0 && s->start_ns <= s->end_ns);
    assert_int_equal(s->remote, kind == TENREC_SPAN_SERVER);
}

/* worker0's side, worker1's, worker1's as a caller, worker2's: each the parent of the next. */
static void each_side_of_a_nested_call_is_a_span_below_the_one_before(void **state)
{
    char seen[2][TENREC_TRACEPARENT_SIZE];
    const struct tenrec_span *s;

    (void)state;
    open_three(0); /* the parent's flag decides */
    for (int i = 0; i < WAYS; i++) {
        call_through(ways[i], PARENT, seen);
        assert_becomes(count_kept() == 4);
        assert_memory_equal(seen[0], PARENT, ID_LEN);
        assert_memory_equal(seen[1], PARENT, ID_LEN);
        s = span_of(seen[1] + SPAN_AT);
        check_span(s, TENREC_SPAN_SERVER, ways[i], NULL);
        s = parent_of(s);
        check_span(s, TENREC_SPAN_CLIENT, ways[i], "worker2");
        s = parent_of(s);
        assert_ptr_equal(s, span_of(seen[0] + SPAN_AT));
        check_span(s, TENREC_SPAN_SERVER, ways[i], NULL);
        s = parent_of(s);
        check_span(s, TENREC_SPAN_CLIENT, ways[i], "worker1");
        assert_memory_equal(s->parent, "\x00\xf0\x67\xaa\x0b\xa9\x02\xb7", sizeof s->parent);
        forget_spans();
    }
    close_three();
}

static void the_ratio_decides_about_new_traces_only(void **state)
{
    static const uint8_t none[TRACE_SPAN_ID_SIZE];
    char seen[2][TENREC_TRACEPARENT_SIZE];

    (void)state;
    open_three(0);
    call_through("relay", NULL, seen);
    assert_string_equal(seen[0] + SPAN_AT + SPAN_LEN, "-02"); /* so no callee decides again */
    assert_string_equal(seen[0], seen[1]);
    close_three();
    assert_int_equal(count_kept(), 0);

    open_three(1);
    call_through("relay", NULL, seen);
    assert_becomes(count_kept() == 4);
    assert_memory_equal(parent_of(span_of(seen[0] + SPAN_AT))->parent, none, sizeof none);
    forget_spans();
    call_through("relay", UNSAMPLED, seen);
    assert_string_equal(seen[1], UNSAMPLED);
    close_three();
    assert_int_equal(count_kept(), 0);
}

static void calls_that_fail_are_spans_with_their_error(void **state)
{
    struct tenrec_value *got = NULL;
    tenrec_error err;

    (void)state;
    open_three(1);
    assert_int_equal(
        tenrec_rpc_sync(three.worker[0], "worker1", "missing", NULL, 0, NULL, &got, &err),
        TENREC_ENOFUNCTION);
    assert_int_equal(count_kept(), 1);
    assert_int_equal(kept->status, TENREC_ENOFUNCTION);
    assert_int_equal(kept->kind, TENREC_SPAN_CLIENT);
    close_three();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_context_given_by_the_program_travels_unchanged_where_no_span_is_made),
        cmocka_unit_test(the_context_of_the_thread_is_that_of_its_calls),
        cmocka_unit_test(a_call_without_a_context_gets_none_from_a_thread_that_has_one),
        cmocka_unit_test(a_wrong_text_is_refused_by_calls_and_creations),
        cmocka_unit_test(a_creation_carries_the_context),
        cmocka_unit_test(each_side_of_a_nested_call_is_a_span_below_the_one_before),
        cmocka_unit_test(the_ratio_decides_about_new_traces_only),
        cmocka_unit_test(calls_that_fail_are_spans_with_their_error),
    };

    if (argc > 1)
        cluster_use(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
