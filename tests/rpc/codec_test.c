/* Calls, values and errors as payloads and back; what must be refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <tenrec/future.h>

#include "rpc/codec.h"
#include "rpc/message.h"

#define N(array) (sizeof(array) / sizeof *(array))
#define HEAD "\xd9\xd9\xf7"

/* A message with this payload, the array's NUL left out. */
#define MESSAGE(text, n_tensors) message_of(text, sizeof text - 1, n_tensors)

static struct tenrec_msg *message_of(const char *payload, size_t n, uint32_t n_tensors)
{
    struct tenrec_msg *msg = rpc_message_new(n, n_tensors);

    assert_non_null(msg);
    memcpy(msg->payload, payload, n);
    return msg;
}

static struct tenrec_tensor *tensor_of(int64_t n, int32_t first)
{
    struct tenrec_tensor *t = NULL;
    int32_t *data;

    assert_int_equal(tenrec_tensor_new(TENREC_INT32, 1, &n, &t, NULL), TENREC_OK);
    data = tenrec_tensor_data(t);
    for (int64_t i = 0; i < n; i++)
        data[i] = first + (int32_t)i;
    return t;
}

static struct tenrec_msg *written_call(const char *function, const struct tenrec_value *args,
                                       size_t n, int64_t ms)
{
    struct tenrec_msg *msg = NULL;
    tenrec_error err;

    err.text[0] = '\0';
    if (codec_write_call(TENREC_MSG_CALL, function, args, n, ms, &msg, &err))
        fail_msg("%s", err.text);
    return msg;
}

/* ---- calls ----------------------------------------------------------------- */

static void codec_call_has_the_documented_bytes_when_written(void **state)
{
    const struct tenrec_value args[] = { tenrec_int(2), tenrec_text("x") };
    const char want[] = HEAD "\x84\x63"
                             "add\x82\x02\x61x\x19\x03\xe8\xa0";
    struct tenrec_msg *msg = written_call("add", args, 2, 1000);

    (void)state;
    assert_int_equal(msg->type, TENREC_MSG_CALL);
    assert_int_equal(msg->payload_len, sizeof want - 1);
    assert_memory_equal(msg->payload, want, sizeof want - 1);
    assert_int_equal(msg->key_len, sizeof want - 1 - 4);
    assert_int_equal(msg->n_tensors, 0);
    msg->release(msg);
}

static void codec_call_comes_back_when_it_has_no_arguments(void **state)
{
    struct tenrec_msg *msg = written_call("noop", NULL, 0, TENREC_TIMEOUT_NONE);
    struct codec_call call;

    (void)state;
    assert_int_equal(codec_read_call(msg, &call, NULL), TENREC_OK);
    assert_int_equal(call.function_len, 4);
    assert_memory_equal(call.function, "noop", 4);
    assert_int_equal(call.n, 0);
    assert_true(call.remaining_ms == TENREC_TIMEOUT_NONE);
    codec_call_finish(&call);
    msg->release(msg);
}

static void codec_call_comes_back_when_it_has_all_types(void **state)
{
    struct tenrec_tensor *t = tensor_of(3, 10);
    const struct tenrec_value items[] = { tenrec_int(INT64_MIN), tenrec_int(INT64_MAX) };
    const struct tenrec_entry entries[] = { { "k\xc3\xa4", tenrec_bytes("\0\1", 2) },
                                            { "", tenrec_nil() } };
    const struct tenrec_value args[] = { tenrec_nil(),           tenrec_bool(true),
                                         tenrec_double(-0.25),   tenrec_text("h\xc3\xa9"),
                                         tenrec_bytes("ab", 2),  tenrec_array(items, 2),
                                         tenrec_map(entries, 2), tenrec_tensor(t) };
    struct tenrec_msg *msg = written_call("f", args, N(args), 5);
    struct codec_call call;
    const struct tenrec_value *v;

    (void)state;
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

static void codec_call_comes_back_when_it_needs_more_than_its_room(void **state)
{
    struct tenrec_value args[300];
    struct tenrec_msg *msg;
    struct codec_call call;

    (void)state;
    for (size_t i = 0; i < N(args); i++)
        args[i] = tenrec_int((int64_t)i - 150);
    msg = written_call("many", args, N(args), 0);
    assert_int_equal(codec_read_call(msg, &call, NULL), TENREC_OK);
    assert_non_null(call.heap);
    for (size_t i = 0; i < N(args); i++)
        assert_int_equal(call.args[i].u.integer, (int64_t)i - 150);
    codec_call_finish(&call);
    msg->release(msg);
}

static void codec_call_keeps_the_same_key_when_the_time_differs(void **state)
{
    const struct tenrec_value args[] = { tenrec_int(2) };
    struct tenrec_msg *a = written_call("add", args, 1, 5),
                      *b = written_call("add", args, 1, 70000);

    (void)state;
    assert_int_equal(a->key_len, b->key_len);
    assert_memory_equal(a->payload, b->payload, a->key_len);
    a->release(a);
    b->release(b);
}

static void codec_call_is_read_when_heads_are_longer_than_needed(void **state)
{
    struct tenrec_msg *msg = MESSAGE(HEAD "\x98\x04\x78\x01"
                                          "f\x9b\0\0\0\0\0\0\0\x01\x18\x05\xf6\xa0",
                                     0);
    struct codec_call call;

    (void)state;
    assert_int_equal(codec_read_call(msg, &call, NULL), TENREC_OK);
    assert_int_equal(call.args[0].u.integer, 5);
    codec_call_finish(&call);
    msg->release(msg);
}

static void codec_call_ignores_options_when_it_knows_none(void **state)
{
    struct tenrec_msg *msg = MESSAGE(HEAD "\x84\x61"
                                          "f\x80\xf6\xa1\x61x\x82\x01\x02",
                                     0);
    struct codec_call call;

    (void)state;
    assert_int_equal(codec_read_call(msg, &call, NULL), TENREC_OK);
    assert_int_equal(call.n, 0);
    codec_call_finish(&call);
    msg->release(msg);
}

static void codec_call_shares_tensors_when_written(void **state)
{
    struct tenrec_tensor *t = tensor_of(4, 0);
    const struct tenrec_value arg = tenrec_tensor(t);
    struct tenrec_msg *msg = written_call("f", &arg, 1, 0);

    (void)state;
    assert_int_equal(msg->n_tensors, 1);
    assert_ptr_equal(tenrec_msg_tensor(msg, 0)->data, tenrec_tensor_data(t));
    assert_ptr_equal(rpc_message_owner(msg, 0), t);
    msg->release(msg);
    tenrec_tensor_drop(t);
}

static void codec_call_copies_a_tensor_when_it_is_not_contiguous(void **state)
{
    int32_t data[] = { 0, 1, 2, 3, 4, 5 };
    const int32_t want[] = { 0, 3, 1, 4, 2, 5 };
    const int64_t shape[] = { 3, 2 }, strides[] = { 1, 3 };
    struct tenrec_tensor *t = NULL;
    struct tenrec_value arg;
    struct tenrec_msg *msg;

    (void)state;
    assert_int_equal(tenrec_tensor_from_data(data, sizeof data, TENREC_INT32, 2, shape, strides,
                                             NULL, NULL, &t, NULL),
                     TENREC_OK);
    arg = tenrec_tensor(t);
    msg = written_call("f", &arg, 1, 0);
    assert_memory_equal(tenrec_msg_tensor(msg, 0)->data, want, sizeof want);
    assert_int_equal(tenrec_msg_tensor(msg, 0)->strides[0], 2);
    msg->release(msg);
    tenrec_tensor_drop(t);
}

static void codec_call_refuses_text_when_it_is_not_utf8(void **state)
{
    const struct tenrec_value arg = tenrec_text("ab\xff");
    struct tenrec_msg *msg = NULL;
    tenrec_error err;

    (void)state;
    assert_int_equal(codec_write_call(TENREC_MSG_CALL, "f", &arg, 1, 0, &msg, &err), TENREC_EINVAL);
    assert_non_null(strstr(err.text, "not UTF-8 at its byte 2"));
    assert_null(msg);
}

static void codec_call_refuses_arguments_when_nested_too_deep(void **state)
{
    struct tenrec_value level[66];
    struct tenrec_msg *msg = NULL;
    struct codec_call call;
    tenrec_error err;

    (void)state;
    level[0] = tenrec_int(1);
    for (int i = 1; i < 66; i++)
        level[i] = tenrec_array(&level[i - 1], 1);
    msg = written_call("f", &level[63], 1, 0);
    assert_int_equal(codec_read_call(msg, &call, NULL), TENREC_OK);
    codec_call_finish(&call);
    msg->release(msg);
    assert_int_equal(codec_write_call(TENREC_MSG_CALL, "f", &level[64], 1, 0, &msg, &err),
                     TENREC_EINVAL);
    assert_non_null(strstr(err.text, "deeper than 64"));
}

static void codec_call_refuses_a_tensor_when_it_is_null(void **state)
{
    const struct tenrec_value arg = tenrec_tensor(NULL);
    struct tenrec_msg *msg = NULL;

    (void)state;
    assert_int_equal(codec_write_call(TENREC_MSG_CALL, "f", &arg, 1, 0, &msg, NULL), TENREC_EINVAL);
}

/* ---- single values: the vectors of RFC 8949, appendix A ----------------------- */

static struct tenrec_value *read_ok(const char *payload, size_t n)
{
    struct tenrec_msg *msg = message_of(payload, n, 0);
    struct tenrec_value *v = NULL;
    tenrec_error err;

    if (codec_read_value(msg, &v, &err))
        fail_msg("%s", err.text);
    msg->release(msg);
    return v;
}
#define READ(bytes) read_ok(HEAD bytes, sizeof(HEAD bytes) - 1)

static void codec_value_reads_integers_of_the_rfc(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        int64_t want;
    } table[] = {
        { "\x00", 1, 0 },
        { "\x01", 1, 1 },
        { "\x0a", 1, 10 },
        { "\x17", 1, 23 },
        { "\x18\x18", 2, 24 },
        { "\x18\x64", 2, 100 },
        { "\x19\x03\xe8", 3, 1000 },
        { "\x1a\x00\x0f\x42\x40", 5, 1000000 },
        { "\x1b\x00\x00\x00\xe8\xd4\xa5\x10\x00", 9, 1000000000000 },
        { "\x1b\x7f\xff\xff\xff\xff\xff\xff\xff", 9, INT64_MAX },
        { "\x20", 1, -1 },
        { "\x29", 1, -10 },
        { "\x38\x63", 2, -100 },
        { "\x39\x03\xe7", 3, -1000 },
        { "\x3b\x7f\xff\xff\xff\xff\xff\xff\xff", 9, INT64_MIN },
    };
    char payload[16] = HEAD;

    (void)state;
    for (size_t i = 0; i < N(table); i++) {
        struct tenrec_value *v;
        memcpy(payload + 3, table[i].bytes, table[i].n);
        v = read_ok(payload, 3 + table[i].n);
        assert_int_equal(v->type, TENREC_VALUE_INT);
        assert_true(v->u.integer == table[i].want);
        tenrec_value_drop(v);
    }
}

static void codec_value_reads_floats_of_the_rfc(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        double want;
    } table[] = {
        { "\xf9\x00\x00", 3, 0.0 },
        { "\xf9\x80\x00", 3, -0.0 },
        { "\xf9\x3c\x00", 3, 1.0 },
        { "\xf9\x3e\x00", 3, 1.5 },
        { "\xf9\x7b\xff", 3, 65504.0 },
        { "\xf9\x00\x01", 3, 5.960464477539063e-8 },
        { "\xf9\x04\x00", 3, 0.00006103515625 },
        { "\xf9\xc4\x00", 3, -4.0 },
        { "\xfa\x47\xc3\x50\x00", 5, 100000.0 },
        { "\xfa\x7f\x7f\xff\xff", 5, 3.4028234663852886e+38 },
        { "\xfb\x3f\xf1\x99\x99\x99\x99\x99\x9a", 9, 1.1 },
        { "\xfb\x7e\x37\xe4\x3c\x88\x00\x75\x9c", 9, 1.0e+300 },
        { "\xfb\xc0\x10\x66\x66\x66\x66\x66\x66", 9, -4.1 },
        { "\xf9\x7c\x00", 3, (double)INFINITY },
        { "\xf9\xfc\x00", 3, -(double)INFINITY },
        { "\xfa\x7f\x80\x00\x00", 5, (double)INFINITY },
        { "\xfb\x7f\xf0\x00\x00\x00\x00\x00\x00", 9, (double)INFINITY },
    };
    char payload[16] = HEAD;

    (void)state;
    for (size_t i = 0; i < N(table); i++) {
        struct tenrec_value *v;
        memcpy(payload + 3, table[i].bytes, table[i].n);
        v = read_ok(payload, 3 + table[i].n);
        assert_int_equal(v->type, TENREC_VALUE_DOUBLE);
        assert_true(v->u.number == table[i].want);
        assert_int_equal(signbit(v->u.number), signbit(table[i].want));
        tenrec_value_drop(v);
    }
}

static void codec_value_reads_nan_of_every_width(void **state)
{
    struct tenrec_value *half = READ("\xf9\x7e\x00"), *single = READ("\xfa\x7f\xc0\x00\x00"),
                        *dbl = READ("\xfb\x7f\xf8\x00\x00\x00\x00\x00\x00");

    (void)state;
    assert_true(isnan(half->u.number));
    assert_true(isnan(single->u.number));
    assert_true(isnan(dbl->u.number));
    tenrec_value_drop(half);
    tenrec_value_drop(single);
    tenrec_value_drop(dbl);
}

static void codec_value_reads_texts_of_the_rfc(void **state)
{
    static const struct {
        const char *bytes;
        const char *want;
    } table[] = {
        { "\x60", "" },
        { "\x64IETF", "IETF" },
        { "\x62\"\\", "\"\\" },
        { "\x62\xc3\xbc", "\xc3\xbc" },
        { "\x63\xe6\xb0\xb4", "\xe6\xb0\xb4" },
        { "\x64\xf0\x90\x85\x91", "\xf0\x90\x85\x91" },
    };
    char payload[16] = HEAD;

    (void)state;
    for (size_t i = 0; i < N(table); i++) {
        struct tenrec_value *v;
        memcpy(payload + 3, table[i].bytes, strlen(table[i].bytes));
        v = read_ok(payload, 3 + strlen(table[i].bytes));
        assert_string_equal(v->u.text, table[i].want);
        assert_int_equal(v->n, strlen(table[i].want));
        tenrec_value_drop(v);
    }
}

static void codec_value_reads_collections_of_the_rfc(void **state)
{
    struct tenrec_value *v = READ("\x83\x01\x82\x02\x03\x82\x04\x05");
    struct tenrec_value *m = READ("\x82\x61\x61\xa1\x61\x62\x61\x63");
    struct tenrec_value *flags = READ("\x83\xf4\xf5\xf6");

    (void)state;
    assert_int_equal(v->u.array[2].u.array[1].u.integer, 5);
    assert_string_equal(tenrec_value_find(&m->u.array[1], "b")->u.text, "c");
    assert_false(flags->u.array[0].u.boolean);
    assert_true(flags->u.array[1].u.boolean);
    assert_int_equal(flags->u.array[2].type, TENREC_VALUE_NIL);
    tenrec_value_drop(v);
    tenrec_value_drop(m);
    tenrec_value_drop(flags);
}

static void codec_value_outlives_its_message_when_read(void **state)
{
    struct tenrec_tensor *t = tensor_of(3, 10);
    const struct tenrec_value items[] = { tenrec_bytes("abc", 3), tenrec_tensor(t) };
    const struct tenrec_value list = tenrec_array(items, 2);
    struct tenrec_msg *msg = NULL;
    struct tenrec_value *v = NULL;

    (void)state;
    assert_int_equal(codec_write_value(&list, TENREC_MSG_RET, &msg, NULL), TENREC_OK);
    assert_int_equal(msg->type, TENREC_MSG_RET);
    tenrec_tensor_drop(t);
    assert_int_equal(codec_read_value(msg, &v, NULL), TENREC_OK);
    memset(msg->payload, 0xff, (size_t)msg->payload_len);
    msg->release(msg);
    assert_memory_equal(v->u.array[0].u.bytes, "abc", 3);
    assert_int_equal(((int32_t *)tenrec_tensor_data(v->u.array[1].u.tensor))[2], 12);
    tenrec_value_drop(v);
}

static void codec_value_is_nil_when_none_is_given(void **state)
{
    struct tenrec_msg *msg = NULL;
    struct tenrec_value *v = NULL;

    (void)state;
    assert_int_equal(codec_write_value(NULL, TENREC_MSG_RET, &msg, NULL), TENREC_OK);
    assert_int_equal(codec_read_value(msg, &v, NULL), TENREC_OK);
    assert_int_equal(v->type, TENREC_VALUE_NIL);
    tenrec_value_drop(v);
    msg->release(msg);
}

static void codec_value_copies_a_tensor_when_nobody_owns_it(void **state)
{
    struct tenrec_msg *msg = MESSAGE(HEAD "\xd9\xcd\x74\x00", 1);
    struct tenrec_tensor_desc *d = tenrec_msg_tensor(msg, 0);
    int32_t data[] = { 7, 8 };
    struct tenrec_value *v = NULL;

    (void)state;
    d->data = data;
    d->bytes = sizeof data;
    d->dtype = TENREC_INT32;
    d->ndim = 1;
    d->shape[0] = 2;
    d->strides[0] = 1;
    d->device.kind = TENREC_CPU;
    assert_int_equal(codec_read_value(msg, &v, NULL), TENREC_OK);
    msg->release(msg);
    assert_ptr_not_equal(tenrec_tensor_data(v->u.tensor), data);
    assert_int_equal(((int32_t *)tenrec_tensor_data(v->u.tensor))[1], 8);
    tenrec_value_drop(v);
}

static void codec_value_refuses_a_tensor_when_it_reaches_too_far(void **state)
{
    struct tenrec_msg *msg = MESSAGE(HEAD "\x82\x01\xd9\xcd\x74\x00", 1);
    struct tenrec_tensor_desc *d = tenrec_msg_tensor(msg, 0);
    int32_t data[] = { 7, 8 };
    struct tenrec_value *v = NULL;
    tenrec_error err;

    (void)state;
    d->data = data;
    d->bytes = sizeof data;
    d->dtype = TENREC_INT32;
    d->ndim = 1;
    d->shape[0] = 3;
    d->strides[0] = 1;
    d->device.kind = TENREC_CPU;
    assert_int_equal(codec_read_value(msg, &v, &err), TENREC_EPROTOCOL);
    assert_int_equal(err.code, TENREC_EPROTOCOL);
    assert_non_null(strstr(err.text, "tensor 0: tensor reaches beyond its storage of 8 bytes"));
    msg->release(msg);
}

/* ---- what is refused ------------------------------------------------------------ */

struct bad {
    const char *bytes;
    size_t n;
    const char *text; /* part of the error's */
};
#define BAD(bytes, text)                                                                           \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, text                                                             \
    }

static void codec_value_refuses_every_malformed_payload(void **state)
{
    static const struct bad table[] = {
        BAD("", "does not begin with d9 d9 f7 at byte 0"),
        BAD("\xd9\xd9", "does not begin"),
        BAD("\x80\x04\x4e\x2e", "does not begin"), /* a pickle */
        BAD(HEAD, "data ends at byte 3"),
        BAD(HEAD "\x01\x02", "1 bytes too many at byte 4"),
        BAD(HEAD "\x18", "value at byte 3 is cut"),
        BAD(HEAD "\x19\x01", "value at byte 3 is cut"),
        BAD(HEAD "\x1c", "begins no CBOR item"),
        BAD(HEAD "\x63"
                 "ab",
            "value at byte 3 is cut"),
        BAD(HEAD "\x7b\xff\xff\xff\xff\xff\xff\xff\xff", "value at byte 3 is cut"),
        BAD(HEAD "\x5b\xff\xff\xff\xff\xff\xff\xff\xff", "value at byte 3 is cut"),
        BAD(HEAD "\x9b\xff\xff\xff\xff\xff\xff\xff\xff", "only 0 bytes follow"),
        BAD(HEAD "\xbb\xff\xff\xff\xff\xff\xff\xff\xff\x00", "only 1 bytes follow"),
        BAD(HEAD "\x83\x01\x02", "array of 3 items at byte 3, but only 2 bytes follow"),
        BAD(HEAD "\xa2\x61x\x01", "map of 2 items at byte 3"),
        BAD(HEAD "\x82\x61x", "data ends at byte 6"),
        BAD(HEAD "\x9f\x01\xff", "indefinite length"),
        BAD(HEAD "\xbf\xff", "indefinite length"),
        BAD(HEAD "\x7f\x61x\xff", "indefinite length"),
        BAD(HEAD "\x5f\xff", "indefinite length"),
        BAD(HEAD "\xff", "break"),
        BAD(HEAD "\xf7", "'undefined'"),
        BAD(HEAD "\xf0", "begins no CBOR item"),
        BAD(HEAD "\xf8\xff", "begins no CBOR item"),
        BAD(HEAD "\x1b\x80\x00\x00\x00\x00\x00\x00\x00", "above 9223372036854775807, at byte 3"),
        BAD(HEAD "\x3b\x80\x00\x00\x00\x00\x00\x00\x00", "below -9223372036854775808, at byte 3"),
        BAD(HEAD "\x61\xff", "text is not UTF-8 at byte 4"),
        BAD(HEAD "\x62\xc0\x80", "text is not UTF-8 at byte 4"),         /* not the shortest form */
        BAD(HEAD "\x64 \xed\xa0\x80", "text is not UTF-8 at byte 5"),    /* a surrogate */
        BAD(HEAD "\x64\xf4\x90\x80\x80", "text is not UTF-8 at byte 4"), /* above U+10FFFF */
        BAD(HEAD "\x62 \xc3", "text is not UTF-8 at byte 5"),            /* cut */
        BAD(HEAD "\xa1\x01\x02", "integer at byte 4, expected text as key of a map"),
        BAD(HEAD "\xa1\x62"
                 "a\0\x02",
            "key at byte 4 has a zero byte in it"),
        BAD(HEAD "\xc1\x01", "unknown tag 1 at byte 3"),
        BAD(HEAD "\xd9\xcd\x75\x00", "unknown tag 52597"),
        BAD(HEAD "\xd9\xcd\x74\x01", "tensor 1 at byte 6, but the message has 1"),
        BAD(HEAD "\xd9\xcd\x74\x20", "tensor -1 at byte 6"),
        BAD(HEAD "\xd9\xcd\x74\x60", "text at byte 6, expected integer as index of a tensor"),
        BAD(HEAD "\xd9\xcd\x74", "data ends at byte 6"),
    };

    (void)state;
    for (size_t i = 0; i < N(table); i++) {
        struct tenrec_msg *msg = message_of(table[i].bytes, table[i].n, 1);
        struct tenrec_value *v = NULL;
        tenrec_error err;

        if (codec_read_value(msg, &v, &err) != TENREC_EPROTOCOL)
            fail_msg("row %zu is not refused", i);
        assert_null(v);
        if (!strstr(err.text, table[i].text))
            fail_msg("row %zu: '%s' does not say '%s'", i, err.text, table[i].text);
        msg->release(msg);
    }
}

static void codec_call_refuses_every_malformed_payload(void **state)
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
                 "f\x81\xd9\xcd\x74\x00\xf6\xa0",
            "tensor 0 at byte 10, but the message has 0"),
    };

    (void)state;
    for (size_t i = 0; i < N(table); i++) {
        struct tenrec_msg *msg = message_of(table[i].bytes, table[i].n, 0);
        struct codec_call call;
        tenrec_error err;

        if (codec_read_call(msg, &call, &err) != TENREC_EPROTOCOL)
            fail_msg("row %zu is not refused", i);
        if (!strstr(err.text, table[i].text))
            fail_msg("row %zu: '%s' does not say '%s'", i, err.text, table[i].text);
        msg->release(msg);
    }
}

static void codec_value_refuses_when_nested_deeper_than_the_limit(void **state)
{
    char payload[3 + 100] = HEAD;
    struct tenrec_value *v = NULL;
    struct tenrec_msg *msg;
    tenrec_error err;

    (void)state;
    /* 63 arrays around an integer are 64 values deep. */
    memset(payload + 3, 0x81, 63);
    payload[3 + 63] = 0;
    tenrec_value_drop(read_ok(payload, 3 + 64));
    memset(payload + 3, 0x81, 64);
    payload[3 + 64] = 0;
    msg = message_of(payload, 3 + 65, 0);
    assert_int_equal(codec_read_value(msg, &v, &err), TENREC_EPROTOCOL);
    assert_non_null(strstr(err.text, "deeper than 64 at byte 66"));
    msg->release(msg);
}

/* Every prefix of a good call is refused, and no byte is read behind its end. */
static void codec_call_refuses_every_cut_payload(void **state)
{
    struct tenrec_tensor *t = tensor_of(3, 10);
    const struct tenrec_entry entry = { "key", tenrec_double(1.5) };
    const struct tenrec_value args[] = { tenrec_text("text"), tenrec_map(&entry, 1),
                                         tenrec_tensor(t), tenrec_int(100000) };
    struct tenrec_msg *whole = written_call("function", args, N(args), 60000);

    (void)state;
    for (uint64_t n = 0; n < whole->payload_len; n++) {
        struct tenrec_msg *msg = message_of(whole->payload, (size_t)n, 1);
        struct codec_call call;
        assert_int_equal(codec_read_call(msg, &call, NULL), TENREC_EPROTOCOL);
        msg->release(msg);
    }
    whole->release(whole);
    tenrec_tensor_drop(t);
}

/* ---- errors ------------------------------------------------------------------------ */

static tenrec_error some_error(void)
{
    tenrec_error why;

    tenrec_fail(&why, TENREC_ETOOBIG, "too big: %d", 7);
    why.os_errno = 12;
    why.worker = 3;
    memcpy(why.worker_name, "worker3", 8);
    return why;
}

static void codec_error_comes_back_when_written_for_tenrec(void **state)
{
    const tenrec_error why = some_error();
    struct tenrec_msg *msg = NULL;
    tenrec_error got;

    (void)state;
    assert_int_equal(codec_write_error(&why, true, &msg, NULL), TENREC_OK);
    assert_int_equal(msg->type, TENREC_MSG_EXCEPTION);
    codec_read_error(msg, &got);
    assert_int_equal(got.code, TENREC_ETOOBIG);
    assert_int_equal(got.os_errno, 12);
    assert_int_equal(got.worker, 3);
    assert_string_equal(got.worker_name, "worker3");
    assert_string_equal(got.text, "too big: 7");
    msg->release(msg);
}

static void codec_error_is_plain_text_when_written_for_others(void **state)
{
    const tenrec_error why = some_error();
    struct tenrec_msg *msg = NULL;
    tenrec_error got;

    (void)state;
    assert_int_equal(codec_write_error(&why, false, &msg, NULL), TENREC_OK);
    assert_int_equal(msg->payload_len, strlen("too big: 7"));
    assert_memory_equal(msg->payload, "too big: 7", strlen("too big: 7"));
    codec_read_error(msg, &got);
    assert_int_equal(got.code, TENREC_EREMOTE);
    assert_int_equal(got.worker, -1);
    assert_string_equal(got.text, "too big: 7");
    msg->release(msg);
}

static void codec_error_stays_utf8_when_a_character_was_cut(void **state)
{
    tenrec_error why = some_error(), got;
    struct tenrec_msg *msg = NULL;

    (void)state;
    memcpy(why.text, "caf\xc3", 5);
    assert_int_equal(codec_write_error(&why, true, &msg, NULL), TENREC_OK);
    codec_read_error(msg, &got);
    assert_string_equal(got.text, "caf?");
    msg->release(msg);
}

static void codec_error_is_cut_at_a_character_when_text_is_long(void **state)
{
    char text[1001] = "";
    struct tenrec_msg *msg;
    tenrec_error got;

    (void)state;
    text[0] = 'a'; /* so that the limit falls into a character */
    for (size_t i = 1; i < 1000; i++)
        text[i] = "\xe6\xb0\xb4"[(i - 1) % 3];
    msg = message_of(text, 1000, 0);
    codec_read_error(msg, &got);
    assert_int_equal(strlen(got.text) % 3, 1);
    assert_in_range(strlen(got.text), sizeof got.text - 3, sizeof got.text - 1);
    msg->release(msg);
}

static void codec_error_has_no_control_characters_when_a_peer_sent_some(void **state)
{
    struct tenrec_msg *msg = MESSAGE("a\x1b[31m\nb\x7f", 0);
    tenrec_error got;

    (void)state;
    codec_read_error(msg, &got);
    assert_string_equal(got.text, "a?[31m\nb?");
    msg->release(msg);
}

static void codec_error_is_remote_when_its_status_is_unknown_or_ok(void **state)
{
    struct tenrec_msg *ok = MESSAGE(HEAD "\x85\x00\x20\x60\x00\x61x", 0);
    struct tenrec_msg *unknown = MESSAGE(HEAD "\x85\x39\x03\xe7\x20\x60\x00\x61x", 0);
    tenrec_error got;

    (void)state;
    codec_read_error(ok, &got);
    assert_int_equal(got.code, TENREC_EREMOTE);
    codec_read_error(unknown, &got);
    assert_int_equal(got.code, TENREC_EREMOTE);
    assert_string_equal(got.text, "x");
    ok->release(ok);
    unknown->release(unknown);
}

static void codec_error_says_so_when_it_cannot_be_read(void **state)
{
    struct tenrec_msg *msg = MESSAGE(HEAD "\x85\x20\x20\x60\x00\x01", 0);
    tenrec_error got;

    (void)state;
    codec_read_error(msg, &got);
    assert_int_equal(got.code, TENREC_EPROTOCOL);
    assert_non_null(strstr(got.text, "unreadable error from the peer"));
    assert_non_null(strstr(got.text, "at byte 8"));
    msg->release(msg);
}

/* ---- messages -------------------------------------------------------------------------- */

static void message_has_zeroed_descriptors_when_recycled(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        struct tenrec_msg *msg = rpc_message_new(16, 1);
        const struct tenrec_tensor_desc zero = { 0 };

        assert_int_equal(msg->payload_len, 16);
        assert_memory_equal(tenrec_msg_tensor(msg, 0), &zero, sizeof zero);
        assert_null(rpc_message_owner(msg, 0));
        memset(msg->payload, 0xff, 16);
        rpc_message_set_tensor(msg, 0, tensor_of(2, 0));
        msg->release(msg);
    }
}

static void message_has_no_owner_when_made_elsewhere(void **state)
{
    struct tenrec_msg *msg = rpc_message_new(16, 0);

    (void)state;
    assert_null(rpc_message_owner(msg, 0));
    msg->release(msg);
    assert_null(rpc_message_new(UINT64_MAX, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codec_call_has_the_documented_bytes_when_written),
        cmocka_unit_test(codec_call_comes_back_when_it_has_no_arguments),
        cmocka_unit_test(codec_call_comes_back_when_it_has_all_types),
        cmocka_unit_test(codec_call_comes_back_when_it_needs_more_than_its_room),
        cmocka_unit_test(codec_call_keeps_the_same_key_when_the_time_differs),
        cmocka_unit_test(codec_call_is_read_when_heads_are_longer_than_needed),
        cmocka_unit_test(codec_call_ignores_options_when_it_knows_none),
        cmocka_unit_test(codec_call_shares_tensors_when_written),
        cmocka_unit_test(codec_call_copies_a_tensor_when_it_is_not_contiguous),
        cmocka_unit_test(codec_call_refuses_text_when_it_is_not_utf8),
        cmocka_unit_test(codec_call_refuses_arguments_when_nested_too_deep),
        cmocka_unit_test(codec_call_refuses_a_tensor_when_it_is_null),
        cmocka_unit_test(codec_value_reads_integers_of_the_rfc),
        cmocka_unit_test(codec_value_reads_floats_of_the_rfc),
        cmocka_unit_test(codec_value_reads_nan_of_every_width),
        cmocka_unit_test(codec_value_reads_texts_of_the_rfc),
        cmocka_unit_test(codec_value_reads_collections_of_the_rfc),
        cmocka_unit_test(codec_value_outlives_its_message_when_read),
        cmocka_unit_test(codec_value_is_nil_when_none_is_given),
        cmocka_unit_test(codec_value_copies_a_tensor_when_nobody_owns_it),
        cmocka_unit_test(codec_value_refuses_a_tensor_when_it_reaches_too_far),
        cmocka_unit_test(codec_value_refuses_every_malformed_payload),
        cmocka_unit_test(codec_call_refuses_every_malformed_payload),
        cmocka_unit_test(codec_value_refuses_when_nested_deeper_than_the_limit),
        cmocka_unit_test(codec_call_refuses_every_cut_payload),
        cmocka_unit_test(codec_error_comes_back_when_written_for_tenrec),
        cmocka_unit_test(codec_error_is_plain_text_when_written_for_others),
        cmocka_unit_test(codec_error_stays_utf8_when_a_character_was_cut),
        cmocka_unit_test(codec_error_is_cut_at_a_character_when_text_is_long),
        cmocka_unit_test(codec_error_has_no_control_characters_when_a_peer_sent_some),
        cmocka_unit_test(codec_error_is_remote_when_its_status_is_unknown_or_ok),
        cmocka_unit_test(codec_error_says_so_when_it_cannot_be_read),
        cmocka_unit_test(message_has_zeroed_descriptors_when_recycled),
        cmocka_unit_test(message_has_no_owner_when_made_elsewhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
