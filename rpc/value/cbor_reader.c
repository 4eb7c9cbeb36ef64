/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/value/cbor_reader.h"

#include <endian.h>
#include <math.h>
#include <string.h>

static double half_number(unsigned bits)
{
    const int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
    double number;

    if (exponent == 0)
        number = ldexp(fraction, -24);
    else if (exponent < 31)
        number = ldexp(fraction + 1024, exponent - 25);
    else
        number = fraction == 0 ? (double)INFINITY : (double)NAN;
    return bits & 0x8000 ? -number : number;
}

static double single_number(uint32_t bits)
{
    float number;

    memcpy(&number, &bits, sizeof number);
    return (double)number;
}

/* The item has its number; doubles were read before. */
bool cbor_read_simple(struct cbor_item *it, unsigned char first)
{
    switch (first & CBOR_LOW_BITS) {
    case CBOR_SIMPLE_FALSE:
    case CBOR_SIMPLE_TRUE:
        it->kind = CBOR_KIND_BOOL;
        it->boolean = it->n == CBOR_SIMPLE_TRUE;
        return true;
    case CBOR_SIMPLE_NIL:
        it->kind = CBOR_KIND_NIL;
        return true;
    case CBOR_SIMPLE_HALF:
        it->kind = CBOR_KIND_DOUBLE;
        it->number = half_number((unsigned)it->n);
        return true;
    case CBOR_SIMPLE_SINGLE:
        it->kind = CBOR_KIND_DOUBLE;
        it->number = single_number((uint32_t)it->n);
        return true;
    default:
        return false;
    }
}

/* ---- refusals ----------------------------------------------------------------- */

static bool begins_item(unsigned major, unsigned low)
{
    if (major == CBOR_MAJOR_SIMPLE && (low < CBOR_SIMPLE_FALSE || low == CBOR_LOW_1))
        return false;
    return low <= CBOR_LOW_8 && !(major == CBOR_MAJOR_SIMPLE && low == CBOR_SIMPLE_UNDEFINED);
}

static tenrec_status refuse_first(unsigned first, size_t at, tenrec_error *err)
{
    const unsigned major = first >> 5, low = first & CBOR_LOW_BITS;

    if (major == CBOR_MAJOR_SIMPLE && low == CBOR_SIMPLE_UNDEFINED)
        return tenrec_fail(err, TENREC_EPROTOCOL, "'undefined' is no value here, at byte %zu", at);
    if (major == CBOR_MAJOR_SIMPLE && low == CBOR_SIMPLE_BREAK)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "break without an indefinite length before it, at byte %zu", at);
    if (major >= CBOR_MAJOR_BYTES && major <= CBOR_MAJOR_MAP && low == CBOR_LOW_INDEFINITE)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "indefinite length (a definite one is expected), at byte %zu", at);
    return tenrec_fail(err, TENREC_EPROTOCOL, "byte 0x%02x at byte %zu begins no CBOR item", first,
                       at);
}

/* Refuses an item for the number of its head; `r` is behind the head. */
static tenrec_status refuse_number(const struct cbor_reader *r, unsigned major, uint64_t n,
                                   size_t at, tenrec_error *err)
{
    const size_t left = cbor_reader_left(r);

    switch (major) {
    case CBOR_MAJOR_UINT:
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "integer is above 9223372036854775807, at byte %zu", at);
    case CBOR_MAJOR_NEGINT:
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "integer is below -9223372036854775808, at byte %zu", at);
    case CBOR_MAJOR_ARRAY:
    case CBOR_MAJOR_MAP:
        return tenrec_fail(
            err, TENREC_EPROTOCOL, "%s of %llu items at byte %zu, but only %zu bytes follow",
            major == CBOR_MAJOR_ARRAY ? "array" : "map", (unsigned long long)n, at, left);
    default: /* a text */
        return tenrec_fail(err, TENREC_EPROTOCOL, "text is not UTF-8 at byte %zu",
                           cbor_reader_offset(r) + utf8_span(r->at, (size_t)n));
    }
}

__attribute__((cold)) tenrec_status cbor_refuse(const struct cbor_reader *r, tenrec_error *err)
{
    const size_t at = cbor_reader_offset(r);
    struct cbor_reader behind = *r;
    unsigned major;
    uint64_t n;

    if (r->at == r->end)
        return tenrec_fail(err, TENREC_EPROTOCOL, "data ends at byte %zu, a value is missing", at);
    major = *r->at >> 5;
    if (!begins_item(major, *r->at & CBOR_LOW_BITS))
        return refuse_first(*r->at, at, err);
    if (!cbor_read_head(&behind.at, behind.end, &n) ||
        ((major == CBOR_MAJOR_BYTES || major == CBOR_MAJOR_TEXT) && n > cbor_reader_left(&behind)))
        return tenrec_fail(err, TENREC_EPROTOCOL, "value at byte %zu is cut: data ends at byte %zu",
                           at, (size_t)(r->end - r->begin));
    return refuse_number(&behind, major, n, at, err);
}

tenrec_status cbor_read_item(struct cbor_reader *r, struct cbor_item *ret, tenrec_error *err)
{
    return cbor_read(r, ret) ? TENREC_OK : cbor_refuse(r, err);
}

const char *cbor_kind_name(enum cbor_kind kind)
{
    static const char *const names[] = {
        [CBOR_KIND_INT] = "integer", [CBOR_KIND_BYTES] = "bytes",  [CBOR_KIND_TEXT] = "text",
        [CBOR_KIND_ARRAY] = "array", [CBOR_KIND_MAP] = "map",      [CBOR_KIND_TAG] = "tag",
        [CBOR_KIND_NIL] = "null",    [CBOR_KIND_BOOL] = "boolean", [CBOR_KIND_DOUBLE] = "number",
    };

    return names[kind];
}
