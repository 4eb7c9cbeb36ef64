/* SPDX-License-Identifier: Apache-2.0 */
/* The three completions of a batch, and the function of the owner that follows it; the backend in
 * argv is a faulty one. */
#include "../support/functions.h"
#include "../testing.h"
#include "region_support.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>

enum { N = 4096 };

static struct cluster c;
static struct tenrec_tensor *memory, *local;
static struct tenrec_region *r;
static struct tenrec_region_ref ref;
static atomic_int ran;
static struct tenrec_call *_Atomic held;

/* Returns [first byte, last byte, its argument], in the reader's own order of the two. */
static tenrec_status ends_of_memory(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    const unsigned char *byte = tenrec_tensor_data(memory);
    struct tenrec_value ends[3] = { tenrec_value_int(byte[0]), tenrec_value_int(byte[N - 1]) };
    const struct tenrec_value all = tenrec_value_array(ends, 3);
    const struct tenrec_value *given;

    (void)arg;
    atomic_fetch_add(&ran, 1);
    if (tenrec_call_get_args(call, err, "v", &given) != TENREC_OK)
        return TENREC_EINVAL;
    ends[2] = *given;
    return tenrec_call_return(call, &all, err);
}

static tenrec_status hold(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    (void)arg;
    (void)err;
    atomic_store(&held, call);
    return TENREC_OK;
}

static void add_functions(struct tenrec_worker *w, size_t rank)
{
    if (rank != 1)
        return;
    functions_offer(w, "ends", ends_of_memory, 0);
    functions_offer(w, "hold", hold, TENREC_LATER);
}

static void open_with(size_t n, const char *rules)
{
    char option[192];
    const char *extra[] = { option, NULL };

    snprintf(option, sizeof option, "backends.%s.options.rules=%s", cluster_backend(), rules);
    cluster_open(&c, n, extra, add_functions);
    memory = bytes_new(N, 1);
    local = bytes_new(N, 50);
    r = region_of(c.worker[1], memory, BOTH);
    ref = ref_of(r);
    atomic_store(&ran, 0);
    atomic_store(&held, NULL);
}

static void open_three(void)
{
    open_with(3, "[]");
}

static void answers_are_late(void)
{
    open_with(2, "[{ do: delay, on: [RESPONSE], by: 300ms }]");
}

static void close_all(void)
{
    tenrec_region_drop(r);
    cluster_close(&c, TENREC_GRACEFUL); /* first: functions of its threads have read the memory */
    tenrec_tensor_drop(memory);
    tenrec_tensor_drop(local);
}

/* A batch with options, which must be accepted. */
static struct tenrec_future *begin_with(const struct tenrec_bulk *e, size_t n,
                                        struct tenrec_bulk_options o)
{
    struct tenrec_future *f = NULL;
    tenrec_error err;

    o.size = sizeof o;
    assert_status(tenrec_bulk_async(c.worker[0], e, n, &o, &f, &err), &err);
    return f;
}

/* Returns the number of runs, after any that is under way. */
static int runs(void)
{
    const struct tenrec_value arg = tenrec_value_int(0);
    tenrec_error err;

    assert_status(tenrec_rpc_sync(c.worker[0], "worker1", "ends", &arg, 1, NULL, NULL, &err), &err);
    return atomic_load(&ran) - 1;
}

static tenrec_status end(struct tenrec_future *f, tenrec_error *err)
{
    return tenrec_future_wait(f, CLUSTER_LONG_MS, err);
}

/* ---- what the function does ------------------------------------------------------------ */

TEST_WITH(then_runs_once_and_sees_all_bytes, open_three, close_all)
{
    const struct tenrec_value arg = tenrec_value_text("applied");
    const struct tenrec_bulk e[] = { writing(&ref, 0, N / 2, local, 0),
                                     writing(&ref, N / 2, N / 2, local, N / 2) };
    const struct tenrec_bulk_options o = { .then = "ends", .args = &arg, .n_args = 1 };
    struct tenrec_future *f = begin_with(e, 2, o);
    const struct tenrec_value *v;
    tenrec_error err;

    assert_status(end(f, &err), &err);
    v = tenrec_future_value(f);
    assert_int_equal(v->type, TENREC_VALUE_ARRAY);
    assert_int_equal(v->u.array[0].u.integer, 50);
    assert_int_equal(v->u.array[1].u.integer, (unsigned char)(50 + N - 1));
    assert_string_equal(v->u.array[2].u.text, "applied");
    assert_int_equal(atomic_load(&ran), 1);
    tenrec_future_drop(f);
}

TEST_WITH(then_follows_entries_without_bytes, open_three, close_all)
{
    const struct tenrec_value arg = tenrec_value_tensor(local);
    const struct tenrec_bulk e = writing(&ref, 0, 0, local, 0);
    const struct tenrec_bulk_options o = { .then = "ends", .args = &arg, .n_args = 1 };
    struct tenrec_future *f = begin_with(&e, 1, o);
    tenrec_error err;

    assert_status(end(f, &err), &err);
    assert_true(bytes_are(tenrec_future_value(f)->u.array[2].u.tensor, 0, N, 50));
    tenrec_future_drop(f);
}

TEST_WITH(then_does_not_run_after_an_entry_that_failed, open_three, close_all)
{
    struct tenrec_region_ref forged = ref;
    struct tenrec_future *f, *visible;
    const struct tenrec_bulk_options o = { .then = "ends", .ret_visible = &visible };
    struct tenrec_bulk e[2];
    tenrec_error err;

    forged.key[0]++;
    e[0] = writing(&ref, 0, 64, local, 0);
    e[1] = writing(&forged, 64, 64, local, 0);
    f = begin_with(e, 2, o);
    assert_int_equal(end(f, &err), TENREC_EPERM);
    assert_text_has(err.text, "entry 1");
    assert_int_equal(end(visible, &err), TENREC_EPERM);
    assert_int_equal(runs(), 0);
    tenrec_future_drop(f);
    tenrec_future_drop(visible);
}

TEST_WITH(then_that_fails_fails_the_batch_whose_bytes_are_visible, open_three, close_all)
{
    struct tenrec_future *f, *g, *visible;
    const struct tenrec_bulk_options o = { .then = "ends", .ret_visible = &visible };
    const struct tenrec_bulk e = writing(&ref, 0, N, local, 0);
    tenrec_error err;

    f = begin_with(&e, 1, o);
    assert_int_equal(end(f, &err), TENREC_EINVAL);
    assert_true(err.flags & TENREC_ERROR_CALLEE);
    assert_status(end(visible, &err), &err);
    assert_true(bytes_are(memory, 0, N, 50));
    g = begin_with(&e, 1, (struct tenrec_bulk_options){ .then = "unknown" });
    assert_int_equal(end(g, &err), TENREC_ENOFUNCTION);
    assert_text_has(err.text, "unknown");
    tenrec_future_drop(f);
    tenrec_future_drop(g);
    tenrec_future_drop(visible);
}

/* ---- what is refused ----------------------------------------------------------------------- */

static void expect_refused(const struct tenrec_bulk *e, size_t n, struct tenrec_bulk_options o,
                           const char *text)
{
    struct tenrec_future *f, *visible, *is_free;
    tenrec_error err;

    o.size = sizeof o;
    o.ret_visible = &visible;
    o.ret_free = &is_free;
    assert_int_equal(tenrec_bulk_async(c.worker[0], e, n, &o, &f, &err), TENREC_EINVAL);
    assert_text_has(err.text, text);
    assert_null(f);
}

TEST_WITH(then_is_refused_where_it_cannot_run, open_three, close_all)
{
    const struct tenrec_value arg = { .type = TENREC_VALUE_INT, .flags = 1 };
    struct tenrec_region *other = region_of(c.worker[2], memory, BOTH);
    struct tenrec_region_ref of_other = ref_of(other);
    const struct tenrec_bulk e[] = { writing(&ref, 0, 8, local, 0),
                                     writing(&of_other, 0, 8, local, 0) };

    expect_refused(NULL, 0, (struct tenrec_bulk_options){ .then = "ends" }, "needs an entry");
    expect_refused(e, 2, (struct tenrec_bulk_options){ .then = "ends" }, "entry 1: 'then' runs at");
    expect_refused(e, 1, (struct tenrec_bulk_options){ .args = &arg, .n_args = 1 }, "no 'then'");
    expect_refused(e, 1, (struct tenrec_bulk_options){ .then = "ends", .n_args = 1 }, "args is");
    expect_refused(e, 1, (struct tenrec_bulk_options){ .then = "ends", .args = &arg, .n_args = 1 },
                   "then 'ends'");
    tenrec_region_drop(other);
}

/* ---- the completions ----------------------------------------------------------------------- */

TEST_WITH(batch_completes_in_three_steps, answers_are_late, close_all)
{
    struct tenrec_future *f, *visible, *is_free;
    const struct tenrec_bulk_options o = { .then = "hold",
                                           .ret_visible = &visible,
                                           .ret_free = &is_free };
    const struct tenrec_bulk e = writing(&ref, 0, N, local, 0);
    const struct tenrec_value done = tenrec_value_int(7);
    tenrec_error err;

    f = begin_with(&e, 1, o);
    assert_status(end(is_free, &err), &err);
    assert_false(tenrec_future_done(visible));
    assert_status(end(visible, &err), &err);
    assert_true(bytes_are(memory, 0, N, 50));
    assert_becomes(atomic_load(&held));
    assert_false(tenrec_future_done(f));
    assert_status(tenrec_call_return(atomic_load(&held), &done, &err), &err);
    tenrec_call_finish(atomic_load(&held), NULL);
    assert_status(end(f, &err), &err);
    assert_int_equal(tenrec_future_value(f)->u.integer, 7);
    tenrec_future_drop(f);
    tenrec_future_drop(visible);
    tenrec_future_drop(is_free);
}

TEST_WITH(buffers_are_free_also_after_a_timeout, answers_are_late, close_all)
{
    struct tenrec_future *f, *visible, *is_free;
    const struct tenrec_bulk_options o = {
        .timeout_ms = 50, .then = "ends", .ret_visible = &visible, .ret_free = &is_free
    };
    const struct tenrec_bulk e[] = { reading(&ref, 0, N / 2, local, 0),
                                     writing(&ref, 0, N / 2, local, N / 2) };
    tenrec_error err;

    f = begin_with(e, 2, o);
    assert_int_equal(end(f, &err), TENREC_ETIMEDOUT);
    assert_int_equal(end(visible, &err), TENREC_ETIMEDOUT);
    assert_status(end(is_free, &err), &err);
    assert_becomes(tenrec_region_pending(r) == 0);
    assert_int_equal(runs(), 0);
    tenrec_future_drop(f);
    tenrec_future_drop(visible);
    tenrec_future_drop(is_free);
}

TEST_WITH(then_does_not_run_after_a_cancel, answers_are_late, close_all)
{
    struct tenrec_future *f, *visible;
    const struct tenrec_bulk_options o = { .then = "ends", .ret_visible = &visible };
    const struct tenrec_bulk e = writing(&ref, 0, N, local, 0);
    tenrec_error err;

    f = begin_with(&e, 1, o);
    tenrec_future_cancel(f);
    assert_int_equal(end(f, &err), TENREC_ECANCELED);
    assert_status(end(visible, &err), &err);
    assert_int_equal(runs(), 0);
    tenrec_future_drop(f);
    tenrec_future_drop(visible);
}

static void count(struct tenrec_future *f, void *arg)
{
    (void)f;
    atomic_fetch_add((atomic_int *)arg, 1);
}

TEST_WITH(batch_is_done_before_the_loop_of_the_program_runs_its_callbacks, open_three, close_all)
{
    const struct tenrec_value arg = tenrec_value_int(1);
    const struct tenrec_bulk e = writing(&ref, 0, N, local, 0);
    const struct tenrec_bulk_options o = { .then = "ends", .args = &arg, .n_args = 1 };
    struct pollfd loop = { .events = POLLIN };
    struct tenrec_future *f;
    atomic_int called = 0;
    tenrec_error err;

    assert_status(tenrec_worker_get_fd(c.worker[0], &loop.fd, &err), &err);
    f = begin_with(&e, 1, o);
    assert_status(tenrec_future_add_callback(f, count, &called, &err), &err);
    assert_status(end(f, &err), &err);
    assert_int_equal(atomic_load(&called), 0);
    assert_int_equal(poll(&loop, 1, CLUSTER_LONG_MS), 1);
    assert_int_equal(tenrec_worker_dispatch(c.worker[0]), 1);
    assert_int_equal(atomic_load(&called), 1);
    tenrec_future_drop(f);
}

TEST_MAIN(cluster_use(argv[1]), NULL, NULL)
