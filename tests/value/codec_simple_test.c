/* SPDX-License-Identifier: Apache-2.0 */
/* codec_simple_test.c - the fast path for calls with a few simple arguments writes and
 * reads the same bytes as the general codec, or declines. */
#include "../support/payload.h"
#include "core/tensor/tensor.h"
#include "rpc/value/codec_walk.h"

#include <stdlib.h>
#include <tenrec/future.h>
#include <tenrec/message.h>

static char letters[700];

/* A call was read by the long way. */
static bool any;

tenrec_status __real_codec_read_any_args(const struct tenrec_msg *msg,
                                         const struct codec_head *head, struct codec_call *ret,
                                         tenrec_error *err);
tenrec_status __wrap_codec_read_any_args(const struct tenrec_msg *msg,
                                         const struct codec_head *head, struct codec_call *ret,
                                         tenrec_error *err);
tenrec_status __wrap_codec_read_any_args(const struct tenrec_msg *msg,
                                         const struct codec_head *head, struct codec_call *ret,
                                         tenrec_error *err)
{
    any = true;
    return __real_codec_read_any_args(msg, head, ret, err);
}

static void assert_same_message(const struct tenrec_msg *a, const struct tenrec_msg *b)
{
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->key_len, b->key_len);
    assert_int_equal(a->payload_len, b->payload_len);
    assert_int_equal(a->n_tensors, b->n_tensors);
    for (uint32_t i = 0; i < a->n_tensors; i++)
        assert_memory_equal(tenrec_msg_tensor(a, i), tenrec_msg_tensor(b, i), a->tensor_size);
    assert_memory_equal(a->payload, b->payload, (size_t)a->payload_len);
}

static struct tenrec_msg *written_by_the_long_way(const char *function,
                                                  const struct tenrec_value *args, size_t n,
                                                  int64_t ms, const struct trace_context *trace)
{
    struct tenrec_msg *msg;

    assert_int_equal(codec_write_call(TENREC_MSG_CALL, function, args, n, ms,
                                      &(struct codec_extra){ .trace = trace }, &msg, NULL),
                     TENREC_OK);
    return msg;
}

static void check_written(const char *function, const struct tenrec_value *args, size_t n,
                          int64_t ms)
{
    static const struct trace_context context = { { 1 }, { 2 }, 3 };
    const struct trace_context *trace[] = { NULL, &context };

    for (size_t i = 0; i < N(trace); i++) {
        struct tenrec_msg *msg =
                              codec_simple_write(TENREC_MSG_CALL, function, args, n, ms, trace[i]),
                          *want;

        assert_non_null(msg);
        want = written_by_the_long_way(function, args, n, ms, trace[i]);
        assert_same_message(msg, want);
        msg->release(msg);
        want->release(want);
    }
}

static void assert_same_value(const struct tenrec_value *a, const struct tenrec_value *b)
{
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->n, b->n);
    switch (a->type) {
    case TENREC_VALUE_BOOL:
        assert_int_equal(a->u.boolean, b->u.boolean);
        break;
    case TENREC_VALUE_BYTES:
        assert_ptr_equal(a->u.bytes, b->u.bytes);
        break;
    case TENREC_VALUE_TENSOR:
        assert_ptr_equal(a->u.tensor, b->u.tensor);
        break;
    case TENREC_VALUE_NIL:
        break;
    default:
        assert_true(a->u.integer == b->u.integer);
    }
}

/* Reads the arguments both ways. Returns whether the short one was taken. */
static bool check_read(const struct tenrec_msg *msg)
{
    struct codec_call call, want;
    struct codec_head head;
    tenrec_error err, want_err;
    tenrec_status st;
    bool simple;

    if (codec_read_head(msg, &head, &err) != TENREC_OK)
        return false;
    any = false;
    st = codec_read_args(msg, &head, &call, &err);
    simple = !any;
    assert_int_equal(codec_read_any_args(msg, &head, &want, &want_err), st);
    if (st != TENREC_OK) {
        assert_false(simple);
        assert_string_equal(err.text, want_err.text);
        return false;
    }
    assert_int_equal(call.n, want.n);
    for (size_t i = 0; simple && i < call.n; i++)
        assert_same_value(&call.args[i], &want.args[i]);
    assert_true(call.remaining_ms == want.remaining_ms);
    assert_int_equal(call.spans_max, want.spans_max);
    assert_int_equal(call.traced, want.traced);
    if (call.traced)
        assert_memory_equal(&call.trace, &want.trace, sizeof call.trace);
    assert_int_equal(call.refers, want.refers);
    assert_int_equal(call.tensors, want.tensors);
    assert_true(!simple || !call.heap);
    codec_call_finish(&call);
    codec_call_finish(&want);
    return simple;
}

static const int64_t edges[] = { 0,         1,          23,         24,         255,       256,
                                 65535,     65536,      4294967295, 4294967296, INT64_MAX, -1,
                                 -24,       -25,        -256,       -257,       -65536,    -65537,
                                 INT64_MIN, 2147483648, -2147483649 };

TEST(codec_simple_writes_the_same_bytes_when_numbers_are_at_edges)
{
    for (size_t i = 0; i < N(edges); i++) {
        struct tenrec_value v = tenrec_value_int(edges[i]);

        check_written("f", &v, 1, edges[i] < 0 ? 0 : edges[i]);
    }
    check_written("f", NULL, 0, TENREC_TIMEOUT_NONE);
    check_written("f", NULL, 0, -5);
}

TEST(codec_simple_writes_the_same_bytes_when_lengths_are_at_edges)
{
    static const size_t lens[] = { 0, 1, 23, 24, 255, 256, 300, 500 };
    char name[256];

    for (size_t i = 0; i < N(lens); i++) {
        struct tenrec_value v[] = { tenrec_value_bytes(letters, lens[i]),
                                    tenrec_value_text("end") };

        check_written("f", v, 2, 1);
        v[0].type = TENREC_VALUE_TEXT;
        check_written("f", v, 2, 1);
        snprintf(name, sizeof name, "%.*s", (int)lens[i], letters);
        check_written(name, v + 1, 1, 1);
    }
}

TEST(codec_simple_writes_the_same_bytes_when_all_types_are_there)
{
    struct tenrec_value v[] = { tenrec_value_nil(),         tenrec_value_bool(true),
                                tenrec_value_bool(false),   tenrec_value_double(-0.25),
                                tenrec_value_int(-7),       tenrec_value_text("h\xc3\xa9"),
                                tenrec_value_bytes(NULL, 0) };

    check_written("f", v, N(v), 60000);
}

TEST(codec_simple_writes_the_same_message_when_there_are_tensors)
{
    struct tenrec_tensor *t = tensor_of(3, 1), *other = tensor_of(70, 1);
    struct tenrec_value v[] = { tenrec_value_tensor(t), tenrec_value_int(5),
                                tenrec_value_tensor(other), tenrec_value_tensor(t) };

    check_written("f", v, N(v), 60000);
    tenrec_tensor_drop(t);
    tenrec_tensor_drop(other);
}

TEST(codec_simple_leaves_other_values_alone_when_written)
{
    struct tenrec_value many[24],
        list = tenrec_value_array(NULL, 0), none = tenrec_value_tensor(NULL),
        bad = tenrec_value_text("\xff"), missing = tenrec_value_bytes(NULL, 3),
        large = tenrec_value_bytes(letters, sizeof letters),
        two[] = { tenrec_value_bytes(letters, 400), tenrec_value_bytes(letters, 400) };

    for (size_t i = 0; i < N(many); i++)
        many[i] = tenrec_value_nil();
    assert_null(codec_simple_write(TENREC_MSG_CALL, "f", many, N(many), 1, NULL));
    assert_null(codec_simple_write(TENREC_MSG_CALL, "f", &list, 1, 1, NULL));
    assert_null(codec_simple_write(TENREC_MSG_CALL, "f", &none, 1, 1, NULL));
    assert_null(codec_simple_write(TENREC_MSG_CALL, "f", &bad, 1, 1, NULL));
    assert_null(codec_simple_write(TENREC_MSG_CALL, "f", &missing, 1, 1, NULL));
    assert_null(codec_simple_write(TENREC_MSG_CALL, "f", &large, 1, 1, NULL));
    assert_null(codec_simple_write(TENREC_MSG_CALL, "f", two, 2, 1, NULL));
    assert_null(codec_simple_write(TENREC_MSG_CALL, "\xff", NULL, 0, 1, NULL));
    assert_null(codec_simple_write(TENREC_MSG_CALL, letters, NULL, 0, 1, NULL));
}

TEST(codec_simple_reads_the_same_call_as_the_general_codec)
{
    struct tenrec_value v[] = { tenrec_value_nil(),         tenrec_value_bool(true),
                                tenrec_value_bool(false),   tenrec_value_int(-7),
                                tenrec_value_double(-0.25), tenrec_value_int(300),
                                tenrec_value_int(25),       tenrec_value_bytes("ab", 2),
                                tenrec_value_bytes("", 0) };
    struct tenrec_msg *msg = written_call("f", v, N(v), 60000);

    assert_true(check_read(msg));
    msg->release(msg);
    msg = written_call("name", NULL, 0, TENREC_TIMEOUT_NONE);
    assert_true(check_read(msg));
    msg->release(msg);
    for (size_t i = 0; i < N(edges); i++) {
        v[0] = tenrec_value_int(edges[i]);
        msg = written_call("f", v, 1, 1);
        check_read(msg);
        msg->release(msg);
    }
}

static size_t check_read_with_each_byte_changed(struct tenrec_msg *msg)
{
    unsigned char *bytes = msg->payload;
    size_t simple = 0;

    for (uint64_t i = 0; i < msg->payload_len; i++) {
        const unsigned char was = bytes[i];

        for (unsigned b = 0; b < 256; b++) {
            bytes[i] = (unsigned char)b;
            simple += check_read(msg);
        }
        bytes[i] = was;
    }
    return simple;
}

/* Each byte of a call changed in each way: what the short way takes, the long one
 * reads alike. */
TEST(codec_simple_reads_the_same_call_when_a_byte_is_changed)
{
    const struct tenrec_value v[] = { tenrec_value_int(300), tenrec_value_double(1.5),
                                      tenrec_value_bytes("abc", 3), tenrec_value_bool(true) };
    struct tenrec_msg *msg = written_call("fn", v, N(v), 1000);

    assert_true(check_read_with_each_byte_changed(msg) > 1000);
    msg->release(msg);
}

/* Whatever was taken before it is refused is given back: leaks are for the sanitizer. */
TEST(codec_simple_reads_the_same_call_when_a_byte_behind_tensors_is_changed)
{
    struct tenrec_tensor *t = tensor_of(3, 1), *other = tensor_of(3, 5);
    const struct tenrec_value v[] = { tenrec_value_tensor(t), tenrec_value_tensor(other),
                                      tenrec_value_int(300) };
    struct tenrec_msg *msg = written_call("fn", v, N(v), 1000);

    assert_true(check_read(msg));
    assert_true(check_read_with_each_byte_changed(msg) > 100);
    msg->release(msg);
    tenrec_tensor_drop(t);
    tenrec_tensor_drop(other);
}

/* Their memory lives no longer than the message. */
TEST(codec_simple_leaves_alone_tensors_without_owner_when_read)
{
    struct tenrec_tensor *t = tensor_of(3, 1);
    const struct tenrec_value v = tenrec_value_tensor(t);
    struct tenrec_msg *msg = written_call("fn", &v, 1, 1000);

    assert_true(check_read(msg));
    rpc_message_set_owner(msg, 0, NULL);
    assert_false(check_read(msg));
    msg->release(msg);
    tenrec_tensor_drop(t);
}

/* In memory that ends where the payload does. */
TEST(codec_simple_reads_nothing_behind_the_end_of_a_cut_payload)
{
    const struct tenrec_value v[] = { tenrec_value_int(300), tenrec_value_double(1.5),
                                      tenrec_value_bytes("abc", 3) };
    struct tenrec_msg *whole = written_call("fn", v, N(v), 1000), cut = *whole;
    struct codec_call call;

    for (cut.payload_len = 0; cut.payload_len < whole->payload_len; cut.payload_len++) {
        cut.payload = malloc((size_t)cut.payload_len + !cut.payload_len);
        assert_non_null(cut.payload);
        memcpy(cut.payload, whole->payload, (size_t)cut.payload_len);
        assert_int_equal(codec_read_call(&cut, &call, NULL), TENREC_EPROTOCOL);
        free(cut.payload);
    }
    whole->release(whole);
}

TEST(codec_simple_reads_the_same_call_when_a_float_has_the_bits_of_a_boolean)
{
    static const struct bad numbers[] = { BAD("\xf9\0\x14", ""), BAD("\xf9\0\x15", ""),
                                          BAD("\xfa\0\0\0\x14", ""), BAD("\xf8\x15", "") };
    char payload[32] = HEAD "\x84\x62"
                            "fn\x81";
    const size_t begin = strlen(payload);

    for (size_t i = 0; i < N(numbers); i++) {
        struct tenrec_msg *msg;

        memcpy(payload + begin, numbers[i].bytes, numbers[i].n);
        memcpy(payload + begin + numbers[i].n, "\x01\xa0", 2);
        msg = payload_message(payload, begin + numbers[i].n + 2, 0);
        assert_false(check_read(msg));
        msg->release(msg);
    }
}

/* ---- answers ---------------------------------------------------------------- */

/* The value alone is of the short way, in an array of the long one. */
static void check_answer_written(struct tenrec_value v)
{
    const struct tenrec_value list = tenrec_value_array(&v, 1);
    struct tenrec_msg *msg = codec_simple_write_value(&v, TENREC_MSG_RET), *want;
    const char *bytes, *wanted;

    assert_non_null(msg);
    assert_int_equal(codec_write_value(&list, TENREC_MSG_RET, &want, NULL), TENREC_OK);
    bytes = msg->payload;
    wanted = want->payload;
    assert_int_equal(msg->type, want->type);
    assert_int_equal(msg->payload_len + 1, want->payload_len);
    assert_memory_equal(bytes, HEAD, 3);
    assert_memory_equal(bytes + 3, wanted + 4, (size_t)msg->payload_len - 3);
    msg->release(msg);
    want->release(want);
}

TEST(codec_simple_writes_the_same_answer_of_one_number)
{
    for (size_t i = 0; i < N(edges); i++) {
        check_answer_written(tenrec_value_int(edges[i]));
        check_answer_written(tenrec_value_int(~edges[i]));
    }
    check_answer_written(tenrec_value_double(1.5));
    check_answer_written(tenrec_value_bool(true));
    check_answer_written(tenrec_value_bool(false));
}

TEST(codec_simple_declines_to_write_answers_that_are_not_one_number)
{
    const struct tenrec_value one = tenrec_value_int(1);
    const struct tenrec_value v[] = { tenrec_value_nil(), tenrec_value_text("a"),
                                      tenrec_value_bytes("a", 1), tenrec_value_array(&one, 1) };

    for (size_t i = 0; i < N(v); i++)
        assert_null(codec_simple_write_value(&v[i], TENREC_MSG_RET));
}

/* Reads the item as an answer, and in an array by the long way. Returns true if the short way
 * took it. */
static bool check_answer_read(const char *item, size_t n)
{
    char bytes[16] = HEAD, list[16] = HEAD "\x81";
    struct tenrec_msg *msg, *want;
    struct tenrec_value *v, *all;

    memcpy(bytes + 3, item, n);
    memcpy(list + 4, item, n);
    msg = payload_message(bytes, n + 3, 0);
    want = payload_message(list, n + 4, 0);
    v = codec_simple_read_value(msg);
    if (v) {
        assert_int_equal(codec_read_value(want, &all, NULL), TENREC_OK);
        assert_same_value(v, &all->u.array[0]);
        tenrec_value_drop(all);
        tenrec_value_drop(v);
    }
    msg->release(msg);
    want->release(want);
    return v != NULL;
}

/* Each first byte, before bytes that are a boolean's or large, of each length. */
TEST(codec_simple_reads_the_same_answer_as_the_general_codec)
{
    static const char *const behind[] = { "\0\0\0\0\0\0\0\x14", "\0\x15\0\x15\0\0\0\x15",
                                          "\x14\x14\x14\x14\x14\x14\x14\x14",
                                          "\xff\xff\xff\xff\xff\xff\xff\xff" };
    size_t taken = 0;

    for (unsigned first = 0; first < 256; first++)
        for (size_t i = 0; i < N(behind); i++)
            for (size_t n = 1; n <= 9; n++) {
                char item[9];

                item[0] = (char)first;
                memcpy(item + 1, behind[i], 8);
                taken += check_answer_read(item, n);
            }
    assert_true(taken > 100);
}

/* Each byte of the option with a wrong value, and each length. */
TEST(codec_simple_reads_the_same_trace_as_the_general_codec)
{
    const struct trace_context trace = { { 1 }, { 2 }, TRACE_SAMPLED };
    struct tenrec_msg *msg = codec_simple_write(TENREC_MSG_CALL, "f", NULL, 0, 5, &trace);
    const size_t len = (size_t)msg->payload_len;
    unsigned char *payload = msg->payload;

    assert_true(check_read(msg));
    for (size_t i = msg->key_len; i < len; i++) {
        const unsigned char good = payload[i];

        for (unsigned bad = 0; bad < 256; bad++) {
            payload[i] = (unsigned char)bad;
            check_read(msg);
        }
        payload[i] = good;
        msg->payload_len = i;
        check_read(msg);
        msg->payload_len = len;
    }
    msg->release(msg);
}

int main(void)
{
    memset(letters, 'x', sizeof letters - 1);
    return testing_run(NULL, NULL);
}
