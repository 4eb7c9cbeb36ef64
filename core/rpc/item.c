#include "rpc/item.h"

#include <cbor.h>

#include "rpc/utf8.h"

/* The upper three bits of an item's first byte. */
enum { MAJOR_UINT = 0, MAJOR_TEXT = 3, MAJOR_ARRAY = 4, MAJOR_MAP = 5 };

#define LONG_HEAD 24 /* from here on the number does not fit into the first byte */

/* ---- reading: libcbor calls one of these per item --------------------------- */

static void on_uint(struct item *it, uint64_t n)
{
    it->kind = n > INT64_MAX ? ITEM_BAD : ITEM_INT;
    it->integer = (int64_t)n;
    it->why = "integer is above 9223372036854775807";
}

/* The number is -1 - n. */
static void on_negint(struct item *it, uint64_t n)
{
    it->kind = n > INT64_MAX ? ITEM_BAD : ITEM_INT;
    it->integer = ~(int64_t)n;
    it->why = "integer is below -9223372036854775808";
}

static void on_uint8(void *it, uint8_t n)
{
    on_uint(it, n);
}

static void on_uint16(void *it, uint16_t n)
{
    on_uint(it, n);
}

static void on_uint32(void *it, uint32_t n)
{
    on_uint(it, n);
}

static void on_uint64(void *it, uint64_t n)
{
    on_uint(it, n);
}

static void on_negint8(void *it, uint8_t n)
{
    on_negint(it, n);
}

static void on_negint16(void *it, uint16_t n)
{
    on_negint(it, n);
}

static void on_negint32(void *it, uint32_t n)
{
    on_negint(it, n);
}

static void on_negint64(void *it, uint64_t n)
{
    on_negint(it, n);
}

static void on_bad(struct item *it, const char *why)
{
    it->kind = ITEM_BAD;
    it->why = why;
}

static void on_indefinite(void *it)
{
    on_bad(it, "indefinite length (a definite one is expected)");
}

static void on_break(void *it)
{
    on_bad(it, "break without an indefinite length before it");
}

static void on_undefined(void *it)
{
    on_bad(it, "'undefined' is no value here");
}

static void on_bytes(void *arg, cbor_data data, size_t n)
{
    struct item *it = arg;

    it->kind = ITEM_BYTES;
    it->data = (const char *)data;
    it->n = n;
}

static void on_text(void *arg, cbor_data data, size_t n)
{
    struct item *it = arg;

    it->kind = ITEM_TEXT;
    it->data = (const char *)data;
    it->n = n;
}

static void on_array(void *arg, size_t n)
{
    struct item *it = arg;

    it->kind = ITEM_ARRAY;
    it->n = n;
}

static void on_map(void *arg, size_t n)
{
    struct item *it = arg;

    it->kind = ITEM_MAP;
    it->n = n;
}

static void on_tag(void *arg, uint64_t tag)
{
    struct item *it = arg;

    it->kind = ITEM_TAG;
    it->n = tag;
}

static void on_float(void *arg, float f)
{
    struct item *it = arg;

    it->kind = ITEM_DOUBLE;
    it->number = (double)f;
}

static void on_double(void *arg, double d)
{
    struct item *it = arg;

    it->kind = ITEM_DOUBLE;
    it->number = d;
}

static void on_null(void *arg)
{
    struct item *it = arg;

    it->kind = ITEM_NIL;
}

static void on_bool(void *arg, bool b)
{
    struct item *it = arg;

    it->kind = ITEM_BOOL;
    it->boolean = b;
}

static const struct cbor_callbacks callbacks = {
    .uint8 = on_uint8,
    .uint16 = on_uint16,
    .uint32 = on_uint32,
    .uint64 = on_uint64,
    .negint64 = on_negint64,
    .negint32 = on_negint32,
    .negint16 = on_negint16,
    .negint8 = on_negint8,
    .byte_string_start = on_indefinite,
    .byte_string = on_bytes,
    .string = on_text,
    .string_start = on_indefinite,
    .indef_array_start = on_indefinite,
    .array_start = on_array,
    .indef_map_start = on_indefinite,
    .map_start = on_map,
    .tag = on_tag,
    .float2 = on_float,
    .float4 = on_float,
    .float8 = on_double,
    .undefined = on_undefined,
    .null = on_null,
    .boolean = on_bool,
    .indef_break = on_break,
};

static tenrec_status check(const struct item_reader *r, const struct item *it, tenrec_error *err)
{
    const size_t left = r->len - r->at;
    size_t good;

    switch (it->kind) {
    case ITEM_TEXT:
        good = utf8_span(it->data, (size_t)it->n);
        if (good == it->n)
            return TENREC_OK;
        return tenrec_fail(err, TENREC_EPROTOCOL, "text is not UTF-8 at byte %zu",
                           (size_t)((const unsigned char *)it->data - r->data) + good);
    case ITEM_ARRAY:
        if (it->n <= left)
            return TENREC_OK;
        break;
    case ITEM_MAP:
        if (it->n <= left / 2)
            return TENREC_OK;
        break;
    case ITEM_BAD:
        return tenrec_fail(err, TENREC_EPROTOCOL, "%s, at byte %zu", it->why, it->at);
    default:
        return TENREC_OK;
    }
    return tenrec_fail(err, TENREC_EPROTOCOL,
                       "%s of %llu items at byte %zu, but only %zu bytes follow",
                       item_kind_name(it->kind), (unsigned long long)it->n, it->at, left);
}

/* Most heads are one byte, with what they say in its lower five bits; reading
 * these here takes half the time. False: ask libcbor. */
static bool next_short(struct item_reader *r, struct item *it)
{
    const unsigned char head = r->data[r->at];
    const unsigned n = head & 0x1f;

    if (n >= LONG_HEAD)
        return false;
    switch (head >> 5) {
    case MAJOR_UINT:
        on_uint(it, n);
        break;
    case MAJOR_TEXT:
        if (n >= r->len - r->at)
            return false;
        on_text(it, r->data + r->at + 1, n);
        r->at += n;
        break;
    case MAJOR_ARRAY:
        on_array(it, n);
        break;
    case MAJOR_MAP:
        on_map(it, n);
        break;
    default:
        return false;
    }
    r->at++;
    return true;
}

tenrec_status item_next(struct item_reader *r, struct item *ret, tenrec_error *err)
{
    struct cbor_decoder_result done;

    if (r->at >= r->len)
        return tenrec_fail(err, TENREC_EPROTOCOL, "data ends at byte %zu, a value is missing",
                           r->at);
    ret->at = r->at;
    if (next_short(r, ret))
        return check(r, ret, err);
    done = cbor_stream_decode(r->data + r->at, r->len - r->at, &callbacks, ret);
    if (done.status == CBOR_DECODER_NEDATA)
        return tenrec_fail(err, TENREC_EPROTOCOL, "value at byte %zu is cut: data ends at byte %zu",
                           r->at, r->len);
    if (done.status != CBOR_DECODER_FINISHED)
        return tenrec_fail(err, TENREC_EPROTOCOL, "byte 0x%02x at byte %zu begins no CBOR item",
                           r->data[r->at], r->at);
    r->at += done.read;
    return check(r, ret, err);
}

const char *item_kind_name(enum item_kind kind)
{
    static const char *const names[] = {
        [ITEM_INT] = "integer", [ITEM_BYTES] = "bytes",  [ITEM_TEXT] = "text",
        [ITEM_ARRAY] = "array", [ITEM_MAP] = "map",      [ITEM_TAG] = "tag",
        [ITEM_NIL] = "null",    [ITEM_BOOL] = "boolean", [ITEM_DOUBLE] = "number",
        [ITEM_BAD] = "nothing",
    };

    return names[kind];
}

/* ---- writing ------------------------------------------------------------------ */

size_t item_head_size(uint64_t n)
{
    if (n < 24)
        return 1;
    if (n <= UINT8_MAX)
        return 2;
    if (n <= UINT16_MAX)
        return 3;
    return n <= UINT32_MAX ? 5 : 9;
}

size_t item_int_size(int64_t i)
{
    return item_head_size((uint64_t)(i < 0 ? ~i : i));
}

static size_t left(const struct item_writer *w)
{
    return (size_t)(w->end - w->at);
}

static bool put_short(struct item_writer *w, unsigned major, uint64_t n)
{
    if (n >= LONG_HEAD || w->at == w->end)
        return false;
    *w->at++ = (unsigned char)(major << 5 | n);
    return true;
}

void item_put_int(struct item_writer *w, int64_t i)
{
    if (i >= 0 && put_short(w, MAJOR_UINT, (uint64_t)i))
        return;
    w->at += i < 0 ? cbor_encode_negint((uint64_t)~i, w->at, left(w))
                   : cbor_encode_uint((uint64_t)i, w->at, left(w));
}

static void put_data(struct item_writer *w, const void *data, size_t n)
{
    if (n == 0 || n > left(w))
        return;
    memcpy(w->at, data, n);
    w->at += n;
}

void item_put_text(struct item_writer *w, const char *text, size_t n)
{
    if (!put_short(w, MAJOR_TEXT, n))
        w->at += cbor_encode_string_start(n, w->at, left(w));
    put_data(w, text, n);
}

void item_put_bytes(struct item_writer *w, const void *bytes, size_t n)
{
    w->at += cbor_encode_bytestring_start(n, w->at, left(w));
    put_data(w, bytes, n);
}

void item_put_array(struct item_writer *w, size_t n)
{
    if (!put_short(w, MAJOR_ARRAY, n))
        w->at += cbor_encode_array_start(n, w->at, left(w));
}

void item_put_map(struct item_writer *w, size_t n)
{
    if (!put_short(w, MAJOR_MAP, n))
        w->at += cbor_encode_map_start(n, w->at, left(w));
}

void item_put_tag(struct item_writer *w, uint64_t tag)
{
    w->at += cbor_encode_tag(tag, w->at, left(w));
}

void item_put_nil(struct item_writer *w)
{
    w->at += cbor_encode_null(w->at, left(w));
}

void item_put_bool(struct item_writer *w, bool b)
{
    w->at += cbor_encode_bool(b, w->at, left(w));
}

void item_put_double(struct item_writer *w, double d)
{
    w->at += cbor_encode_double(d, w->at, left(w));
}
