/* SPDX-License-Identifier: Apache-2.0 */
/* operands_test.c - calls in one line: operands by their C types, results by the type text. */
#include "../support/cluster.h"
#include "../support/functions.h"
#include "../testing.h"

static struct cluster two;
static tenrec_error err;

static void open_two(void)
{
    cluster_open(&two, 2, NULL, functions_register);
}

static void close_two(void)
{
    cluster_close(&two, TENREC_GRACEFUL);
}

#define CALL(function, ...) tenrec_call(two.worker[0], "worker1", function, &err, __VA_ARGS__)

static void is_refused(tenrec_status st, const char *text)
{
    assert_int_equal(st, TENREC_EINVAL);
    assert_string_equal(err.text, text);
}

TEST_WITH(call_adds_operands_of_any_integer_type, open_two, close_two)
{
    const uint8_t small = 2;
    const size_t large = 40;
    int64_t sum = 0;

    assert_status(CALL("add", "ii>i", 40, 2, &sum), &err);
    assert_int_equal(sum, 42);
    assert_status(CALL("add", "ii>i", -3, INT64_MIN + 3, &sum), &err);
    assert_int_equal(sum, INT64_MIN);
    assert_status(CALL("add", "ii>i", large, small, &sum), &err);
    assert_int_equal(sum, 42);
}

TEST_WITH(call_without_results_discards_the_answer, open_two, close_two)
{
    assert_status(CALL("noop", ""), &err);
    assert_status(CALL("add", "ii", 1, 2), &err);
}

TEST_WITH(call_returns_several_results_of_an_array, open_two, close_two)
{
    struct tenrec_tensor *t = NULL, *back = NULL;
    double half = 0, whole = 0;
    bool yes = false;

    assert_status(tenrec_tensor_new(TENREC_FLOAT32, 1, (int64_t[]){ 3 }, &t, &err), &err);
    memset(tenrec_tensor_data(t), 0, 12);
    assert_status(
        CALL("identity", "bddTf[3]>bddTf[*]", true, 0.5f, 7, t, &yes, &half, &whole, &back), &err);
    assert_true(yes && half == 0.5 && whole == 7);
    assert_int_equal(tenrec_tensor_count(back), 3);
    tenrec_tensor_drop(back);
    tenrec_tensor_drop(t);
}

TEST_WITH(call_takes_values_and_returns_the_whole_result, open_two, close_two)
{
    struct tenrec_value *got = NULL;
    const char *text = "text";

    assert_status(
        CALL("identity", "syv>v", text, tenrec_value_bytes("x\0y", 3), tenrec_value_nil(), &got),
        &err);
    assert_int_equal(got->n, 3);
    assert_string_equal(got->u.array[0].u.text, "text");
    assert_int_equal(got->u.array[1].type, TENREC_VALUE_BYTES);
    tenrec_value_drop(got);
}

TEST_WITH(call_refuses_operands_that_the_text_does_not_describe, open_two, close_two)
{
    int64_t sum, other;
    double d;
    char *none = NULL;

    is_refused(CALL("add", "ii>i", 1, &sum), "call of 'add': takes 2 arguments, got 1");
    is_refused(CALL("add", "ii>i", 1, 2.5, &sum),
               "call of 'add': argument 2 is a number, expected an integer");
    is_refused(CALL("add", "ii>i", 1, 2, &d),
               "call of 'add': the variable of result 1 is of type 'd', the text says 'i'");
    is_refused(CALL("add", "ii>i", 1, 2),
               "call of 'add': the text has 1 result, 0 variables given");
    is_refused(CALL("add", "ii>s", 1, 2, &sum),
               "call of 'add': result 1 is of type 's', expected b i d t T or r, or v alone");
    is_refused(CALL("add", "si", none, 1), "call of 'add': argument 1 is NULL");
    is_refused(CALL("add", "ii", UINT64_MAX, 1),
               "call of 'add': argument 1 is larger than an int64_t holds");
    is_refused(CALL("add", "ii>i", &sum, 1), "call of 'add': takes 2 arguments, got 0");
    is_refused(CALL("add", "i>i", 1, &sum, &other),
               "call of 'add': the text has 1 result, 2 variables given");
    is_refused(CALL("add", "i>ii", 1, &sum, 2),
               "call of 'add': operand 3 is no variable for a result");
    is_refused(CALL("add", "q", 1),
               "call of 'add': type text has 'q' (one of b i d s y t T r o g v and | expected)");
}

TEST_WITH(call_refuses_a_result_of_another_type_and_zeroes_the_variables, open_two, close_two)
{
    struct tenrec_tensor *t = (struct tenrec_tensor *)(void *)&err;
    int64_t a = 7, b = 7;

    is_refused(CALL("add", "ii>t", 1, 2, &t),
               "call of 'add': result 1 is an integer, expected a tensor");
    assert_null(t);
    is_refused(CALL("add", "ii>ii", 1, 2, &a, &b), "call of 'add': takes 2 results, got 1");
    assert_int_equal(a + b, 0);
    a = 7;
    assert_int_equal(CALL("fail", "s>i", "why", &a), TENREC_EINVAL);
    assert_int_equal(a, 0);
}

TEST_WITH(call_of_a_worker_names_its_rank_and_the_size_of_the_group, open_two, close_two)
{
    assert_int_equal(tenrec_worker_rank(two.worker[1]), 1);
    assert_int_equal(tenrec_worker_size(two.worker[1]), 2);
}

TEST(worker_that_does_not_run_has_no_rank_and_no_size)
{
    struct tenrec_config *config = cluster_config();
    struct tenrec_worker *w = NULL;

    assert_status(tenrec_worker_new(config, &w, &err), &err);
    assert_int_equal(tenrec_worker_rank(w), TENREC_ANONYMOUS);
    assert_int_equal(tenrec_worker_size(w), 0);
    tenrec_worker_drop(w);
    tenrec_config_drop(config);
}
