/* SPDX-License-Identifier: Apache-2.0 */
/* codec_call_test.c - calls as payloads and back; malformed payloads. */
#include "../support/payload.h"
#include "../support/tensors.h"
#include "core/tensor/tensor.h"

#include <stdlib.h>
#include <tenrec/future.h>
#include <tenrec/message.h>

TEST(codec_call_has_the_documented_bytes_when_written)
{
    const struct tenrec_value args[] = { tenrec_value_int(2), tenrec_value_text("x") };
    const char want[] = HEAD "\x84\x63"
                             "add\x82\x02\x61x\x19\x03\xe8\xa0";
    struct tenrec_msg *msg = written_call("add", args, 2, 1000);

    assert_int_equal(msg->type, TENREC_MSG_CALL);
    assert_int_equal(msg->payload_len, sizeof want - 1);
    assert_memory_equal(msg->payload, want, sizeof want - 1);
    assert_int_equal(msg->key_len, sizeof want - 1 - 4);
    assert_int_equal(msg->n_tensors, 0);
    msg->release(msg);
}

TEST(codec_call_comes_back_without_arguments)
{
    struct tenrec_msg *msg = written_call("noop", NULL, 0, TENREC_TIMEOUT_NONE);
    struct codec_head head;
    struct codec_call call;

    assert_int_equal(codec_read_head(msg, &head, NULL), TENREC_OK);
    assert_int_equal(head.function_len, 4);
    assert_memory_equal(head.function, "noop", 4);
    assert_int_equal(codec_read_args(msg, &head, &call, NULL), TENREC_OK);
    assert_int_equal(call.n, 0);
    assert_true(call.remaining_ms == TENREC_TIMEOUT_NONE);
    codec_call_finish(&call);
    msg->release(msg);
}

TEST(codec_call_comes_back_with_arguments_of_all_types)
{
    struct tenrec_tensor *t = tensor_of(3, 10);
    const struct tenrec_value items[] = { tenrec_value_int(INT64_MIN),
                                          tenrec_value_int(INT64_MAX) };
    const struct tenrec_entry entries[] = { { "k\xc3\xa4", tenrec_value_bytes("\0\1", 2) },
                                            { "", tenrec_value_nil() } };
    const struct tenrec_value args[] = {
        tenrec_value_nil(),           tenrec_value_bool(true),
        tenrec_value_double(-0.25),   tenrec_value_text("h\xc3\xa9"),
        tenrec_value_bytes("ab", 2),  tenrec_value_array(items, 2),
        tenrec_value_map(entries, 2), tenrec_value_tensor(t)
    };
    struct tenrec_msg *msg = written_call("f", args, N(args), 5);
    struct codec_call call;
    const struct tenrec_value *v;

    tenrec_tensor_drop(t);
    assert_int_equal(codec_read_call(msg, &call, NULL), TENREC_OK);
    assert_int_equal(call.n, N(args));
    assert_int_equal(call.remaining_ms, 5);
    v = call.args;
    assert_int_equal(v[0].type, TENREC_VALUE_NIL);
    assert_true(v[1].u.boolean);
    assert_true(v[2].u.number == -0.25);
    assert_string_equal(v[3].u.text, "h\xc3\xa9");
    assert_memory_equal(v[4].u.bytes, "ab", 2);
    assert_true(v[5].u.array[0].u.integer == INT64_MIN);
    assert_true(v[5].u.array[1].u.integer == INT64_MAX);
    assert_int_equal(tenrec_value_find(&v[6], "k\xc3\xa4")->n, 2);
    assert_int_equal(tenrec_value_find(&v[6], "")->type, TENREC_VALUE_NIL);
    assert_ptr_equal(v[7].u.tensor, t);
    codec_call_finish(&call);
    msg->release(msg);
}

TEST(codec_call_comes_back_when_larger_than_its_room)
{
    struct tenrec_value args[300];
    struct tenrec_msg *msg;
    struct codec_call call;

    for (size_t i = 0; i < N(args); i++)
        args[i] = tenrec_value_int((int64_t)i - 150);
    msg = written_call("many", args, N(args), 0);
    assert_int_equal(codec_read_call(msg, &call, NULL), TENREC_OK);
    assert_non_null(call.heap);
    for (size_t i = 0; i < N(args); i++)
        assert_int_equal(call.args[i].u.integer, (int64_t)i - 150);
    codec_call_finish(&call);
    msg->release(msg);
}

TEST(codec_call_keeps_the_same_key_when_the_time_differs)
{
    const struct tenrec_value args[] = { tenrec_value_int(2) };
    struct tenrec_msg *a = written_call("add", args, 1, 5),
                      *b = written_call("add", args, 1, 70000);

    assert_int_equal(a->key_len, b->key_len);
    assert_memory_equal(a->payload, b->payload, a->key_len);
    a->release(a);
    b->release(b);
}

TEST(codec_call_is_read_when_heads_are_longer_than_needed)
{
    struct tenrec_msg *msg = MESSAGE(HEAD "\x98\x04\x78\x01"
                                          "f\x9b\0\0\0\0\0\0\0\x01\x18\x05\xf6\xa0",
                                     0);
    struct codec_call call;

    assert_int_equal(codec_read_call(msg, &call, NULL), TENREC_OK);
    assert_int_equal(call.args[0].u.integer, 5);
    codec_call_finish(&call);
    msg->release(msg);
}

TEST(codec_call_ignores_unknown_options)
{
    struct tenrec_msg *msg = MESSAGE(HEAD "\x84\x61"
                                          "f\x80\xf6\xa1\x61x\x82\x01\x02",
                                     0);
    struct codec_call call;

    assert_int_equal(codec_read_call(msg, &call, NULL), TENREC_OK);
    assert_int_equal(call.n, 0);
    codec_call_finish(&call);
    msg->release(msg);
}

TEST(codec_call_shares_tensors_when_written)
{
    struct tenrec_tensor *t = tensor_of(4, 0);
    const struct tenrec_value arg = tenrec_value_tensor(t);
    struct tenrec_msg *msg = written_call("f", &arg, 1, 0);

    assert_int_equal(msg->n_tensors, 1);
    assert_ptr_equal(tenrec_msg_tensor(msg, 0)->data, tenrec_tensor_data(t));
    assert_ptr_equal(rpc_message_owner(msg, 0), t);
    msg->release(msg);
    tenrec_tensor_drop(t);
}

TEST(codec_call_copies_a_tensor_that_is_not_contiguous)
{
    int32_t data[] = { 0, 1, 2, 3, 4, 5 };
    const int32_t want[] = { 0, 3, 1, 4, 2, 5 };
    const int64_t shape[] = { 3, 2 }, strides[] = { 1, 3 };
    struct tenrec_tensor *t = NULL;
    struct tenrec_value arg;
    struct tenrec_msg *msg;

    assert_int_equal(tensors_view(data, sizeof data, TENREC_INT32, 2, shape, strides, &t, NULL),
                     TENREC_OK);
    arg = tenrec_value_tensor(t);
    msg = written_call("f", &arg, 1, 0);
    assert_memory_equal(tenrec_msg_tensor(msg, 0)->data, want, sizeof want);
    assert_int_equal(tenrec_msg_tensor(msg, 0)->strides[0], 2);
    msg->release(msg);
    tenrec_tensor_drop(t);
}

TEST(codec_call_refuses_text_that_is_not_utf8)
{
    const struct tenrec_value arg = tenrec_value_text("ab\xff");
    struct tenrec_msg *msg = NULL;
    tenrec_error err;

    assert_int_equal(
        codec_write_call(TENREC_MSG_CALL, "f", &arg, 1, 0, &(struct codec_extra){ 0 }, &msg, &err),
        TENREC_EINVAL);
    assert_non_null(strstr(err.text, "not UTF-8 at its byte 2"));
    assert_null(msg);
}

TEST(codec_call_refuses_arguments_when_nested_too_deep)
{
    struct tenrec_value level[66];
    struct tenrec_msg *msg = NULL;
    struct codec_call call;
    tenrec_error err;

    level[0] = tenrec_value_int(1);
    for (int i = 1; i < 66; i++)
        level[i] = tenrec_value_array(&level[i - 1], 1);
    msg = written_call("f", &level[63], 1, 0);
    assert_int_equal(codec_read_call(msg, &call, NULL), TENREC_OK);
    codec_call_finish(&call);
    msg->release(msg);
    assert_int_equal(codec_write_call(TENREC_MSG_CALL, "f", &level[64], 1, 0,
                                      &(struct codec_extra){ 0 }, &msg, &err),
                     TENREC_EINVAL);
    assert_non_null(strstr(err.text, "deeper than 64"));
}

TEST(codec_call_refuses_a_null_tensor)
{
    const struct tenrec_value arg = tenrec_value_tensor(NULL);
    struct tenrec_msg *msg = NULL;

    assert_int_equal(
        codec_write_call(TENREC_MSG_CALL, "f", &arg, 1, 0, &(struct codec_extra){ 0 }, &msg, NULL),
        TENREC_EINVAL);
}

TEST(codec_call_refuses_every_malformed_payload)
{
    static const struct bad table[] = {
        BAD(HEAD "\x01", "integer at byte 3, expected array as call"),
        BAD(HEAD "\x83\x61"
                 "f\x80\xf6",
            "call at byte 3 has 3 items, expected 4"),
        BAD(HEAD "\x84\x41"
                 "f\x80\xf6\xa0",
            "bytes at byte 4, expected text as name of a function"),
        BAD(HEAD "\x84\x61"
                 "f\xa0\xf6\xa0",
            "map at byte 6, expected array as arguments"),
        BAD(HEAD "\x84\x61"
                 "f\x80\x20\xa0",
            "remaining time at byte 7"),
        BAD(HEAD "\x84\x61"
                 "f\x80\x60\xa0",
            "remaining time at byte 7"),
        BAD(HEAD "\x84\x61"
                 "f\x80\xf6\xf6",
            "null at byte 8, expected map as options"),
        BAD(HEAD "\x84\x61"
                 "f\x80\xf6\xa0\x00",
            "1 bytes too many at byte 9"),
        BAD(HEAD "\x84\x61"
                 "f\x80\xf6\xa1\x61x\xc1\x00",
            "unknown tag 1"),
        BAD(HEAD "\x84\x61"
                 "f\x80\xf6\xa1\x65trace\x00",
            "integer at byte 15, expected bytes as context of a trace"),
        BAD(HEAD "\x84\x61"
                 "f\x80\xf6\xa1\x65trace\x42xy",
            "context of a trace at byte 15 has 2 bytes, expected 25"),
        BAD(HEAD "\x84\x61"
                 "f\x80\xf6\xa1\x65trace\x58\x19xxxxxxxxxxxxxxxx\0\0\0\0\0\0\0\0\1",
            "an id of a trace at byte 15 is zero"),
        BAD(HEAD "\x84\x61"
                 "f\x80\xf6\xa1\x65trace\x58\x19xxxxxxxxxxxxxxxx",
            "byte 15"),
        BAD(HEAD "\x84\x61"
                 "f\x81\xd9\xcd\x74\x00\xf6\xa0",
            "tensor 0 at byte 10, but the message has 0"),
    };

    for (size_t i = 0; i < N(table); i++) {
        struct tenrec_msg *msg = payload_message(table[i].bytes, table[i].n, 0);
        struct codec_call call;
        tenrec_error err;

        if (codec_read_call(msg, &call, &err) != TENREC_EPROTOCOL)
            fail_msg("row %zu is not refused", i);
        if (!strstr(err.text, table[i].text))
            fail_msg("row %zu: '%s' does not say '%s'", i, err.text, table[i].text);
        msg->release(msg);
    }
}

/* Every prefix of a good call is refused, and no byte is read behind its end. */
TEST(codec_call_refuses_every_cut_payload)
{
    struct tenrec_tensor *t = tensor_of(3, 10);
    const struct tenrec_entry entry = { "key", tenrec_value_double(1.5) };
    const struct tenrec_value args[] = { tenrec_value_text("text"), tenrec_value_map(&entry, 1),
                                         tenrec_value_tensor(t), tenrec_value_int(100000) };
    struct tenrec_msg *whole = written_call("function", args, N(args), 60000);

    for (uint64_t n = 0; n < whole->payload_len; n++) {
        struct tenrec_msg *msg = payload_message(whole->payload, (size_t)n, 1);
        struct codec_call call;
        assert_int_equal(codec_read_call(msg, &call, NULL), TENREC_EPROTOCOL);
        msg->release(msg);
    }
    whole->release(whole);
    tenrec_tensor_drop(t);
}
