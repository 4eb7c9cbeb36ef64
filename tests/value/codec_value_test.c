/* SPDX-License-Identifier: Apache-2.0 */
/* Single values as payloads and back: the vectors of RFC 8949, appendix A; what
 * must be refused. */
#include "../support/payload.h"
#include "core/tensor/tensor.h"

#include <math.h>
#include <stdlib.h>
#include <tenrec/region.h>

#define NUMBERS "\x00\x00\x00\x00\x00\x00\x00" /* of a region */

static struct tenrec_value *read_ok(const char *payload, size_t n)
{
    struct tenrec_msg *msg = payload_message(payload, n, 0);
    struct tenrec_value *v = NULL;
    tenrec_error err;

    if (codec_read_value(msg, &v, &err))
        fail_msg("%s", err.text);
    msg->release(msg);
    return v;
}
#define READ(bytes) read_ok(HEAD bytes, sizeof(HEAD bytes) - 1)

TEST(codec_value_reads_integers_of_the_rfc)
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

    for (size_t i = 0; i < N(table); i++) {
        struct tenrec_value *v;
        memcpy(payload + 3, table[i].bytes, table[i].n);
        v = read_ok(payload, 3 + table[i].n);
        assert_int_equal(v->type, TENREC_VALUE_INT);
        assert_true(v->u.integer == table[i].want);
        tenrec_value_drop(v);
    }
}

TEST(codec_value_reads_floats_of_the_rfc)
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

TEST(codec_value_reads_nan_of_every_width)
{
    struct tenrec_value *half = READ("\xf9\x7e\x00"), *single = READ("\xfa\x7f\xc0\x00\x00"),
                        *dbl = READ("\xfb\x7f\xf8\x00\x00\x00\x00\x00\x00");

    assert_true(isnan(half->u.number));
    assert_true(isnan(single->u.number));
    assert_true(isnan(dbl->u.number));
    tenrec_value_drop(half);
    tenrec_value_drop(single);
    tenrec_value_drop(dbl);
}

TEST(codec_value_reads_texts_of_the_rfc)
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

    for (size_t i = 0; i < N(table); i++) {
        struct tenrec_value *v;
        memcpy(payload + 3, table[i].bytes, strlen(table[i].bytes));
        v = read_ok(payload, 3 + strlen(table[i].bytes));
        assert_string_equal(v->u.text, table[i].want);
        assert_int_equal(v->n, strlen(table[i].want));
        tenrec_value_drop(v);
    }
}

TEST(codec_value_reads_collections_of_the_rfc)
{
    struct tenrec_value *v = READ("\x83\x01\x82\x02\x03\x82\x04\x05");
    struct tenrec_value *m = READ("\x82\x61\x61\xa1\x61\x62\x61\x63");
    struct tenrec_value *flags = READ("\x83\xf4\xf5\xf6");

    assert_int_equal(v->u.array[2].u.array[1].u.integer, 5);
    assert_string_equal(tenrec_value_find(&m->u.array[1], "b")->u.text, "c");
    assert_false(flags->u.array[0].u.boolean);
    assert_true(flags->u.array[1].u.boolean);
    assert_int_equal(flags->u.array[2].type, TENREC_VALUE_NIL);
    tenrec_value_drop(v);
    tenrec_value_drop(m);
    tenrec_value_drop(flags);
}

TEST(codec_value_outlives_its_message_when_read)
{
    struct tenrec_tensor *t = tensor_of(3, 10);
    const struct tenrec_value items[] = { tenrec_value_bytes("abc", 3), tenrec_value_tensor(t) };
    const struct tenrec_value list = tenrec_value_array(items, 2);
    struct tenrec_msg *msg = NULL;
    struct tenrec_value *v = NULL;

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

TEST(codec_value_is_nil_when_no_value_is_given)
{
    struct tenrec_msg *msg = NULL;
    struct tenrec_value *v = NULL;

    assert_int_equal(codec_write_value(NULL, TENREC_MSG_RET, &msg, NULL), TENREC_OK);
    assert_int_equal(codec_read_value(msg, &v, NULL), TENREC_OK);
    assert_int_equal(v->type, TENREC_VALUE_NIL);
    tenrec_value_drop(v);
    msg->release(msg);
}

TEST(codec_value_copies_a_tensor_without_an_owner)
{
    struct tenrec_msg *msg = MESSAGE(HEAD "\xd9\xcd\x74\x00", 1);
    struct tenrec_tensor_desc *d = tenrec_msg_tensor(msg, 0);
    int32_t data[] = { 7, 8 };
    struct tenrec_value *v = NULL;

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

TEST(codec_value_refuses_a_tensor_that_reaches_beyond_its_storage)
{
    struct tenrec_msg *msg = MESSAGE(HEAD "\x82\x01\xd9\xcd\x74\x00", 1);
    struct tenrec_tensor_desc *d = tenrec_msg_tensor(msg, 0);
    int32_t data[] = { 7, 8 };
    struct tenrec_value *v = NULL;
    tenrec_error err;

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

TEST(codec_value_refuses_every_malformed_payload)
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
        BAD(HEAD "\xd9\xcd\x75\x00", "unexpected reference"),
        BAD(HEAD "\xd9\xcd\x74\x01", "tensor 1 at byte 6, but the message has 1"),
        BAD(HEAD "\xd9\xcd\x74\x20", "tensor -1 at byte 6"),
        BAD(HEAD "\xd9\xcd\x74\x60", "text at byte 6, expected integer as index of a tensor"),
        BAD(HEAD "\xd9\xcd\x74", "data ends at byte 6"),
        BAD(HEAD "\xd9\xcd\x78\x01", "integer at byte 6, expected array as region"),
        BAD(HEAD "\xd9\xcd\x78\x87\x61w" NUMBERS, "region at byte 6 has 7 items, expected 8"),
        BAD(HEAD "\xd9\xcd\x78\x88\x60" NUMBERS, "owner of a region at byte 7 is not a name"),
        BAD(HEAD "\xd9\xcd\x78\x88\x61\x00" NUMBERS, "is not a name"),
        BAD(HEAD "\xd9\xcd\x78\x88\x61w\x00\x00\x00\x00\x20\x00\x00", "rights of a region"),
        BAD(HEAD "\xd9\xcd\x78\x88\x61w\x00\x00\x60\x00\x00\x00\x00",
            "expected integer as number of a region"),
        BAD(HEAD "\xd9\xcd\x78\x88\x61w\x00\x00\x00\x00\x00\x00", "data ends at byte 15"),
    };

    for (size_t i = 0; i < N(table); i++) {
        struct tenrec_msg *msg = payload_message(table[i].bytes, table[i].n, 1);
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

TEST(codec_value_reads_regions_as_they_were_written)
{
    const struct tenrec_region_ref ref = { .size = sizeof ref,
                                           .rights = UINT32_MAX,
                                           .life = UINT64_MAX,
                                           .number = 3,
                                           .generation = 1,
                                           .length = (uint64_t)INT64_MAX + 1,
                                           .key = { 7, UINT64_MAX - 7 },
                                           .owner = "worker1" };
    const struct tenrec_value item[] = { tenrec_value_int(1), tenrec_value_region(&ref),
                                         tenrec_value_text("x"), tenrec_value_region(&ref) };
    const struct tenrec_value list = tenrec_value_array(item, N(item));
    struct tenrec_value *v = NULL;
    struct tenrec_msg *msg = NULL;
    tenrec_error err;

    assert_status(codec_write_value(&list, TENREC_MSG_RET, &msg, &err), &err);
    assert_status(codec_read_value(msg, &v, &err), &err);
    msg->release(msg);
    assert_int_equal(v->n, N(item));
    assert_string_equal(v->u.array[2].u.text, "x");
    for (size_t i = 1; i < N(item); i += 2) {
        assert_int_equal(v->u.array[i].type, TENREC_VALUE_REGION);
        assert_memory_equal(v->u.array[i].u.region, &ref, sizeof ref);
    }
    tenrec_value_drop(v);
}

TEST(codec_value_refuses_when_nested_deeper_than_the_limit)
{
    char payload[3 + 100] = HEAD;
    struct tenrec_value *v = NULL;
    struct tenrec_msg *msg;
    tenrec_error err;

    /* 63 arrays around an integer are 64 values deep. */
    memset(payload + 3, 0x81, 63);
    payload[3 + 63] = 0;
    tenrec_value_drop(read_ok(payload, 3 + 64));
    memset(payload + 3, 0x81, 64);
    payload[3 + 64] = 0;
    msg = payload_message(payload, 3 + 65, 0);
    assert_int_equal(codec_read_value(msg, &v, &err), TENREC_EPROTOCOL);
    assert_non_null(strstr(err.text, "deeper than 64 at byte 66"));
    msg->release(msg);
}

/* An array of `n` nils of one byte each; a value takes 32. */
static struct tenrec_msg *message_of_nils(uint32_t n)
{
    const unsigned char head[] = {
        0xd9,      0xd9, 0xf7, 0x9a, (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8),
        (uint8_t)n
    };
    struct tenrec_msg *msg = rpc_message_new(sizeof head + n, 0);

    memcpy(msg->payload, head, sizeof head);
    memset((char *)msg->payload + sizeof head, 0xf6, n);
    return msg;
}

TEST(codec_value_refuses_values_that_take_much_more_memory_than_their_payload)
{
    struct tenrec_msg *usual = message_of_nils(1u << 20), *much = message_of_nils(40u << 20);
    struct tenrec_value *v = NULL;
    tenrec_error err;

    assert_int_equal(codec_read_value(much, &v, &err), TENREC_ETOOBIG);
    assert_non_null(
        strstr(err.text, "for a payload of 41943048: send many small values as a tensor"));
    assert_null(v);
    assert_int_equal(codec_read_value(usual, &v, &err), TENREC_OK);
    tenrec_value_drop(v);
    usual->release(usual);
    much->release(much);
}
