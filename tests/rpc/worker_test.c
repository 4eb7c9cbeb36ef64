/* worker_test.c - calls between real workers, on the backend named in argv. */
#include "../support/cluster.h"
#include "functions.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static struct cluster two; /* worker0 and worker1, for most cases */
static atomic_int warnings;

static int open_two(void **state)
{
    static const char *const extra[] = { "worker.num_worker_threads=2", NULL };

    (void)state;
    cluster_open(&two, 2, extra, functions_register);
    return 0;
}

static int close_two(void **state)
{
    (void)state;
    functions_open_gate();
    cluster_close(&two, TENREC_GRACEFUL);
    return 0;
}

static struct tenrec_value *call(const char *to, const char *fn, const struct tenrec_value *args,
                                 size_t n)
{
    struct tenrec_value *got = NULL;
    tenrec_error err;

    if (tenrec_rpc_sync(two.worker[0], to, fn, args, n, NULL, &got, &err) != TENREC_OK)
        fail_msg("%s on %s: %s: %s", fn, to, tenrec_status_name(err.code), err.text);
    return got;
}

static tenrec_status call_fails(const char *to, const char *fn, const struct tenrec_value *args,
                                size_t n, int64_t timeout_ms, tenrec_error *err)
{
    struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = timeout_ms };

    return tenrec_rpc_sync(two.worker[0], to, fn, args, n, &o, NULL, err);
}

static void worker_returns_the_sum_when_add_is_called(void **state)
{
    static const char *const fn[] = { "add", "add_inline" };
    const struct tenrec_value args[] = { tenrec_int(2), tenrec_int(40) };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct tenrec_value *got = call("worker1", fn[i], args, 2);
        assert_int_equal(got->type, TENREC_VALUE_INT);
        assert_int_equal(got->u.integer, 42);
        tenrec_value_drop(got);
    }
}

static void worker_calls_itself(void **state)
{
    const struct tenrec_value args[] = { tenrec_int(1), tenrec_int(2) };
    struct tenrec_value *got = call("worker0", "add", args, 2);

    (void)state;
    assert_int_equal(got->u.integer, 3);
    tenrec_value_drop(got);
}

static void worker_gives_every_value_back_when_identity_is_called(void **state)
{
    const struct tenrec_entry entry[] = { { "k", tenrec_int(1) }, { "l", tenrec_text("v") } };
    const struct tenrec_value item[] = { tenrec_int(-5), tenrec_bool(true) };
    const struct tenrec_value args[] = { tenrec_nil(),
                                         tenrec_double(0.5),
                                         tenrec_text("h\xc3\xa9"),
                                         tenrec_bytes("\0\1", 2),
                                         tenrec_array(item, 2),
                                         tenrec_map(entry, 2) };
    struct tenrec_value *got = call("worker1", "identity", args, 6);
    const struct tenrec_value *v = got->u.array;

    (void)state;
    assert_int_equal(got->n, 6);
    assert_int_equal(v[0].type, TENREC_VALUE_NIL);
    assert_true(v[1].u.number == 0.5);
    assert_string_equal(v[2].u.text, "h\xc3\xa9");
    assert_memory_equal(v[3].u.bytes, "\0\1", 2);
    assert_int_equal(v[4].u.array[0].u.integer, -5);
    assert_string_equal(tenrec_value_find(&v[5], "l")->u.text, "v");
    tenrec_value_drop(got);
}

static struct tenrec_tensor *make_range(int64_t n)
{
    struct tenrec_tensor *t = NULL;

    assert_int_equal(tenrec_tensor_new(TENREC_FLOAT32, 1, &n, &t, NULL), TENREC_OK);
    for (int64_t i = 0; i < n; i++)
        ((float *)tenrec_tensor_data(t))[i] = (float)i;
    return t;
}

static void worker_carries_tensors_of_many_sizes(void **state)
{
    static const int64_t size[] = { 0, 1, 7, 1000, 100000, 3000000 };

    (void)state;
    for (size_t i = 0; i < sizeof size / sizeof size[0]; i++) {
        struct tenrec_tensor *t = make_range(size[i]);
        struct tenrec_value arg = tenrec_tensor(t), *got = call("worker1", "identity", &arg, 1);
        const struct tenrec_tensor *back = got->u.array[0].u.tensor;
        assert_int_equal(tenrec_tensor_count(back), size[i]);
        assert_memory_equal(tenrec_tensor_data(back), tenrec_tensor_data(t),
                            (size_t)size[i] * sizeof(float));
        tenrec_value_drop(got);
        tenrec_tensor_drop(t);
    }
}

static void worker_makes_a_strided_tensor_contiguous_when_it_sends(void **state)
{
    static float data[6] = { 0, 1, 2, 3, 4, 5 };
    const int64_t shape[] = { 3, 2 }, strides[] = { 1, 3 }; /* transposed */
    struct tenrec_tensor *t = NULL;
    struct tenrec_value arg, *got;

    (void)state;
    assert_int_equal(tenrec_tensor_from_data(data, sizeof data, TENREC_FLOAT32, 2, shape, strides,
                                             NULL, NULL, &t, NULL),
                     TENREC_OK);
    arg = tenrec_tensor(t);
    got = call("worker1", "identity", &arg, 1);
    assert_memory_equal(tenrec_tensor_desc(got->u.array[0].u.tensor)->shape, shape, sizeof shape);
    assert_true(((float *)tenrec_tensor_data(got->u.array[0].u.tensor))[1] == 3);
    tenrec_value_drop(got);
    tenrec_tensor_drop(t);
}

static void worker_receives_into_the_buffer_when_one_is_given(void **state)
{
    struct tenrec_call_options o = { .size = sizeof o };
    struct tenrec_value arg = tenrec_int(1000), *got = NULL;
    struct tenrec_tensor *into = make_range(1000), *wrong = make_range(7);
    tenrec_error err;

    (void)state;
    memset(tenrec_tensor_data(into), 0, 4000);
    o.into = into;
    assert_int_equal(tenrec_rpc_sync(two.worker[0], "worker1", "range", &arg, 1, &o, &got, &err),
                     TENREC_OK);
    assert_ptr_equal(tenrec_tensor_data(got->u.tensor), tenrec_tensor_data(into));
    assert_true(((float *)tenrec_tensor_data(into))[999] == 999);
    tenrec_value_drop(got);
    o.into = wrong;
    assert_int_equal(tenrec_rpc_sync(two.worker[0], "worker1", "range", &arg, 1, &o, NULL, &err),
                     TENREC_EINVAL);
    assert_non_null(strstr(err.text, "buffer given for it"));
    tenrec_tensor_drop(into);
    tenrec_tensor_drop(wrong);
}

static void worker_tells_the_remote_error_with_the_name(void **state)
{
    struct tenrec_value arg = tenrec_text("it broke");
    tenrec_error err;

    (void)state;
    assert_int_equal(call_fails("worker1", "fail", &arg, 1, 0, &err), TENREC_EREMOTE);
    assert_string_equal(err.text, "it broke");
    assert_string_equal(err.worker_name, "worker1");
    assert_int_equal(err.worker, 1);
    assert_int_equal(call_fails("worker1", "fail_inline", &arg, 1, 0, &err), TENREC_EREMOTE);
    assert_int_equal(call_fails("worker1", "add", &arg, 1, 0, &err), TENREC_EREMOTE);
    assert_non_null(strstr(err.text, "argument"));
}

static void worker_refuses_wrong_arguments_with_typed_errors(void **state)
{
    struct tenrec_call_options o = { .size = 4 };
    struct tenrec_future *f = NULL;
    tenrec_error err;

    (void)state;
    assert_int_equal(call_fails("worker2", "noop", NULL, 0, 0, &err), TENREC_EPEER_UNKNOWN);
    assert_non_null(strstr(err.text, "did you mean 'worker"));
    assert_int_equal(call_fails("worker1", "nop", NULL, 0, 0, &err), TENREC_ENOFUNCTION);
    assert_non_null(strstr(err.text, "did you mean 'noop'"));
    assert_string_equal(err.worker_name, "worker1");
    assert_int_equal(call_fails("worker1", "noop", NULL, 0, -5, &err), TENREC_EINVAL);
    assert_int_equal(call_fails(NULL, "noop", NULL, 0, 0, &err), TENREC_EINVAL);
    assert_int_equal(call_fails("worker1", NULL, NULL, 0, 0, &err), TENREC_EINVAL);
    assert_int_equal(tenrec_rpc_async(two.worker[0], "worker1", "noop", NULL, 0, &o, &f, &err),
                     TENREC_EINVAL);
    assert_int_equal(tenrec_register_function(two.worker[0], "", NULL, NULL, 0, &err),
                     TENREC_EINVAL);
    assert_int_equal(tenrec_init_rpc(two.worker[0], &err), TENREC_EBUSY);
    assert_int_equal(tenrec_rpc_async(two.worker[0], "worker1", "noop", NULL, 0, NULL, NULL, &err),
                     TENREC_EINVAL);
}

static void worker_refuses_arguments_when_they_point_nowhere(void **state)
{
    const struct tenrec_entry entry = { NULL, tenrec_nil() };
    struct tenrec_value bad[] = { tenrec_value_of(TENREC_VALUE_TEXT, 1), tenrec_bytes(NULL, 1),
                                  tenrec_array(NULL, 1), tenrec_map(NULL, 1),
                                  tenrec_map(&entry, 1) };
    tenrec_error err;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(call_fails("worker1", "identity", &bad[i], 1, 0, &err), TENREC_EINVAL);
        assert_non_null(strstr(err.text, "NULL"));
    }
    assert_int_equal(call_fails("worker1", "identity", NULL, 2, 0, &err), TENREC_EINVAL);
}

static void worker_times_out_and_goes_on_when_the_callee_is_slow(void **state)
{
    tenrec_error err;

    (void)state;
    functions_close_gate();
    assert_int_equal(call_fails("worker1", "wait_long", NULL, 0, 20, &err), TENREC_ETIMEDOUT);
    assert_non_null(strstr(err.text, "wait_long"));
    assert_string_equal(err.worker_name, "worker1");
    functions_open_gate();
    tenrec_value_drop(call("worker1", "noop", NULL, 0));
}

static void worker_times_out_an_async_call_that_nobody_waits_for(void **state)
{
    struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = 20 };
    struct tenrec_future *f = NULL;
    size_t at;

    (void)state;
    functions_close_gate();
    assert_int_equal(tenrec_rpc_async(two.worker[0], "worker1", "wait_long", NULL, 0, &o, &f, NULL),
                     TENREC_OK);
    assert_int_equal(tenrec_future_wait_any(&f, 1, CLUSTER_LONG_MS, &at, NULL), TENREC_OK);
    assert_int_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, NULL), TENREC_ETIMEDOUT);
    functions_open_gate();
    tenrec_future_drop(f);
}

static void worker_sees_the_default_timeout_when_it_is_set(void **state)
{
    int64_t before = tenrec_get_rpc_timeout(two.worker[0]);
    tenrec_error err;

    (void)state;
    assert_int_equal(before, 20000);
    assert_int_equal(tenrec_set_rpc_timeout(two.worker[0], -1, &err), TENREC_EINVAL);
    assert_int_equal(tenrec_set_rpc_timeout(two.worker[0], 20, &err), TENREC_OK);
    functions_close_gate();
    assert_int_equal(call_fails("worker1", "wait_long", NULL, 0, 0, &err), TENREC_ETIMEDOUT);
    functions_open_gate();
    assert_int_equal(tenrec_set_rpc_timeout(two.worker[0], before, &err), TENREC_OK);
}

static void worker_knows_who_calls(void **state)
{
    struct tenrec_value *got = call("worker1", "who", NULL, 0);

    (void)state;
    assert_string_equal(got->u.array[0].u.text, "worker0");
    assert_int_equal(got->u.array[1].u.integer, 0);
    assert_true(got->u.array[2].u.boolean);
    tenrec_value_drop(got);
}

static void worker_answers_later_when_another_thread_finishes_the_call(void **state)
{
    static const char *const fn[] = { "later", "later_inline" };
    struct tenrec_value arg = tenrec_int(21), wrong = tenrec_text("x");
    tenrec_error err;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct tenrec_value *got = call("worker1", fn[i], &arg, 1);
        assert_int_equal(got->u.integer, 42);
        tenrec_value_drop(got);
    }
    assert_int_equal(call_fails("worker1", "later", &wrong, 1, 0, &err), TENREC_EREMOTE);
}

static void worker_refuses_to_block_when_the_function_is_inline(void **state)
{
    tenrec_error err;

    (void)state;
    assert_int_equal(call_fails("worker1", "call_inline", NULL, 0, 0, &err), TENREC_EREMOTE);
    assert_non_null(strstr(err.text, "may not wait"));
}

static void worker_nests_calls_with_few_threads(void **state)
{
    struct tenrec_value depth = tenrec_int(20), *got = call("worker1", "nest", &depth, 1);

    (void)state;
    assert_int_equal(got->u.integer, 21);
    tenrec_value_drop(got);
}

static bool counted(void *arg)
{
    return functions_counted() == *(int *)arg;
}

/* Waits until `is` says yes; nobody is woken, so it looks again and again. */
static void eventually(bool (*is)(void *), void *arg)
{
    for (int i = 0; i < CLUSTER_LONG_MS && !is(arg); i++)
        poll(NULL, 0, 1);
    assert_true(is(arg));
}

static void worker_runs_a_one_way_call_and_answers_nothing(void **state)
{
    struct tenrec_call_options o = { .size = sizeof o, .flags = TENREC_ONE_WAY };
    int before = functions_counted(), want = before + 10;

    (void)state;
    for (int i = 0; i < 10; i++)
        assert_int_equal(
            tenrec_rpc_sync(two.worker[0], "worker1", "count", NULL, 0, &o, NULL, NULL), TENREC_OK);
    eventually(counted, &want);
}

static bool nobody_waits(void *arg)
{
    (void)arg;
    return functions_waiting() == 0;
}

static bool somebody_waits(void *arg)
{
    (void)arg;
    return functions_waiting() > 0;
}

static void worker_tells_the_callee_when_a_call_is_canceled(void **state)
{
    struct tenrec_future *f = NULL;
    tenrec_error err;

    (void)state;
    functions_close_gate();
    assert_int_equal(
        tenrec_rpc_async(two.worker[0], "worker1", "wait_gate", NULL, 0, NULL, &f, &err),
        TENREC_OK);
    eventually(somebody_waits, NULL);
    tenrec_future_cancel(f);
    assert_int_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), TENREC_ECANCELED);
    eventually(nobody_waits, NULL); /* the gate is still closed */
    functions_open_gate();
    tenrec_future_drop(f);
}

static void worker_collects_calls_in_a_scope(void **state)
{
    struct tenrec_value args[] = { tenrec_int(1), tenrec_int(1) }, bad = tenrec_text("no");
    struct tenrec_future *f = NULL;
    tenrec_error err;

    (void)state;
    assert_int_equal(tenrec_scope_begin(&err), TENREC_OK);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(tenrec_rpc_async(two.worker[0], "worker1", "add", args, 2, NULL, &f, &err),
                         TENREC_OK);
        tenrec_future_drop(f);
    }
    assert_int_equal(tenrec_scope_end(CLUSTER_LONG_MS, &err), TENREC_OK);
    assert_int_equal(tenrec_scope_begin(&err), TENREC_OK);
    assert_int_equal(tenrec_rpc_async(two.worker[0], "worker1", "fail", &bad, 1, NULL, &f, &err),
                     TENREC_OK);
    tenrec_future_drop(f);
    assert_int_equal(tenrec_scope_end(CLUSTER_LONG_MS, &err), TENREC_EREMOTE);
}

/* Answers a tensor that says it lies where no channel reaches. */
static tenrec_status on_device(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    const int64_t shape[] = { 8 };
    struct tenrec_tensor *t = NULL;
    struct tenrec_value v;
    tenrec_status st = tenrec_tensor_new(TENREC_UINT8, 1, shape, &t, err);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    memset(tenrec_tensor_data(t), 1, 8);
    ((struct tenrec_tensor_desc *)tenrec_tensor_desc(t))->device.kind = TENREC_CUDA;
    v = tenrec_tensor(t);
    st = tenrec_call_return(c, &v, err);
    tenrec_tensor_drop(t);
    return st;
}

static void worker_hears_why_when_the_answer_cannot_be_carried(void **state)
{
    tenrec_status st;
    tenrec_error err;

    (void)state;
    assert_int_equal(
        tenrec_register_function(two.worker[1], "on_device", on_device, NULL, TENREC_POOL, &err),
        TENREC_OK);
    st = tenrec_rpc_sync(two.worker[0], "worker1", "on_device", NULL, 0, NULL, NULL, &err);
    if (strstr(cluster_backend(), "inproc")) { /* carries anything */
        assert_int_equal(st, TENREC_OK);
        return;
    }
    assert_int_equal(st, TENREC_EUNSUPPORTED);
    assert_string_equal(err.worker_name, "worker1");
}

static void call_that_fails(struct tenrec_future *f, void *arg)
{
    struct tenrec_value why = tenrec_text("of another's");

    (void)f;
    assert_int_equal(tenrec_rpc_async(two.worker[0], "worker1", "fail", &why, 1, NULL, arg, NULL),
                     TENREC_OK);
}

/* It may run on any thread that waits: its calls are not that thread's. */
static void count_warning(void *arg, enum tenrec_log_level level, const char *part,
                          const char *text)
{
    (void)part;
    if (level == TENREC_LOG_WARN && strstr(text, arg) && strstr(text, "did not end its scope"))
        atomic_fetch_add(&warnings, 1);
}

/* Its thread serves others afterwards. */
static void worker_closes_a_scope_when_a_function_leaves_it_open(void **state)
{
    static const char *const fn[] = { "forget_scope", "forget_scope_inline" };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        int want = functions_counted() + 2;
        atomic_store(&warnings, 0);
        tenrec_set_log_callback(count_warning, (void *)(uintptr_t)fn[i]);
        tenrec_value_drop(call("worker1", fn[i], NULL, 0));
        tenrec_set_log_callback(NULL, NULL);
        assert_int_equal(atomic_load(&warnings), 2);
        eventually(counted, &want);
    }
}

static void worker_leaves_calls_of_a_callback_out_of_the_scope(void **state)
{
    struct tenrec_future *own = NULL, *f = NULL;

    (void)state;
    assert_int_equal(tenrec_future_new(&own, NULL), TENREC_OK);
    assert_int_equal(tenrec_future_add_callback(own, call_that_fails, &f, NULL), TENREC_OK);
    assert_int_equal(tenrec_scope_begin(NULL), TENREC_OK);
    assert_int_equal(tenrec_future_set_value(own, NULL, NULL), TENREC_OK);
    assert_int_equal(tenrec_scope_end(CLUSTER_LONG_MS, NULL), TENREC_OK);
    assert_int_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, NULL), TENREC_EREMOTE);
    tenrec_future_drop(f);
    tenrec_future_drop(own);
}

/* Each callback makes the next call, from the thread that completes. */
struct chain_state {
    atomic_int left;
    struct tenrec_future *done;
};

static void next_call(struct tenrec_future *f, void *arg)
{
    struct chain_state *s = arg;
    struct tenrec_future *next = NULL;

    if (tenrec_future_error(f) || atomic_fetch_sub(&s->left, 1) == 1) {
        struct tenrec_value v = tenrec_bool(!tenrec_future_error(f));
        tenrec_future_set_value(s->done, &v, NULL);
    } else if (tenrec_rpc_async(two.worker[0], "worker1", "noop_inline", NULL, 0, NULL, &next,
                                NULL) == TENREC_OK) {
        tenrec_future_add_callback(next, next_call, s, NULL);
    }
    tenrec_future_drop(f);
}

static void worker_chains_calls_from_callbacks(void **state)
{
    struct chain_state s = { .left = 500 };
    struct tenrec_future *f = NULL;

    (void)state;
    assert_int_equal(tenrec_future_new(&s.done, NULL), TENREC_OK);
    assert_int_equal(
        tenrec_rpc_async(two.worker[0], "worker1", "noop_inline", NULL, 0, NULL, &f, NULL),
        TENREC_OK);
    assert_int_equal(tenrec_future_add_callback(f, next_call, &s, NULL), TENREC_OK);
    assert_int_equal(tenrec_future_wait(s.done, CLUSTER_LONG_MS, NULL), TENREC_OK);
    assert_true(tenrec_future_value(s.done)->u.boolean);
    tenrec_future_drop(s.done);
}

static void *hammer(void *arg)
{
    struct tenrec_worker *w = arg;
    struct tenrec_value *got, args[2];
    tenrec_error err;

    for (int64_t i = 0; i < 200; i++) {
        args[0] = tenrec_int(i);
        args[1] = tenrec_int(1000);
        got = NULL;
        if (tenrec_rpc_sync(w, i % 3 ? "worker1" : "worker0", i % 2 ? "add" : "add_inline", args, 2,
                            NULL, &got, &err) != TENREC_OK ||
            got->u.integer != 1000 + i)
            return got ? "wrong sum" : "call failed";
        tenrec_value_drop(got);
    }
    return NULL;
}

static void worker_serves_many_threads_at_once(void **state)
{
    pthread_t thread[8];
    void *why;

    (void)state;
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, hammer, two.worker[i % 2]), 0);
    for (size_t i = 0; i < 8; i++) {
        pthread_join(thread[i], &why);
        if (why)
            fail_msg("%s", (const char *)why);
    }
}

static void worker_knows_its_group(void **state)
{
    struct tenrec_worker_info info, all[4];
    tenrec_error err;
    size_t n = 0;

    (void)state;
    assert_int_equal(tenrec_get_worker_info(two.worker[1], NULL, &info, &err), TENREC_OK);
    assert_string_equal(info.name, "worker1");
    assert_int_equal(tenrec_get_worker_info(two.worker[1], "worker0", &info, &err), TENREC_OK);
    assert_int_equal(info.id, 0);
    assert_int_equal(tenrec_get_worker_info_by_id(two.worker[1], 1, &info, &err), TENREC_OK);
    assert_string_equal(info.name, "worker1");
    assert_int_equal(tenrec_get_worker_info_by_id(two.worker[1], 2, &info, &err),
                     TENREC_EPEER_UNKNOWN);
    assert_int_equal(tenrec_get_worker_infos(two.worker[0], all, 4, &n, &err), TENREC_OK);
    assert_int_equal(n, 2);
    assert_string_equal(all[1].name, "worker1");
}

static void has_key(void *arg, const char *key, const char *value)
{
    (void)value;
    if (strcmp(key, "agent.client_active_calls") == 0 || strcmp(key, "pool.threads") == 0)
        ++*(int *)arg;
}

static void worker_tells_its_counters(void **state)
{
    int n = 0;

    (void)state;
    tenrec_worker_debug_info(two.worker[0], has_key, &n);
    assert_int_equal(n, 2);
}

static void callback_counts(struct tenrec_future *f, void *arg)
{
    (void)f;
    ++*(int *)arg; /* on the thread that dispatches: no atomic needed */
}

static void worker_runs_callbacks_in_the_users_loop_when_asked(void **state)
{
    struct tenrec_future *f = NULL;
    struct pollfd p = { .events = POLLIN };
    struct cluster c;
    int n = 0;

    (void)state;
    cluster_open(&c, 2, NULL, functions_register);
    assert_int_equal(tenrec_worker_fd(c.worker[0], &p.fd, NULL), TENREC_OK);
    assert_int_equal(tenrec_worker_dispatch(c.worker[0]), 0);
    assert_int_equal(tenrec_rpc_async(c.worker[0], "worker1", "noop", NULL, 0, NULL, &f, NULL),
                     TENREC_OK);
    assert_int_equal(tenrec_future_add_callback(f, callback_counts, &n, NULL), TENREC_OK);
    assert_int_equal(poll(&p, 1, CLUSTER_LONG_MS), 1);
    assert_int_equal(n, 0);
    assert_int_equal(tenrec_worker_dispatch(c.worker[0]), 1);
    assert_int_equal(n, 1);
    assert_int_equal(poll(&p, 1, 0), 0);
    tenrec_future_drop(f);
    cluster_close(&c, TENREC_GRACEFUL);
}

static void *alloc_here(void *arg, const struct tenrec_tensor_desc *desc)
{
    ++*(int *)arg;
    return malloc(desc->bytes ? desc->bytes : 1);
}

static void free_here(void *arg, void *data)
{
    --*(int *)arg;
    free(data);
}

static void worker_takes_the_users_memory_when_it_has_an_allocator(void **state)
{
    static int n; /* freed when the messages go, after the case */
    struct tenrec_allocator a = {
        .size = sizeof a, .alloc = alloc_here, .free_fn = free_here, .arg = &n
    };
    struct tenrec_value arg = tenrec_int(100), *got;

    (void)state;
    assert_int_equal(tenrec_set_allocator(two.worker[0], &a, NULL), TENREC_OK);
    got = call("worker1", "range", &arg, 1);
    assert_int_equal(n, 1);
    assert_true(((float *)tenrec_tensor_data(got->u.tensor))[99] == 99);
    tenrec_value_drop(got);
    assert_int_equal(n, 0);
    assert_int_equal(tenrec_set_allocator(two.worker[0], NULL, NULL), TENREC_OK);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worker_returns_the_sum_when_add_is_called),
        cmocka_unit_test(worker_calls_itself),
        cmocka_unit_test(worker_gives_every_value_back_when_identity_is_called),
        cmocka_unit_test(worker_carries_tensors_of_many_sizes),
        cmocka_unit_test(worker_makes_a_strided_tensor_contiguous_when_it_sends),
        cmocka_unit_test(worker_receives_into_the_buffer_when_one_is_given),
        cmocka_unit_test(worker_tells_the_remote_error_with_the_name),
        cmocka_unit_test(worker_refuses_wrong_arguments_with_typed_errors),
        cmocka_unit_test(worker_refuses_arguments_when_they_point_nowhere),
        cmocka_unit_test(worker_times_out_and_goes_on_when_the_callee_is_slow),
        cmocka_unit_test(worker_times_out_an_async_call_that_nobody_waits_for),
        cmocka_unit_test(worker_sees_the_default_timeout_when_it_is_set),
        cmocka_unit_test(worker_knows_who_calls),
        cmocka_unit_test(worker_answers_later_when_another_thread_finishes_the_call),
        cmocka_unit_test(worker_refuses_to_block_when_the_function_is_inline),
        cmocka_unit_test(worker_nests_calls_with_few_threads),
        cmocka_unit_test(worker_runs_a_one_way_call_and_answers_nothing),
        cmocka_unit_test(worker_tells_the_callee_when_a_call_is_canceled),
        cmocka_unit_test(worker_collects_calls_in_a_scope),
        cmocka_unit_test(worker_hears_why_when_the_answer_cannot_be_carried),
        cmocka_unit_test(worker_closes_a_scope_when_a_function_leaves_it_open),
        cmocka_unit_test(worker_leaves_calls_of_a_callback_out_of_the_scope),
        cmocka_unit_test(worker_chains_calls_from_callbacks),
        cmocka_unit_test(worker_serves_many_threads_at_once),
        cmocka_unit_test(worker_knows_its_group),
        cmocka_unit_test(worker_tells_its_counters),
        cmocka_unit_test(worker_runs_callbacks_in_the_users_loop_when_asked),
        cmocka_unit_test(worker_takes_the_users_memory_when_it_has_an_allocator),
    };

    if (argc > 1)
        cluster_use(argv[1]);
    return cmocka_run_group_tests_name("worker", tests, open_two, close_two);
}
