/* SPDX-License-Identifier: Apache-2.0 */
/* worker_test.c - calls between real workers, on the backend named in argv. */

#include "../support/debug_info.h"
#include "pair.h"

#include <pthread.h>

TEST(worker_returns_the_sum_when_add_is_called)
{
    static const char *const fn[] = { "add", "add_inline" };
    const struct tenrec_value args[] = { tenrec_value_int(2), tenrec_value_int(40) };

    for (size_t i = 0; i < 2; i++) {
        struct tenrec_value *got = call("worker1", fn[i], args, 2);
        assert_int_equal(got->type, TENREC_VALUE_INT);
        assert_int_equal(got->u.integer, 42);
        tenrec_value_drop(got);
    }
}

TEST(worker_calls_itself)
{
    const struct tenrec_value args[] = { tenrec_value_int(1), tenrec_value_int(2) };
    struct tenrec_value *got = call("worker0", "add", args, 2);

    assert_int_equal(got->u.integer, 3);
    tenrec_value_drop(got);
}

TEST(worker_tells_the_remote_error_with_the_name)
{
    struct tenrec_value arg = tenrec_value_text("it broke");
    tenrec_error err;

    assert_int_equal(call_fails("worker1", "fail", &arg, 1, 0, &err), TENREC_EINVAL);
    assert_string_equal(err.text, "it broke");
    assert_int_equal(err.flags, TENREC_ERROR_CALLEE);
    assert_string_equal(err.worker_name, "worker1");
    assert_int_equal(err.worker, 1);
    assert_int_equal(call_fails("worker1", "fail_inline", &arg, 1, 0, &err), TENREC_EINVAL);
    assert_int_equal(call_fails("worker1", "add", &arg, 1, 0, &err), TENREC_EINVAL);
    assert_string_equal(err.text, "'add': takes 2 arguments, got 1");
}

TEST(worker_refuses_wrong_arguments_with_typed_errors)
{
    struct tenrec_call_options o = { .size = 4 };
    struct tenrec_future *f = NULL;
    tenrec_error err;

    assert_int_equal(call_fails("worker2", "noop", NULL, 0, 0, &err), TENREC_EPEER_UNKNOWN);
    assert_non_null(strstr(err.text, "no worker is called 'worker2' (known: worker0, worker1"));
    assert_int_equal(call_fails("wroker1", "noop", NULL, 0, 0, &err), TENREC_EPEER_UNKNOWN);
    assert_non_null(strstr(err.text, "did you mean 'worker1'"));
    assert_int_equal(call_fails("worker1", "nop", NULL, 0, 0, &err), TENREC_ENOFUNCTION);
    assert_int_equal(err.flags, 0);
    assert_string_equal(err.text, "'worker1' has no function 'nop' (did you mean 'noop'?)");
    assert_string_equal(err.worker_name, "worker1");
    assert_int_equal(call_fails("worker1", "noop", NULL, 0, -5, &err), TENREC_EINVAL);
    assert_int_equal(call_fails(NULL, "noop", NULL, 0, 0, &err), TENREC_EINVAL);
    assert_int_equal(err.flags, 0);
    assert_int_equal(call_fails("worker1", NULL, NULL, 0, 0, &err), TENREC_EINVAL);
    assert_int_equal(tenrec_rpc_async(two.worker[0], "worker1", "noop", NULL, 0, &o, &f, &err),
                     TENREC_EINVAL);
    o = (struct tenrec_call_options){ .size = sizeof o, .reserved = { 0, 0, 1 } };
    assert_int_equal(tenrec_rpc_async(two.worker[0], "worker1", "noop", NULL, 0, &o, &f, &err),
                     TENREC_EINVAL);
    assert_non_null(strstr(err.text, "reserved is not zero"));
    assert_int_equal(tenrec_worker_register_function(two.worker[0], "", NULL, NULL, 0, &err),
                     TENREC_EINVAL);
    assert_int_equal(tenrec_init_rpc(two.worker[0], &err), TENREC_EBUSY);
    assert_int_equal(tenrec_rpc_async(two.worker[0], "worker1", "noop", NULL, 0, NULL, NULL, &err),
                     TENREC_EINVAL);
}

TEST(worker_refuses_arguments_that_point_nowhere)
{
    const struct tenrec_entry entry = { NULL, tenrec_value_nil() };
    struct tenrec_value bad[] = { tenrec_value_of(TENREC_VALUE_TEXT, 1),
                                  tenrec_value_bytes(NULL, 1), tenrec_value_array(NULL, 1),
                                  tenrec_value_map(NULL, 1), tenrec_value_map(&entry, 1) };
    tenrec_error err;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(call_fails("worker1", "identity", &bad[i], 1, 0, &err), TENREC_EINVAL);
        assert_non_null(strstr(err.text, "NULL"));
    }
    assert_int_equal(call_fails("worker1", "identity", NULL, 2, 0, &err), TENREC_EINVAL);
}

TEST(worker_tells_a_function_no_more_time_than_its_caller_has)
{
    struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = CLUSTER_LONG_MS };
    struct tenrec_value *got;
    tenrec_error err;

    for (int i = 0; i < 100; i++) {
        assert_int_equal(
            tenrec_rpc_sync(two.worker[0], "worker1", "time_left", NULL, 0, &o, &got, &err),
            TENREC_OK);
        assert_in_range(got->u.integer, 1, CLUSTER_LONG_MS);
        tenrec_value_drop(got);
    }
}

TEST(worker_times_out_and_goes_on_when_the_callee_is_slow)
{
    tenrec_error err;

    functions_close_gate();
    assert_int_equal(call_fails("worker1", "wait_long", NULL, 0, 20, &err), TENREC_ETIMEDOUT);
    assert_non_null(strstr(err.text, "to 'wait_long' within its timeout of 20 ms"));
    assert_int_equal(err.flags, 0);
    assert_string_equal(err.worker_name, "worker1");
    functions_open_gate();
    tenrec_value_drop(call("worker1", "noop", NULL, 0));
}

TEST(worker_times_out_an_async_call_without_a_waiter)
{
    struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = 20 };
    struct tenrec_future *f = NULL;
    size_t at;

    functions_close_gate();
    assert_int_equal(tenrec_rpc_async(two.worker[0], "worker1", "wait_long", NULL, 0, &o, &f, NULL),
                     TENREC_OK);
    assert_int_equal(tenrec_future_wait_any(&f, 1, CLUSTER_LONG_MS, &at, NULL), TENREC_OK);
    assert_int_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, NULL), TENREC_ETIMEDOUT);
    functions_open_gate();
    tenrec_future_drop(f);
}

TEST(worker_sees_a_changed_default_timeout)
{
    int64_t before = tenrec_worker_get_rpc_timeout(two.worker[0]);
    tenrec_error err;

    assert_int_equal(before, 20000);
    assert_int_equal(tenrec_worker_set_rpc_timeout(two.worker[0], -1, &err), TENREC_EINVAL);
    assert_int_equal(tenrec_worker_set_rpc_timeout(two.worker[0], 20, &err), TENREC_OK);
    functions_close_gate();
    assert_int_equal(call_fails("worker1", "wait_long", NULL, 0, 0, &err), TENREC_ETIMEDOUT);
    functions_open_gate();
    assert_int_equal(tenrec_worker_set_rpc_timeout(two.worker[0], before, &err), TENREC_OK);
}

TEST(worker_knows_its_caller)
{
    struct tenrec_value *got = call("worker1", "who", NULL, 0);

    assert_string_equal(got->u.array[0].u.text, "worker0");
    assert_int_equal(got->u.array[1].u.integer, 0);
    assert_true(got->u.array[2].u.boolean);
    tenrec_value_drop(got);
}

TEST(worker_answers_later_when_another_thread_finishes_the_call)
{
    static const char *const fn[] = { "later", "later_inline" };
    struct tenrec_value arg = tenrec_value_int(21), wrong = tenrec_value_text("x");
    tenrec_error err;

    for (size_t i = 0; i < 2; i++) {
        struct tenrec_value *got = call("worker1", fn[i], &arg, 1);
        assert_int_equal(got->u.integer, 42);
        tenrec_value_drop(got);
    }
    assert_int_equal(call_fails("worker1", "later", &wrong, 1, 0, &err), TENREC_EINVAL);
}

TEST(worker_refuses_to_block_when_the_function_is_inline)
{
    tenrec_error err;

    assert_int_equal(call_fails("worker1", "call_inline", NULL, 0, 0, &err), TENREC_EWOULDBLOCK);
    assert_non_null(strstr(err.text, "may not wait"));
}

TEST(worker_nests_calls_with_few_threads)
{
    struct tenrec_value depth = tenrec_value_int(20), *got = call("worker1", "nest", &depth, 1);

    assert_int_equal(got->u.integer, 21);
    tenrec_value_drop(got);
}

static void *hammer(void *arg)
{
    struct tenrec_worker *w = arg;
    struct tenrec_value *got, args[2];
    tenrec_error err;

    for (int64_t i = 0; i < 200; i++) {
        args[0] = tenrec_value_int(i);
        args[1] = tenrec_value_int(1000);
        got = NULL;
        if (tenrec_rpc_sync(w, i % 3 ? "worker1" : "worker0", i % 2 ? "add" : "add_inline", args, 2,
                            NULL, &got, &err) != TENREC_OK ||
            got->u.integer != 1000 + i)
            return got ? "wrong sum" : "call failed";
        tenrec_value_drop(got);
    }
    return NULL;
}

TEST(worker_serves_many_threads_at_once)
{
    pthread_t thread[8];
    void *why;

    for (size_t i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, hammer, two.worker[i % 2]), 0);
    for (size_t i = 0; i < 8; i++) {
        pthread_join(thread[i], &why);
        if (why)
            fail_msg("%s", (const char *)why);
    }
}

TEST(worker_knows_its_group)
{
    struct tenrec_worker_info info, all[4];
    tenrec_error err;
    size_t n = 0;

    assert_int_equal(tenrec_get_worker_info(two.worker[1], NULL, &info, &err), TENREC_OK);
    assert_string_equal(info.name, "worker1");
    assert_int_equal(tenrec_get_worker_info(two.worker[1], "worker0", &info, &err), TENREC_OK);
    assert_int_equal(info.id, 0);
    assert_int_equal(tenrec_worker_get_info_by_id(two.worker[1], 1, &info, &err), TENREC_OK);
    assert_string_equal(info.name, "worker1");
    assert_int_equal(tenrec_worker_get_info_by_id(two.worker[1], 2, &info, &err),
                     TENREC_EPEER_UNKNOWN);
    assert_int_equal(tenrec_worker_get_infos(two.worker[0], all, 4, &n, &err), TENREC_OK);
    assert_int_equal(n, 2);
    assert_string_equal(all[1].name, "worker1");
}

TEST(worker_tells_its_counters)
{
    assert_true(debug_info_number(two.worker[0], "agent.client_active_calls") >= 0);
    assert_true(debug_info_number(two.worker[0], "pool.threads") >= 0);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cluster_use(argv[1]);
    return testing_run(open_two, close_two);
}
