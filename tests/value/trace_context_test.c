/* SPDX-License-Identifier: Apache-2.0 */
/* trace_context_test.c - the text of a context as W3C Trace Context defines it, and new ids. */
#include <tenrec/trace.h>

#include "rpc/value/trace.h"

#include "../testing.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define ID "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN "00f067aa0ba902b7"

static void texts_of_a_context_are_read_and_printed(void **state)
{
    static const struct {
        const char *text, *printed;
    } row[] = {
        { "00-" ID "-" SPAN "-01", "00-" ID "-" SPAN "-01" },
        { "00-" ID "-" SPAN "-00", "00-" ID "-" SPAN "-00" },
        { "00-" ID "-" SPAN "-03", "00-" ID "-" SPAN "-03" },
        /* Flags without a meaning are not passed on. */
        { "00-" ID "-" SPAN "-ff", "00-" ID "-" SPAN "-03" },
        { "00-00000000000000000000000000000001-0000000000000001-00",
          "00-00000000000000000000000000000001-0000000000000001-00" },
        /* A later version may append fields; of its flags only the first is known. */
        { "01-" ID "-" SPAN "-01", "00-" ID "-" SPAN "-01" },
        { "cc-" ID "-" SPAN "-03-what-the-future-will-be-like", "00-" ID "-" SPAN "-01" },
        { "fe-" ID "-" SPAN "-01-", "00-" ID "-" SPAN "-01" },
    };
    struct trace_context t;
    char text[TRACE_TEXT_SIZE];
    tenrec_error err;

    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        assert_status(trace_context_parse(row[i].text, &t, &err), &err);
        trace_context_print(&t, text);
        assert_string_equal(text, row[i].printed);
    }
}

static void wrong_texts_are_refused_with_the_place(void **state)
{
    static const struct {
        const char *text, *said;
    } row[] = {
        { "", "has 0 characters, expected 55" },
        { "00-" ID "-" SPAN "-0", "has 54 characters, expected 55" },
        { "00-" ID "-" SPAN "-01-", "has 56 characters, expected 55 in version 00" },
        { "00-" ID "-" SPAN "-011", "has 56 characters, expected 55 in version 00" },
        { "cc-" ID "-" SPAN "-01.what-the-future-will-be-like", "or a '-' behind them" },
        { "ff-" ID "-" SPAN "-01", "there is no version ff" },
        { "0x-" ID "-" SPAN "-01", "character 2 is 'x', expected a digit or a letter from a to f" },
        { ".0-" ID "-" SPAN "-01", "character 1 is '.'" },
        { "00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01", "character 5 is 'B'" },
        { "00_" ID "-" SPAN "-01", "character 3 is '_', expected '-'" },
        { "00-" ID "." SPAN "-01", "character 36 is '.', expected '-'" },
        { "00-" ID "-" SPAN ".01", "character 53 is '.', expected '-'" },
        { "00-" ID "-00f067aa0ba902bZ-01", "character 52 is 'Z'" },
        { "00-" ID "-" SPAN "-0X", "character 55 is 'X'" },
        { "00-00000000000000000000000000000000-" SPAN "-01", "the id of the trace is zero" },
        { "00-" ID "-0000000000000000-01", "the id of the span is zero" },
        { "01-" ID "-0000000000000000-01", "the id of the span is zero" },
    };
    struct trace_context t = { .flags = 7 };
    tenrec_error err;

    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        assert_int_equal(trace_context_parse(row[i].text, &t, &err), TENREC_EINVAL);
        if (!strstr(err.text, row[i].said))
            fail_msg("'%s' is missing in: %s", row[i].said, err.text);
        assert_int_equal(t.flags, 7);
    }
}

static void a_ratio_decides_about_new_traces(void **state)
{
    enum { N = 20000 };
    struct trace_context t;
    unsigned sampled = 0;

    (void)state;
    assert_true(trace_below(0) == 0);
    for (int i = 0; i < N; i++) {
        assert_true(trace_context_root(&t, 0));
        assert_int_equal(t.flags, TRACE_RANDOM);
        assert_true(trace_context_root(&t, trace_below(1)));
        assert_int_equal(t.flags, TRACE_RANDOM | TRACE_SAMPLED);
        assert_true(trace_context_valid(&t));
        assert_true(trace_context_root(&t, trace_below(0.25)));
        /* By the last seven bytes, as other libraries decide. */
        assert_int_equal((t.flags & TRACE_SAMPLED) != 0, t.trace_id[9] < 0x40);
        sampled += t.flags & TRACE_SAMPLED;
    }
    assert_in_range(sampled, N / 4 - N / 40, N / 4 + N / 40); /* 16 times the deviation */
}

static void *draw(void *arg)
{
    assert_true(trace_random(arg));
    return NULL;
}

static void ids_differ_between_threads_and_after_a_fork(void **state)
{
    uint64_t here, there;
    pthread_t thread;
    int pipe_fd[2], status;
    pid_t child;

    (void)state;
    assert_true(trace_random(&here));
    assert_int_equal(pthread_create(&thread, NULL, draw, &there), 0);
    pthread_join(thread, NULL);
    assert_true(here != there);
    assert_int_equal(pipe(pipe_fd), 0);
    child = fork();
    if (child == 0) {
        trace_random_renew(); /* as the start of a worker does */
        _exit(!trace_random(&there) || write(pipe_fd[1], &there, sizeof there) != sizeof there);
    }
    assert_true(trace_random(&here));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(read(pipe_fd[0], &there, sizeof there), sizeof there);
    assert_true(here != there);
    close(pipe_fd[0]);
    close(pipe_fd[1]);
}

static void the_context_of_a_thread_is_entered_and_left(void **state)
{
    struct tenrec_trace_scope outer, inner;
    char text[TENREC_TRACEPARENT_SIZE];
    tenrec_error err;

    (void)state;
    assert_false(tenrec_trace_get_current(text));
    assert_status(tenrec_trace_enter("00-" ID "-" SPAN "-01", &outer, &err), &err);
    assert_int_equal(tenrec_trace_enter("00-" ID "-" SPAN "-1", &inner, &err), TENREC_EINVAL);
    assert_true(tenrec_trace_get_current(text)); /* unchanged */
    assert_string_equal(text, "00-" ID "-" SPAN "-01");
    assert_status(tenrec_trace_enter(NULL, &inner, &err), &err);
    assert_false(tenrec_trace_get_current(text));
    tenrec_trace_leave(&inner);
    assert_true(tenrec_trace_get_current(text));
    assert_string_equal(text, "00-" ID "-" SPAN "-01");
    tenrec_trace_leave(&outer);
    assert_false(tenrec_trace_get_current(text));
    assert_int_equal(tenrec_trace_enter(NULL, NULL, &err), TENREC_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_a_context_are_read_and_printed),
        cmocka_unit_test(wrong_texts_are_refused_with_the_place),
        cmocka_unit_test(a_ratio_decides_about_new_traces),
        cmocka_unit_test(ids_differ_between_threads_and_after_a_fork),
        cmocka_unit_test(the_context_of_a_thread_is_entered_and_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
