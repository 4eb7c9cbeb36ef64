/* SPDX-License-Identifier: Apache-2.0 */
/* cbor_test.c - the core's CBOR items against libcbor's: the same bytes when written, the
 * same values when read, and the items that only the core refuses. */
#include "../testing.h"

#include <cbor.h>
#include <math.h>
#include <stdio.h>

#include "rpc/value/cbor_reader.h"
#include "rpc/value/cbor_writer.h"

#define N(array) (sizeof(array) / sizeof *(array))

static const uint64_t edges[] = { 0,     1,     23,         24,         255,       256,
                                  65535, 65536, 4294967295, 4294967296, INT64_MAX, UINT64_MAX };

/* ---- writing ------------------------------------------------------------------ */

static size_t (*const encode[])(uint64_t, unsigned char *, size_t) = {
    [CBOR_MAJOR_UINT] = cbor_encode_uint,
    [CBOR_MAJOR_NEGINT] = cbor_encode_negint,
    [CBOR_MAJOR_BYTES] = cbor_encode_bytestring_start,
    [CBOR_MAJOR_TEXT] = cbor_encode_string_start,
    [CBOR_MAJOR_ARRAY] = cbor_encode_array_start,
    [CBOR_MAJOR_MAP] = cbor_encode_map_start,
    [CBOR_MAJOR_TAG] = cbor_encode_tag,
};

TEST(cbor_writer_writes_the_heads_of_libcbor)
{
    unsigned char ours[16], theirs[16];

    for (unsigned major = 0; major < N(encode); major++) {
        for (size_t i = 0; i < N(edges); i++) {
            const size_t n = encode[major](edges[i], theirs, sizeof theirs);
            struct cbor_writer w = { ours, ours + sizeof ours };

            cbor_write_head(&w, major, edges[i]);
            assert_int_equal(w.at - ours, n);
            assert_int_equal(cbor_head_size(edges[i]), n);
            assert_memory_equal(ours, theirs, n);
        }
    }
}

TEST(cbor_writer_writes_the_simple_values_of_libcbor)
{
    static const double numbers[] = { 0, -0.0, 1.5, -4.1, 1e300, 5e-324 };
    unsigned char ours[64], theirs[64];
    struct cbor_writer w = { ours, ours + sizeof ours };
    size_t n = cbor_encode_null(theirs, sizeof theirs);

    n += cbor_encode_bool(true, theirs + n, sizeof theirs - n);
    n += cbor_encode_bool(false, theirs + n, sizeof theirs - n);
    cbor_write_nil(&w);
    cbor_write_bool(&w, true);
    cbor_write_bool(&w, false);
    for (size_t i = 0; i < N(numbers); i++) {
        n += cbor_encode_double(numbers[i], theirs + n, sizeof theirs - n);
        cbor_write_double(&w, numbers[i]);
    }
    assert_int_equal(w.at - ours, n);
    assert_memory_equal(ours, theirs, n);
}

TEST(cbor_writer_leaves_an_item_out_without_room)
{
    unsigned char room[16];

    for (size_t i = 0; i < N(edges); i++) {
        struct cbor_writer w = { room, room + cbor_head_size(edges[i]) - 1 };

        cbor_write_head(&w, CBOR_MAJOR_ARRAY, edges[i]);
        assert_ptr_equal(w.at, room);
    }
}

/* ---- reading ------------------------------------------------------------------ */

/* The item that libcbor has read, and whether payloads may hold it. */
struct theirs {
    struct cbor_item item;
    bool foreign;
};

static void set_integer(struct theirs *t, uint64_t n, bool negative)
{
    t->item.kind = CBOR_KIND_INT;
    t->item.integer = negative ? ~(int64_t)n : (int64_t)n;
    t->foreign = n > INT64_MAX;
}

#define INTEGER(name, type, negative)                                                              \
    static void name(void *arg, type n)                                                            \
    {                                                                                              \
        set_integer(arg, n, negative);                                                             \
    }
INTEGER(on_uint8, uint8_t, false)
INTEGER(on_uint16, uint16_t, false)
INTEGER(on_uint32, uint32_t, false)
INTEGER(on_uint64, uint64_t, false)
INTEGER(on_negint8, uint8_t, true)
INTEGER(on_negint16, uint16_t, true)
INTEGER(on_negint32, uint32_t, true)
INTEGER(on_negint64, uint64_t, true)

#define NUMBERED(name, type, of_kind)                                                              \
    static void name(void *arg, type n)                                                            \
    {                                                                                              \
        struct theirs *t = arg;                                                                    \
                                                                                                   \
        t->item.kind = (of_kind);                                                                  \
        t->item.n = n;                                                                             \
    }
NUMBERED(on_array, size_t, CBOR_KIND_ARRAY)
NUMBERED(on_map, size_t, CBOR_KIND_MAP)
NUMBERED(on_tag, uint64_t, CBOR_KIND_TAG)

#define DATA(name, of_kind)                                                                        \
    static void name(void *arg, cbor_data data, size_t n)                                          \
    {                                                                                              \
        struct theirs *t = arg;                                                                    \
                                                                                                   \
        t->item.kind = (of_kind);                                                                  \
        t->item.data = (const char *)data;                                                         \
        t->item.n = n;                                                                             \
    }
DATA(on_bytes, CBOR_KIND_BYTES)
DATA(on_text, CBOR_KIND_TEXT)

static void on_foreign(void *arg)
{
    ((struct theirs *)arg)->foreign = true;
}

static void on_float(void *arg, float f)
{
    struct theirs *t = arg;

    t->item.kind = CBOR_KIND_DOUBLE;
    t->item.number = (double)f;
}

static void on_double(void *arg, double d)
{
    struct theirs *t = arg;

    t->item.kind = CBOR_KIND_DOUBLE;
    t->item.number = d;
}

static void on_null(void *arg)
{
    ((struct theirs *)arg)->item.kind = CBOR_KIND_NIL;
}

static void on_bool(void *arg, bool b)
{
    struct theirs *t = arg;

    t->item.kind = CBOR_KIND_BOOL;
    t->item.boolean = b;
}

static const struct cbor_callbacks callbacks = {
    .uint8 = on_uint8,
    .uint16 = on_uint16,
    .uint32 = on_uint32,
    .uint64 = on_uint64,
    .negint8 = on_negint8,
    .negint16 = on_negint16,
    .negint32 = on_negint32,
    .negint64 = on_negint64,
    .byte_string_start = on_foreign,
    .byte_string = on_bytes,
    .string = on_text,
    .string_start = on_foreign,
    .indef_array_start = on_foreign,
    .array_start = on_array,
    .indef_map_start = on_foreign,
    .map_start = on_map,
    .tag = on_tag,
    .float2 = on_float,
    .float4 = on_float,
    .float8 = on_double,
    .undefined = on_foreign,
    .null = on_null,
    .boolean = on_bool,
    .indef_break = on_foreign,
};

static void assert_same_item(const struct cbor_item *ours, const struct cbor_item *theirs)
{
    assert_int_equal(ours->kind, theirs->kind);
    switch (ours->kind) {
    case CBOR_KIND_INT:
        assert_true(ours->integer == theirs->integer);
        break;
    case CBOR_KIND_DOUBLE:
        if (isnan(theirs->number))
            assert_true(isnan(ours->number));
        else
            assert_true(ours->number == theirs->number &&
                        !signbit(ours->number) == !signbit(theirs->number));
        break;
    case CBOR_KIND_BOOL:
        assert_int_equal(ours->boolean, theirs->boolean);
        break;
    case CBOR_KIND_BYTES:
    case CBOR_KIND_TEXT:
        assert_ptr_equal(ours->data, theirs->data);
        assert_true(ours->n == theirs->n);
        break;
    case CBOR_KIND_NIL:
        break;
    default:
        assert_true(ours->n == theirs->n);
    }
}

/* Why we refuse what libcbor has read; NULL when we do not. */
static const char *refusal_of(const struct theirs *t, size_t left)
{
    switch (t->item.kind) {
    case CBOR_KIND_ARRAY:
        return t->item.n > left ? "follow" : NULL;
    case CBOR_KIND_MAP:
        return t->item.n > left / 2 ? "follow" : NULL;
    case CBOR_KIND_TEXT:
        return utf8_span(t->item.data, (size_t)t->item.n) < t->item.n ? "not UTF-8" : NULL;
    default:
        return NULL;
    }
}

static void check_refused(struct cbor_reader r, const char *text)
{
    const unsigned char *at = r.at;
    struct cbor_item ours;
    tenrec_error err;

    assert_false(cbor_read(&r, &ours));
    assert_ptr_equal(r.at, at);
    assert_int_equal(cbor_read_item(&r, &ours, &err), TENREC_EPROTOCOL);
    assert_text_has(err.text, text);
}

/* libcbor knows those only that are registered. */
static bool is_short_tag(unsigned char first)
{
    return first >> 5 == CBOR_MAJOR_TAG && (first & CBOR_LOW_BITS) < CBOR_LOW_1;
}

static void check_read(const unsigned char *bytes, size_t n)
{
    struct cbor_reader r = cbor_reader_of(bytes, n);
    struct theirs t = { .foreign = false };
    const struct cbor_decoder_result done = cbor_stream_decode(bytes, n, &callbacks, &t);
    struct cbor_item ours;
    const char *why;

    if (done.status == CBOR_DECODER_NEDATA) {
        check_refused(r, "is cut");
    } else if (done.status != CBOR_DECODER_FINISHED && is_short_tag(*bytes)) {
        assert_true(cbor_read(&r, &ours) && ours.kind == CBOR_KIND_TAG);
        assert_int_equal(ours.n, *bytes & CBOR_LOW_BITS);
    } else if (done.status != CBOR_DECODER_FINISHED) {
        check_refused(r, "begins no CBOR item");
    } else if (t.foreign) {
        check_refused(r, "at byte 0");
    } else if ((why = refusal_of(&t, n - done.read))) {
        check_refused(r, why);
    } else {
        assert_true(cbor_read(&r, &ours));
        assert_int_equal(r.at - bytes, done.read);
        assert_int_equal(ours.at, 0);
        assert_same_item(&ours, &t.item);
    }
}

/* Every first byte, followed by numbers of all widths, whole and cut. */
TEST(cbor_reader_agrees_with_libcbor_after_every_first_byte)
{
    unsigned char bytes[64];

    for (unsigned first = 0; first < 256; first++) {
        for (size_t i = 0; i < N(edges); i++) {
            for (unsigned width = 1; width <= 8; width *= 2) {
                memset(bytes, 'a', sizeof bytes);
                bytes[0] = (unsigned char)first;
                for (unsigned b = 0; b < width; b++)
                    bytes[1 + b] = (unsigned char)(edges[i] >> 8 * (width - 1 - b));
                for (size_t n = 1; n <= 11; n++)
                    check_read(bytes, n);
                check_read(bytes, sizeof bytes);
            }
        }
    }
}

TEST(cbor_reader_reads_every_half_and_many_singles_as_libcbor_does)
{
    unsigned char bytes[5];

    for (unsigned bits = 0; bits <= UINT16_MAX; bits++) {
        bytes[0] = CBOR_BYTE(CBOR_MAJOR_SIMPLE, CBOR_SIMPLE_HALF);
        bytes[1] = (unsigned char)(bits >> 8);
        bytes[2] = (unsigned char)bits;
        check_read(bytes, 3);
        bytes[0] = CBOR_BYTE(CBOR_MAJOR_SIMPLE, CBOR_SIMPLE_SINGLE);
        bytes[3] = (unsigned char)(bits * 7);
        bytes[4] = (unsigned char)(bits * 13);
        check_read(bytes, 5);
    }
}

TEST(cbor_reader_says_that_data_ends_when_empty)
{
    check_refused(cbor_reader_of("", 0), "data ends at byte 0, a value is missing");
}

/* Texts that a first walk has checked are not checked again. */
TEST(cbor_reader_does_not_check_checked_texts_again)
{
    struct cbor_reader r = cbor_reader_of("\x61\xff", 2);
    struct cbor_item it;

    check_refused(r, "text is not UTF-8 at byte 1");
    r.texts_checked = true;
    assert_true(cbor_read(&r, &it));
    assert_int_equal(it.kind, CBOR_KIND_TEXT);
}
