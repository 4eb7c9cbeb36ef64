/* SPDX-License-Identifier: Apache-2.0 */
/* pickler_test.c - what is written is read back the same, in Python's form and in torch's. */
#include "../testing.h"
#include "show.h"

#include "torch/member/pickler.h"

#include <tenrec/chain.h>

/* Writes `v` and reads it back: its text, which the caller frees. */
static char *there_and_back(const struct tenrec_value *v, bool jit, uint32_t *ret_tensors)
{
    struct pickler p = { .jit = jit };
    struct arena arena = { NULL };
    struct tenrec_msg *msg;
    const struct pyobject *o;
    tenrec_error err;
    char *text;
    size_t len;
    FILE *to = open_memstream(&text, &len);

    assert_non_null(to);
    pickler_begin(&p);
    pickler_value(&p, v);
    pickler_end(&p);
    assert_status(pickler_message(&p, TENREC_MSG_RET, &msg, &err), &err);
    assert_status(unpickle(msg->payload, msg->payload_len, &arena, &o, &err), &err);
    show(o, to);
    fclose(to);
    *ret_tensors = msg->n_tensors;
    arena_finish(&arena);
    msg->release(msg);
    return text;
}

static void survives(const struct tenrec_value *v, const char *text)
{
    for (int jit = 0; jit < 2; jit++) {
        uint32_t n;
        char *is = there_and_back(v, jit, &n);

        assert_string_equal(is, text);
        assert_int_equal(n, 0);
        free(is);
    }
}

TEST(pickler_writes_plain_values)
{
    const struct tenrec_value ints[] = { tenrec_value_int(0),         tenrec_value_int(255),
                                         tenrec_value_int(256),       tenrec_value_int(-1),
                                         tenrec_value_int(INT32_MIN), tenrec_value_int(INT64_MAX),
                                         tenrec_value_int(INT64_MIN) };
    const struct tenrec_entry entry[] = { { "n", tenrec_value_nil() },
                                          { "d", tenrec_value_double(-1.5) } };
    const struct tenrec_value all[] = { tenrec_value_array(ints, 7), tenrec_value_bool(true),
                                        tenrec_value_bool(false),    tenrec_value_text("a\xc3\xa4"),
                                        tenrec_value_map(entry, 2),  tenrec_value_array(NULL, 0) };

    survives(&(struct tenrec_value){ 0 }, "None");
    survives(&(struct tenrec_value){ .type = TENREC_VALUE_ARRAY, .n = 6, .u.array = all },
             "[[0, 255, 256, -1, -2147483648, 9223372036854775807, -9223372036854775808], True, "
             "False, 'a\xc3\xa4', {'n': None, 'd': -1.5}, []]");
}

TEST(pickler_numbers_the_tensors_of_its_message)
{
    const int64_t shape = 2;
    struct tenrec_tensor *t;
    struct tenrec_value two[2], v;
    tenrec_error err;

    assert_status(tenrec_tensor_new(TENREC_FLOAT32, 1, &shape, &t, &err), &err);
    two[0] = two[1] = tenrec_value_tensor(t);
    v = tenrec_value_array(two, 2);
    for (int jit = 0; jit < 2; jit++) {
        uint32_t n;
        char *text = there_and_back(&v, jit, &n);

        assert_string_equal(text, "[tensor0, tensor1]");
        assert_int_equal(n, 2);
        free(text);
    }
    tenrec_tensor_drop(t);
}

TEST(pickler_writes_the_name_of_a_worker)
{
    struct pickler p = { .jit = false };
    struct arena arena = { NULL };
    const struct pyobject *o;
    tenrec_error err;

    pickler_begin(&p);
    pickler_worker_info(&p, "c0", 300);
    pickler_end(&p);
    assert_status(unpickle(p.out.data, p.out.len, &arena, &o, &err), &err);
    assert_true(pyobject_is(o, PY_RPC, "WorkerInfo", 2));
    assert_true(pyobject_is_text(o->u.item[1], "c0"));
    assert_int_equal(o->u.item[2]->u.integer, 300);
    arena_finish(&arena);
    pickler_finish(&p);
}

TEST(pickler_refuses_bytes_for_torch_script)
{
    const struct tenrec_value v = tenrec_value_bytes("x", 1);
    struct pickler p = { .jit = true };
    struct tenrec_msg *msg;
    tenrec_error err;

    pickler_begin(&p);
    pickler_value(&p, &v);
    pickler_end(&p);
    assert_int_equal(pickler_message(&p, TENREC_MSG_RET, &msg, &err), TENREC_EUNSUPPORTED);
    assert_text_has(err.text, "bytes");
}

TEST(pickler_refuses_values_that_are_nested_too_deeply)
{
    struct tenrec_value v[80];
    struct pickler p = { .jit = false };
    struct tenrec_msg *msg;
    tenrec_error err;

    v[0] = tenrec_value_nil();
    for (int i = 1; i < 80; i++)
        v[i] = tenrec_value_array(&v[i - 1], 1);
    pickler_begin(&p);
    pickler_value(&p, &v[79]);
    assert_int_equal(pickler_message(&p, TENREC_MSG_RET, &msg, &err), TENREC_EINVAL);
}
