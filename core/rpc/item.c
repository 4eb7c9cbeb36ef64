/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/item.h"

#include <cbor.h>
#include <endian.h>
#include <string.h>

#include "rpc/item_write.h"
#include "rpc/utf8.h"

/* ---- rare items: libcbor calls one of these ---------------------------------- */

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

static tenrec_status check_text(const struct item_reader *r, const struct item *it,
                                tenrec_error *err)
{
    const size_t good = utf8_span(it->data, (size_t)it->n);

    if (good == it->n)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EPROTOCOL, "text is not UTF-8 at byte %zu",
                       (size_t)((const unsigned char *)it->data - r->data) + good);
}

/* `per_item` bytes at least belong to each. */
static tenrec_status check_count(const struct item_reader *r, const struct item *it,
                                 size_t per_item, tenrec_error *err)
{
    const size_t left = r->len - r->at;

    if (it->n <= left / per_item)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EPROTOCOL,
                       "%s of %llu items at byte %zu, but only %zu bytes follow",
                       item_kind_name(it->kind), (unsigned long long)it->n, it->at, left);
}

static tenrec_status check(const struct item_reader *r, const struct item *it, tenrec_error *err)
{
    switch (it->kind) {
    case ITEM_TEXT:
        return check_text(r, it, err);
    case ITEM_ARRAY:
        return check_count(r, it, 1, err);
    case ITEM_MAP:
        return check_count(r, it, 2, err);
    case ITEM_BAD:
        return tenrec_fail(err, TENREC_EPROTOCOL, "%s, at byte %zu", it->why, it->at);
    default:
        return TENREC_OK;
    }
}

/* By libcbor, which knows all that there is, and what is wrong. */
__attribute__((noinline)) static tenrec_status next_rare(struct item_reader *r, struct item *ret,
                                                         tenrec_error *err)
{
    struct cbor_decoder_result done =
        cbor_stream_decode(r->data + r->at, r->len - r->at, &callbacks, ret);

    if (done.status == CBOR_DECODER_NEDATA)
        return tenrec_fail(err, TENREC_EPROTOCOL, "value at byte %zu is cut: data ends at byte %zu",
                           r->at, r->len);
    if (done.status != CBOR_DECODER_FINISHED)
        return tenrec_fail(err, TENREC_EPROTOCOL, "byte 0x%02x at byte %zu begins no CBOR item",
                           r->data[r->at], r->at);
    r->at += done.read;
    return check(r, ret, err);
}

/* ---- common items: a tenth of what the callbacks take ------------------------- */

/* The number that belongs to the first byte at `at`: a value, a length or a tag.
 * Returns the bytes of both, 0 when that is rare or cut. */
static inline size_t read_head(const unsigned char *at, size_t left, uint64_t *ret)
{
    const unsigned low = at[0] & 0x1f;

    if (low < ITEM_LONG_HEAD) {
        *ret = low;
        return 1;
    }
    if (low == ITEM_LONG_HEAD && left >= 2) {
        *ret = at[1];
        return 2;
    }
    if (low == ITEM_LONG_HEAD + 1 && left >= 3) {
        *ret = (uint64_t)at[1] << 8 | at[2];
        return 3;
    }
    if (low == ITEM_LONG_HEAD + 2 && left >= 5) {
        *ret = (uint64_t)at[1] << 24 | (uint64_t)at[2] << 16 | (uint64_t)at[3] << 8 | at[4];
        return 5;
    }
    return 0;
}

tenrec_status item_next(struct item_reader *r, struct item *ret, tenrec_error *err)
{
    const unsigned char *at = r->data + r->at;
    const size_t left = r->len - r->at;
    size_t head;
    uint64_t n;

    if (r->at >= r->len)
        return tenrec_fail(err, TENREC_EPROTOCOL, "data ends at byte %zu, a value is missing",
                           r->at);
    ret->at = r->at;
    head = read_head(at, left, &n);
    if (head == 0)
        return next_rare(r, ret, err);
    switch (at[0] >> 5) {
    case ITEM_MAJOR_UINT:
        ret->kind = ITEM_INT;
        ret->integer = (int64_t)n;
        r->at += head;
        return TENREC_OK;
    case ITEM_MAJOR_BYTES:
    case ITEM_MAJOR_TEXT:
        if (n > left - head)
            return next_rare(r, ret, err);
        ret->data = (const char *)at + head;
        ret->n = n;
        r->at += head + (size_t)n;
        ret->kind = at[0] >> 5 == ITEM_MAJOR_TEXT ? ITEM_TEXT : ITEM_BYTES;
        return ret->kind == ITEM_TEXT ? check_text(r, ret, err) : TENREC_OK;
    case ITEM_MAJOR_ARRAY:
        ret->kind = ITEM_ARRAY;
        ret->n = n;
        r->at += head;
        return check_count(r, ret, 1, err);
    case ITEM_MAJOR_MAP:
        ret->kind = ITEM_MAP;
        ret->n = n;
        r->at += head;
        return check_count(r, ret, 2, err);
    case ITEM_MAJOR_TAG:
        ret->kind = ITEM_TAG;
        ret->n = n;
        r->at += head;
        return TENREC_OK;
    default: /* negative, simple or floating */
        return next_rare(r, ret, err);
    }
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

void item_put_long_head(struct item_writer *w, enum item_major major, uint64_t n)
{
    const unsigned head = (unsigned)major << 5 | ITEM_LONG_HEAD;
    const size_t len = item_head_size(n);
    unsigned char *at = w->at;

    if (len > (size_t)(w->end - at))
        return;
    w->at += len;
    /* The lower bits say, as a power of two, how many bytes follow. */
    switch (len) {
    case 2:
        at[0] = (unsigned char)head;
        at[1] = (unsigned char)n;
        break;
    case 3:
        at[0] = (unsigned char)(head + 1);
        memcpy(at + 1, &(uint16_t){ htobe16((uint16_t)n) }, 2);
        break;
    case 5:
        at[0] = (unsigned char)(head + 2);
        memcpy(at + 1, &(uint32_t){ htobe32((uint32_t)n) }, 4);
        break;
    default:
        at[0] = (unsigned char)(head + 3);
        memcpy(at + 1, &(uint64_t){ htobe64(n) }, 8);
    }
}

void item_put_double(struct item_writer *w, double d)
{
    w->at += cbor_encode_double(d, w->at, (size_t)(w->end - w->at));
}
