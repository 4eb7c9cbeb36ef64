/* SPDX-License-Identifier: Apache-2.0 */
/* mailbox_test.c - calls that the program receives. */
#include "../support/cluster.h"
#include "../support/functions.h"
#include "../testing.h"
#include "rpc/call/calls.h"

#include <pthread.h>

static struct cluster two;
static tenrec_error err;

static void register_box(struct tenrec_worker *w, size_t rank)
{
    functions_register(w, rank);
    assert_status(tenrec_worker_register_function(w, "part", NULL, NULL, TENREC_MAILBOX, &err),
                  &err);
}

static void open_two(void)
{
    static const char *const few[] = { "worker.max_queued_calls=2", NULL };

    cluster_open(&two, 2, few, register_box);
}

static void close_two(void)
{
    cluster_close(&two, TENREC_GRACEFUL);
}

/* A call of worker 0 that waits in the mailbox of worker 1. */
static struct tenrec_future *send_part(int64_t n)
{
    const struct tenrec_value arg = tenrec_value_int(n);
    const uint64_t before = atomic_load(&two.worker[1]->calls->counts.taken);
    struct tenrec_future *f = NULL;

    assert_status(tenrec_rpc_async(two.worker[0], "worker1", "part", &arg, 1, NULL, &f, &err),
                  &err);
    assert_becomes(atomic_load(&two.worker[1]->calls->counts.taken) > before);
    return f;
}

static tenrec_status receive(int64_t ms, struct tenrec_call **ret)
{
    return tenrec_worker_receive(two.worker[1], "part", ms, ret, &err);
}

/* Receives a call with this argument, and answers it with the double. */
static void answer_part(int64_t n)
{
    struct tenrec_call *call = NULL;
    struct tenrec_value twice = tenrec_value_int(2 * n);
    int64_t got = 0;

    assert_status(receive(CLUSTER_LONG_MS, &call), &err);
    assert_status(tenrec_call_get_args(call, &err, "i", &got), &err);
    assert_int_equal(got, n);
    assert_status(tenrec_call_return(call, &twice, &err), &err);
    tenrec_call_finish(call, NULL);
}

static void is_answered(struct tenrec_future *f, int64_t n)
{
    assert_status(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), &err);
    assert_int_equal(tenrec_future_value(f)->u.integer, 2 * n);
    tenrec_future_drop(f);
}

TEST_WITH(mailbox_gives_out_calls_in_order, open_two, close_two)
{
    struct tenrec_future *first = send_part(1), *second = send_part(2);

    answer_part(1);
    answer_part(2);
    is_answered(first, 1);
    is_answered(second, 2);
}

static void *answer_seven(void *arg)
{
    (void)arg;
    answer_part(7);
    return NULL;
}

TEST_WITH(mailbox_wakes_a_receiver_that_waits, open_two, close_two)
{
    struct tenrec_future *f;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, answer_seven, NULL), 0);
    f = send_part(7);
    is_answered(f, 7);
    pthread_join(thread, NULL);
}

TEST_WITH(mailbox_receive_ends_at_its_deadline, open_two, close_two)
{
    struct tenrec_call *call;

    assert_int_equal(receive(1, &call), TENREC_ETIMEDOUT);
    assert_string_equal(err.text, "'part' received no call within 1 ms");
    assert_null(call);
}

TEST_WITH(mailbox_refuses_calls_beyond_the_limit_of_the_queue, open_two, close_two)
{
    struct tenrec_future *first = send_part(1), *second = send_part(2), *third = send_part(3);

    assert_int_equal(tenrec_future_wait(third, CLUSTER_LONG_MS, &err), TENREC_EAGAIN);
    assert_text_has(err.text, "mailbox 'part' is full");
    tenrec_future_drop(third);
    answer_part(1);
    answer_part(2);
    is_answered(first, 1);
    is_answered(second, 2);
}

static void find_canceled(void *arg, struct tenrec_call *c)
{
    *(bool *)arg = atomic_load(&c->canceled);
}

static bool one_is_canceled(void)
{
    bool canceled = false;

    active_calls_each(&two.worker[1]->calls->active_calls, find_canceled, &canceled);
    return canceled;
}

TEST_WITH(mailbox_skips_a_call_whose_caller_has_given_up, open_two, close_two)
{
    struct tenrec_future *gone = send_part(1), *next;

    tenrec_future_cancel(gone);
    tenrec_future_drop(gone);
    assert_becomes(one_is_canceled());
    next = send_part(2);
    answer_part(2);
    is_answered(next, 2);
}

static void *receive_shutdown(void *arg)
{
    struct tenrec_call *call;

    *(tenrec_status *)arg = receive(CLUSTER_LONG_MS, &call);
    return NULL;
}

TEST_WITH(mailbox_ends_receives_and_refuses_calls_when_the_worker_stops, open_two, close_two)
{
    struct tenrec_future *f;
    tenrec_status st = TENREC_OK;
    struct tenrec_call *call;
    pthread_t thread;

    f = send_part(1);
    serve_stop(two.worker[1]);
    assert_int_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), TENREC_ESHUTDOWN);
    tenrec_future_drop(f);
    assert_int_equal(receive(CLUSTER_LONG_MS, &call), TENREC_ESHUTDOWN);
    serve_resume(two.worker[1]);
    assert_int_equal(pthread_create(&thread, NULL, receive_shutdown, &st), 0);
    serve_stop(two.worker[1]);
    pthread_join(thread, NULL);
    assert_int_equal(st, TENREC_ESHUTDOWN);
    serve_resume(two.worker[1]);
}

static tenrec_status inline_receive(struct tenrec_call *call, void *arg, tenrec_error *why)
{
    struct tenrec_call *got;

    (void)arg;
    return tenrec_worker_receive(tenrec_call_worker(call), "part", 1, &got, why);
}

TEST_WITH(mailbox_receive_refuses_what_it_cannot_do, open_two, close_two)
{
    struct tenrec_worker *w = two.worker[1];
    struct tenrec_call *call;

    assert_int_equal(tenrec_worker_receive(w, "none", 1, &call, &err), TENREC_ENOTFOUND);
    assert_int_equal(tenrec_worker_receive(w, "noop", 1, &call, &err), TENREC_ENOTFOUND);
    assert_int_equal(receive(-1, &call), TENREC_EINVAL);
    assert_status(
        tenrec_worker_register_function(w, "inline", inline_receive, NULL, TENREC_INLINE, &err),
        &err);
    assert_int_equal(tenrec_rpc_sync(two.worker[0], "worker1", "inline", NULL, 0, NULL, NULL, &err),
                     TENREC_EWOULDBLOCK);
    assert_int_equal(
        tenrec_worker_register_function(w, "x", inline_receive, NULL, TENREC_MAILBOX, &err),
        TENREC_EINVAL);
    assert_int_equal(
        tenrec_worker_register_function(w, "x", NULL, NULL, TENREC_MAILBOX | TENREC_INLINE, &err),
        TENREC_EINVAL);
    assert_int_equal(tenrec_worker_register_function(w, "x", NULL, NULL, 0, &err), TENREC_EINVAL);
    assert_int_equal(tenrec_worker_register_function(w, "part", NULL, NULL, TENREC_MAILBOX, &err),
                     TENREC_EEXIST);
}
