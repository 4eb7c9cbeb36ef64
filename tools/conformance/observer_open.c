/* SPDX-License-Identifier: Apache-2.0 */
/* observer_open.c - opening and closing, the ways of spans, and workers that leave. */
#include "conformance/observer_fixture.h"

#include "conformance/case.h"

#include <pthread.h>

static const struct tenrec_origin workers[] = { { "service", "worker0", "here", 1 },
                                                { "service", "worker1", "here", 1 } };

static void observer_needs_spans(void)
{
    if (!TENREC_HAS(observer.ops, span)) {
        observer_fixture_close();
        expect_not_offered("spans");
    }
}

OBSERVER_CASE(the_file_of_an_observer_exports_no_other_symbol, "PL-1")
{
    case_check_exports(observer_fixture_path());
}

/* The first life may fill caches of libraries. */
OBSERVER_CASE(an_observer_opens_and_closes, "OB-3 OB-9")
{
    struct leftover before;

    observer_fixture_open();
    expect_of("OB-3");
    observer_fixture_close();
    before = leftover_count();
    expect_of(NULL);
    observer_fixture_open();
    expect_of("OB-3");
    observer_fixture_close();
    leftover_expect_threads(before);
    leftover_expect_fds(before);
}

OBSERVER_CASE(a_refused_address_has_a_reason_and_leaves_nothing, "OB-9")
{
    struct leftover before = { 0 };
    tenrec_error err;

    for (int i = 0; i < 3; i++) {
        if (observer_fixture_try("", &err) == TENREC_OK) {
            observer_fixture_close();
            expect_not_offered("an address that is refused");
        }
        if (!err.text[0])
            expect_fail("an empty address is refused without a text");
        if (i == 0) /* the first may fill a cache of a library */
            before = leftover_count();
    }
    leftover_expect_threads(before);
    leftover_expect_fds(before);
}

static void *add_spans(void *arg)
{
    for (int i = 0; i < 40; i++)
        observer_fixture_span(&workers[i % 2]);
    return arg;
}

OBSERVER_CASE(each_span_is_done_once, "OB-4")
{
    enum { THREADS = 4 };
    pthread_t thread[THREADS];

    observer_fixture_open();
    observer_needs_spans();
    for (int i = 0; i < THREADS; i++)
        expect_here(pthread_create(&thread[i], NULL, add_spans, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    observer_fixture_leave(&workers[0]);
    observer_fixture_leave(&workers[1]);
    observer_fixture_close();
    expect_equal(observer_fixture_done(), THREADS * 40,
                 "the number of spans that are done at the end");
}

OBSERVER_CASE(a_worker_that_leaves_is_forgotten_within_a_second, "OB-5")
{
    int before;

    observer_fixture_open();
    observer_needs_spans();
    add_spans(NULL);
    observer_fixture_leave(&workers[0]);
    before = observer_fixture_done_of(&workers[0]);
    observer_fixture_leave(&workers[1]);
    observer_fixture_close();
    expect_equal(observer_fixture_done_of(&workers[0]) - before, 0,
                 "the number of spans that name a worker which has left");
}
