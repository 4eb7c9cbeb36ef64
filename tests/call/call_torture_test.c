/* SPDX-License-Identifier: Apache-2.0 */
/* call_torture_test.c - calls while each allocation and each send fails once.
 *
 * The call ends with the error or with its result, nothing leaks, and the next call
 * works. */
#include "../support/cluster.h"
#include "../support/functions.h"
#include "../support/tensors.h"
#include "../support/torture.h"
#include "../testing.h"
#include "core/backend/backend.h"

#include <pthread.h>

enum {
    SHORT_MS = 100, /* of a call whose answer may be lost */
    DRAINED = 1024, /* more messages than are kept for the next use */
};

static struct cluster two;
static struct tenrec_msg *drained[DRAINED];
/* The callee's thread drains, the caller's refills: that a message passed between them
 * through a ring mapped twice is no order that a thread sanitizer knows. */
static pthread_mutex_t drained_lock = PTHREAD_MUTEX_INITIALIZER;

static void drain(void)
{
    pthread_mutex_lock(&drained_lock);
    for (size_t i = 0; i < DRAINED; i++)
        assert_non_null(drained[i] = message_new(0, 0));
    pthread_mutex_unlock(&drained_lock);
}

static void refill(void)
{
    pthread_mutex_lock(&drained_lock);
    for (size_t i = 0; i < DRAINED; i++)
        if (drained[i])
            drained[i]->release(drained[i]);
    memset(drained, 0, sizeof drained);
    pthread_mutex_unlock(&drained_lock);
}

/* Fails all later allocations: for the result, and for the error instead of it. */
static tenrec_status starve(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    const struct tenrec_value v = tenrec_value_int(42);

    (void)arg;
    drain();
    torture_on();
    return tenrec_call_return(call, &v, err);
}

static void register_all(struct tenrec_worker *w, size_t me)
{
    tenrec_error err;

    functions_register(w, me);
    assert_status(tenrec_worker_register_function(w, "starve", starve, NULL, TENREC_POOL, &err),
                  &err);
    assert_status(
        tenrec_worker_register_function(w, "starve_inline", starve, NULL, TENREC_INLINE, &err),
        &err);
}

static void open_two(void)
{
    torture_register();
    cluster_open(&two, 2, NULL, register_all);
}

static void close_two(void)
{
    cluster_close(&two, TENREC_GRACEFUL);
}

static tenrec_status add_with(const char *function, int64_t timeout_ms, tenrec_error *err)
{
    const struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = timeout_ms };
    const struct tenrec_value args[] = { tenrec_value_int(2), tenrec_value_int(40) };
    struct tenrec_value *got = NULL;
    tenrec_status st = tenrec_rpc_sync(two.worker[0], "worker1", function, args, 2, &o, &got, err);

    if (st == TENREC_OK)
        assert_int_equal(got->u.integer, 42);
    tenrec_value_drop(got);
    return st;
}

/* A connection that had no memory even to say so is broken: calls fail until the
 * backend has put it away, and then go over a new one. */
static void expect_works(void)
{
    assert_becomes(add_with("add", CLUSTER_LONG_MS, NULL) == TENREC_OK);
}

static tenrec_status one_call(void *arg, tenrec_error *err)
{
    tenrec_status st;

    torture_on();
    st = add_with(arg, SHORT_MS, err);
    torture_off();
    expect_works();
    return st;
}

/* A tensor there and back, as arguments and result need all memory there is. */
static tenrec_status one_tensor(void *arg, tenrec_error *err)
{
    static float data[1024];
    const struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = SHORT_MS };
    const int64_t shape[] = { 1024 };
    struct tenrec_value *got = NULL, v;
    struct tenrec_tensor *t = NULL;
    tenrec_status st;

    (void)arg;
    torture_on();
    st = tensors_view(data, sizeof data, TENREC_FLOAT32, 1, shape, NULL, &t, err);
    if (st == TENREC_OK) {
        v = tenrec_value_tensor(t);
        st = tenrec_rpc_sync(two.worker[0], "worker1", "identity", &v, 1, &o, &got, err);
    }
    tenrec_value_drop(got);
    tenrec_tensor_drop(t);
    torture_off();
    expect_works();
    return st;
}

static void torture_calls(enum torture_kind kind, unsigned least)
{
    static const char *const function[] = { "add", "add_inline" };

    for (size_t i = 0; i < 2; i++)
        assert_true(torture(kind, 1, one_call, (void *)(uintptr_t)function[i]) >= least);
    assert_true(torture(kind, 1, one_tensor, NULL) >= least);
}

TEST(call_ends_when_any_allocation_fails)
{
    torture_calls(TORTURE_ALLOCATIONS, 1);
}

TEST(call_ends_when_several_allocations_fail)
{
    torture(TORTURE_ALLOCATIONS, 3, one_tensor, NULL);
}

static unsigned answered; /* calls that their callee answered without memory */

static tenrec_status one_starved(void *arg, tenrec_error *err)
{
    const struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = CLUSTER_LONG_MS };
    struct tenrec_value *got = NULL;
    tenrec_status st = tenrec_rpc_sync(two.worker[0], "worker1", arg, NULL, 0, &o, &got, err);

    torture_off();
    refill();
    tenrec_value_drop(got);
    assert_int_not_equal(st, TENREC_ETIMEDOUT);
    answered += st == TENREC_ENOMEM && err->worker == 1;
    expect_works();
    return st;
}

TEST(call_ends_with_an_error_when_its_callee_has_no_memory)
{
    static const char *const function[] = { "starve", "starve_inline" };

    for (size_t i = 0; i < 2; i++) {
        answered = 0;
        torture(TORTURE_ALLOCATIONS, 2, one_starved, (void *)(uintptr_t)function[i]);
        assert_true(answered > 0);
    }
}

TEST(call_ends_when_any_send_fails)
{
    torture_calls(TORTURE_SENDS, 2); /* the request, the answer */
}

TEST(call_ends_when_any_message_is_sent_but_reported_failed)
{
    torture_calls(TORTURE_REPORTS, 2);
}

TEST(call_ends_when_any_message_is_lost)
{
    torture_calls(TORTURE_ARRIVALS, 2);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cluster_use(argv[1]);
    return testing_run(open_two, close_two);
}
