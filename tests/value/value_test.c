/* SPDX-License-Identifier: Apache-2.0 */
/* value_test.c - reading values by type text, finding in maps, deep copies. */
#include "../testing.h"

#include <tenrec/future.h>
#include <tenrec/region.h>

#define N(array) (sizeof(array) / sizeof *(array))

static struct tenrec_tensor *small_tensor(void)
{
    const int64_t shape[] = { 2 };
    struct tenrec_tensor *t = NULL;

    assert_int_equal(tenrec_tensor_new(TENREC_INT32, 1, shape, &t, NULL), TENREC_OK);
    return t;
}

TEST(future_refuses_a_value_with_flags)
{
    struct tenrec_value v = tenrec_value_int(1);
    struct tenrec_future *f = NULL;
    tenrec_error err;

    v.flags = 2;
    assert_int_equal(tenrec_future_new(&f, &err), TENREC_OK);
    assert_int_equal(tenrec_future_set_value(f, &v, &err), TENREC_EINVAL);
    assert_string_equal(err.text, "an integer has the unknown flags 0x2, expected 0 (use the "
                                  "tenrec_value_ functions)");
    v.flags = 0;
    assert_int_equal(tenrec_future_set_value(f, &v, &err), TENREC_OK);
    tenrec_future_drop(f);
}

TEST(value_get_stores_all_values_when_types_fit)
{
    struct tenrec_tensor *t = small_tensor(), *got_t = NULL;
    const struct tenrec_value args[] = {
        tenrec_value_bool(true),  tenrec_value_int(-7),          tenrec_value_double(0.5),
        tenrec_value_text("abc"), tenrec_value_bytes("x\0y", 3), tenrec_value_tensor(t),
        tenrec_value_nil()
    };
    const struct tenrec_value *any = NULL;
    const void *bytes = NULL;
    const char *text = NULL;
    size_t len = 0;
    int64_t i = 0;
    double d = 0;
    bool b = false;

    assert_int_equal(tenrec_value_unpack(args, N(args), NULL, "bidsytv", &b, &i, &d, &text, &bytes,
                                         &len, &got_t, &any),
                     TENREC_OK);
    assert_true(b);
    assert_int_equal(i, -7);
    assert_true(d == 0.5);
    assert_string_equal(text, "abc");
    assert_int_equal(len, 3);
    assert_memory_equal(bytes, "x\0y", 3);
    assert_ptr_equal(got_t, t);
    assert_ptr_equal(any, &args[6]);
    tenrec_tensor_drop(t);
}

TEST(value_get_takes_an_integer_when_a_double_is_expected)
{
    const struct tenrec_value args[] = { tenrec_value_int(3) };
    double d = 0;

    assert_int_equal(tenrec_value_unpack(args, 1, NULL, "d", &d), TENREC_OK);
    assert_true(d == 3.0);
}

TEST(value_get_leaves_the_rest_when_optional_arguments_miss)
{
    const struct tenrec_value args[] = { tenrec_value_int(3) };
    int64_t a = 0, b = 42;

    assert_int_equal(tenrec_value_unpack(args, 1, NULL, "i|i", &a, &b), TENREC_OK);
    assert_int_equal(a, 3);
    assert_int_equal(b, 42);
}

TEST(value_get_reads_optional_arguments_when_present)
{
    const struct tenrec_value args[] = { tenrec_value_int(3), tenrec_value_int(4) };
    int64_t a = 0, b = 42;

    assert_int_equal(tenrec_value_unpack(args, 2, NULL, "i|i", &a, &b), TENREC_OK);
    assert_int_equal(b, 4);
}

TEST(value_get_stores_nothing_when_a_later_type_is_wrong)
{
    const struct tenrec_value args[] = { tenrec_value_int(3), tenrec_value_text("x") };
    int64_t a = 11, b = 12;
    tenrec_error err;

    assert_int_equal(tenrec_value_unpack(args, 2, &err, "ii", &a, &b), TENREC_EINVAL);
    assert_string_equal(err.text, "argument 2 is text, expected an integer");
    assert_int_equal(a, 11);
}

TEST(value_get_says_how_many_when_the_count_is_wrong)
{
    const struct tenrec_value args[] = { tenrec_value_int(3), tenrec_value_int(4) };
    int64_t a;
    tenrec_error err;

    assert_int_equal(tenrec_value_unpack(args, 2, &err, "i", &a), TENREC_EINVAL);
    assert_string_equal(err.text, "takes 1 argument, got 2");
    assert_int_equal(tenrec_value_unpack(args, 2, &err, "iii", &a, &a, &a), TENREC_EINVAL);
    assert_string_equal(err.text, "takes 3 arguments, got 2");
    assert_int_equal(tenrec_value_unpack(args, 0, &err, "i|i", &a, &a), TENREC_EINVAL);
    assert_string_equal(err.text, "takes 1 to 2 arguments, got 0");
}

TEST(value_get_refuses_text_with_a_zero_byte)
{
    struct tenrec_value v = tenrec_value_of(TENREC_VALUE_TEXT, 3);
    const char *text;
    tenrec_error err;

    v.u.text = "a\0b";
    assert_int_equal(tenrec_value_unpack(&v, 1, &err, "s", &text), TENREC_EINVAL);
    assert_non_null(strstr(err.text, "zero byte"));
}

TEST(value_get_refuses_an_unknown_letter)
{
    const struct tenrec_value v = tenrec_value_int(1);
    tenrec_error err;
    int64_t a;

    assert_int_equal(tenrec_value_unpack(&v, 1, &err, "q", &a), TENREC_EINVAL);
    assert_non_null(strstr(err.text, "'q'"));
}

static void tensor_is_refused(const struct tenrec_value *v, const char *types, const char *text)
{
    struct tenrec_tensor *t;
    tenrec_error err;

    assert_int_equal(tenrec_value_unpack(v, 1, &err, types, &t), TENREC_EINVAL);
    assert_string_equal(err.text, text);
}

TEST(value_get_checks_the_elements_and_the_shape_of_a_tensor)
{
    struct tenrec_tensor *t = NULL, *got = NULL;
    struct tenrec_value args[2];
    int64_t after = 0;
    tenrec_error err;

    assert_int_equal(tenrec_tensor_new(TENREC_INT32, 2, (int64_t[]){ 2, 30 }, &t, NULL), TENREC_OK);
    args[0] = tenrec_value_tensor(t);
    args[1] = tenrec_value_int(5);
    assert_int_equal(tenrec_value_unpack(args, 1, &err, "Ti", &got), TENREC_OK);
    assert_ptr_equal(got, t);
    assert_int_equal(tenrec_value_unpack(args, 2, &err, "Ti[2,*]i", &got, &after), TENREC_OK);
    assert_int_equal(after, 5);
    assert_int_equal(tenrec_value_unpack(args, 2, &err, "Ti[*,30]|i", &got, &after), TENREC_OK);
    assert_int_equal(tenrec_value_unpack(args, 1, &err, "Ti|i", &got, &after), TENREC_OK);
    tensor_is_refused(args, "Tf", "argument 1: the tensor is int32 of [2,30], expected float32");
    tensor_is_refused(args, "Ti[60]",
                      "argument 1: the tensor is int32 of [2,30], expected int32 of [60]");
    tensor_is_refused(args, "Ti[3,*]",
                      "argument 1: the tensor is int32 of [2,30], expected int32 of [3,*]");
    tensor_is_refused(args, "Ti[]",
                      "argument 1: the tensor is int32 of [2,30], expected int32 of []");
    tensor_is_refused(args + 1, "Tf", "argument 1 is an integer, expected a tensor");
    tenrec_tensor_drop(t);
}

TEST(value_get_refuses_malformed_types_of_tensors)
{
    static const char *const malformed[] = { "T",      "Tx",      "Ti[",    "Ti[2",
                                             "Ti[2,",  "Ti[2,,]", "Ti[-1]", "Ti[2 ]",
                                             "Ti[**]", "Ti[,2]",  "Ti[2,]", "Ti[99999999999999999]",
                                             "T[2]" };
    struct tenrec_tensor *t = NULL, *got;
    struct tenrec_value arg;
    tenrec_error err;

    assert_int_equal(tenrec_tensor_new(TENREC_INT32, 1, (int64_t[]){ 2 }, &t, NULL), TENREC_OK);
    arg = tenrec_value_tensor(t);
    for (size_t i = 0; i < N(malformed); i++) {
        assert_int_equal(tenrec_value_unpack(&arg, 1, &err, malformed[i], &got), TENREC_EINVAL);
        assert_text_has(err.text, "type text has");
    }
    tenrec_tensor_drop(t);
}

TEST(value_find_returns_the_value_when_the_key_is_there)
{
    const struct tenrec_entry entries[] = { { "a", tenrec_value_int(1) },
                                            { "b", tenrec_value_int(2) } };
    const struct tenrec_value map = tenrec_value_map(entries, 2), other = tenrec_value_int(0);

    assert_ptr_equal(tenrec_value_find(&map, "b"), &entries[1].value);
    assert_null(tenrec_value_find(&map, "c"));
    assert_null(tenrec_value_find(&other, "a"));
    assert_null(tenrec_value_find(NULL, "a"));
}

TEST(value_copy_owns_everything_when_the_original_goes)
{
    char text[] = "hello", bytes[] = { 1, 2, 3 }, key[] = "key";
    struct tenrec_tensor *t = small_tensor();
    struct tenrec_value inner[] = { tenrec_value_int(1), tenrec_value_tensor(t),
                                    tenrec_value_text(text) };
    struct tenrec_entry entries[] = { { key, tenrec_value_bytes(bytes, 3) },
                                      { "list", tenrec_value_array(inner, 3) } };
    struct tenrec_value root = tenrec_value_map(entries, 2), *copy = NULL;
    const struct tenrec_value *list, *data;

    assert_int_equal(tenrec_value_copy(&root, &copy, NULL), TENREC_OK);
    tenrec_tensor_drop(t);
    memset(text, 'x', sizeof text);
    memset(bytes, 0, sizeof bytes);
    memset(key, 'x', sizeof key);
    memset(inner, 0xff, sizeof inner);
    memset(entries, 0xff, sizeof entries);
    data = tenrec_value_find(copy, "key");
    list = tenrec_value_find(copy, "list");
    assert_non_null(data);
    assert_memory_equal(data->u.bytes, "\1\2\3", 3);
    assert_int_equal(list->n, 3);
    assert_string_equal(list->u.array[2].u.text, "hello");
    assert_int_equal(tenrec_tensor_count(list->u.array[1].u.tensor), 2);
    tenrec_value_drop(copy);
}

TEST(value_copy_refuses_memory_that_is_null)
{
    struct tenrec_entry entry = { NULL, tenrec_value_nil() };
    struct tenrec_value v[] = {
        tenrec_value_text("abc"),  tenrec_value_bytes(NULL, 3), tenrec_value_array(NULL, 1),
        tenrec_value_map(NULL, 1), tenrec_value_map(&entry, 1),
    };
    struct tenrec_value *copy = NULL;
    tenrec_error err;

    v[0].u.text = NULL;
    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
        assert_int_equal(tenrec_value_copy(&v[i], &copy, &err), TENREC_EINVAL);
        assert_text_has(err.text, "NULL");
    }
    assert_null(copy);
}

TEST(value_copy_refuses_when_nested_too_deep)
{
    struct tenrec_value level[66], *copy = NULL;
    tenrec_error err;

    level[0] = tenrec_value_int(1);
    for (int i = 1; i < 66; i++)
        level[i] = tenrec_value_array(&level[i - 1], 1);
    assert_int_equal(tenrec_value_copy(&level[63], &copy, &err), TENREC_OK);
    tenrec_value_drop(copy);
    copy = NULL;
    assert_int_equal(tenrec_value_copy(&level[64], &copy, &err), TENREC_EINVAL);
    assert_null(copy);
    assert_non_null(strstr(err.text, "deeper than 64"));
}

TEST(value_copy_refuses_an_unknown_type)
{
    struct tenrec_value v = tenrec_value_of((enum tenrec_value_type)99, 0), *copy = NULL;

    assert_int_equal(tenrec_value_copy(&v, &copy, NULL), TENREC_EINVAL);
}

TEST(value_type_name_tells_an_unknown_type)
{
    assert_string_equal(tenrec_value_type_name(TENREC_VALUE_MAP), "a map");
    assert_string_equal(tenrec_value_type_name(99), "of an unknown type");
}
TEST(value_of_a_region_is_copied_and_read_by_type)
{
    struct tenrec_region_ref ref = { .size = sizeof ref, .length = 9, .owner = "worker1" };
    const struct tenrec_value item = tenrec_value_region(&ref), list = tenrec_value_array(&item, 1);
    const struct tenrec_region_ref *got = NULL;
    struct tenrec_value *copy = NULL;
    tenrec_error err;

    assert_status(tenrec_value_copy(&list, &copy, &err), &err);
    assert_status(tenrec_value_unpack(copy->u.array, 1, &err, "g", &got), &err);
    assert_ptr_not_equal(got, &ref);
    assert_memory_equal(got, &ref, sizeof ref);
    assert_int_equal(tenrec_value_unpack(&list, 1, &err, "g", &got), TENREC_EINVAL);
    assert_string_equal(err.text, "argument 1 is an array, expected a region");
    tenrec_value_drop(copy);
}

TEST(value_of_a_region_is_refused_when_it_is_no_reference)
{
    struct tenrec_region_ref ref = { .size = sizeof ref - 1, .owner = "worker1" };
    const struct tenrec_value v = tenrec_value_region(&ref), none = tenrec_value_region(NULL);
    struct tenrec_value *copy = NULL;
    tenrec_error err;

    assert_int_equal(tenrec_value_copy(&none, &copy, &err), TENREC_EINVAL);
    assert_string_equal(err.text, "a region is NULL");
    assert_int_equal(tenrec_value_copy(&v, &copy, &err), TENREC_EINVAL);
    assert_text_has(err.text, "expected 184");
    ref.size = sizeof ref;
    memset(ref.owner, 'x', sizeof ref.owner);
    assert_int_equal(tenrec_value_copy(&v, &copy, &err), TENREC_EINVAL);
    assert_text_has(err.text, "no name of an owner");
    assert_null(copy);
}
