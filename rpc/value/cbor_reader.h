/* SPDX-License-Identifier: Apache-2.0 */
/* cbor_reader.h - reads single data items of CBOR (RFC 8949). Definite lengths
 * only; the data is not trusted. */
#ifndef TENREC_VALUE_CBOR_READER_H
#define TENREC_VALUE_CBOR_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <tenrec/error.h>

#include "core/base/text.h"
#include "rpc/value/cbor.h"

/* As the major types, but with one kind for integers, and one for each simple value. */
enum cbor_kind {
    CBOR_KIND_INT = CBOR_MAJOR_UINT,
    CBOR_KIND_BYTES = CBOR_MAJOR_BYTES,
    CBOR_KIND_TEXT = CBOR_MAJOR_TEXT,
    CBOR_KIND_ARRAY = CBOR_MAJOR_ARRAY,
    CBOR_KIND_MAP = CBOR_MAJOR_MAP,
    CBOR_KIND_TAG = CBOR_MAJOR_TAG,
    CBOR_KIND_NIL,
    CBOR_KIND_BOOL,
    CBOR_KIND_DOUBLE,
};

struct cbor_item {
    enum cbor_kind kind;
    size_t at;  /* byte where the item begins */
    uint64_t n; /* bytes of text and bytes, items of an array, pairs of a map; tag */
    union {
        const char *data; /* of text and bytes; borrows from the payload */
        int64_t integer;
        double number;
        bool boolean;
    };
};

struct cbor_reader {
    const unsigned char *begin, *at, *end;
    bool texts_checked; /* a second walk: the texts are known to be UTF-8 */
};

static inline struct cbor_reader cbor_reader_of(const void *data, size_t len)
{
    const unsigned char *begin = data;

    return (struct cbor_reader){ begin, begin, begin + len, false };
}

/* Bytes before the reader. */
static inline size_t cbor_reader_offset(const struct cbor_reader *r)
{
    return (size_t)(r->at - r->begin);
}

static inline size_t cbor_reader_left(const struct cbor_reader *r)
{
    return (size_t)(r->end - r->at);
}

bool cbor_read_simple(struct cbor_item *it, unsigned char first);

/* The number of a double's head is its bits. */
static inline double cbor_double_of(uint64_t bits)
{
    double number;

    memcpy(&number, &bits, sizeof number);
    return number;
}

/* Reads the rest of an item behind its head. Returns false if the item is malformed or not
 * supported. */
CBOR_INLINE bool cbor_read_behind(struct cbor_reader *r, struct cbor_item *it, unsigned char first)
{
    const unsigned major = first >> 5;
    struct cbor_item other;

    switch (major) {
    case CBOR_MAJOR_UINT:
    case CBOR_MAJOR_NEGINT:
        it->kind = CBOR_KIND_INT;
        it->integer = major == CBOR_MAJOR_UINT ? (int64_t)it->n : ~(int64_t)it->n;
        return it->n <= INT64_MAX;
    case CBOR_MAJOR_BYTES:
    case CBOR_MAJOR_TEXT:
        it->kind = major == CBOR_MAJOR_TEXT ? CBOR_KIND_TEXT : CBOR_KIND_BYTES;
        it->data = (const char *)r->at;
        if (it->n > cbor_reader_left(r))
            return false;
        r->at += it->n;
        return major == CBOR_MAJOR_BYTES || r->texts_checked ||
               utf8_span(it->data, (size_t)it->n) == it->n;
    case CBOR_MAJOR_ARRAY:
        it->kind = CBOR_KIND_ARRAY;
        return it->n <= cbor_reader_left(r);
    case CBOR_MAJOR_MAP:
        it->kind = CBOR_KIND_MAP;
        return it->n <= cbor_reader_left(r) / 2;
    case CBOR_MAJOR_TAG:
        it->kind = CBOR_KIND_TAG;
        return true;
    default:
        if (first == CBOR_DOUBLE) {
            it->kind = CBOR_KIND_DOUBLE;
            it->number = cbor_double_of(it->n);
            return true;
        }
        other = *it;
        if (!cbor_read_simple(&other, first))
            return false;
        *it = other;
        return true;
    }
}

/* Reads one item: the head of an array, map or tag, else all of it. Text is checked to be
 * UTF-8; an array or map has no more items than bytes follow. Returns false, and leaves the
 * reader there, if the item is refused: cbor_refuse gives the reason. */
CBOR_INLINE bool cbor_read(struct cbor_reader *r, struct cbor_item *ret)
{
    const unsigned char *first = r->at;

    ret->at = cbor_reader_offset(r);
    if (first == r->end || !cbor_read_head(&r->at, r->end, &ret->n))
        return false;
    if (cbor_read_behind(r, ret, *first))
        return true;
    r->at = first;
    return false;
}

/* Makes the error for the item that cbor_read refused. Returns EPROTOCOL. */
tenrec_status cbor_refuse(const struct cbor_reader *r, tenrec_error *err);

/* cbor_read with its error. errors: EPROTOCOL, with the byte where the item begins */
tenrec_status cbor_read_item(struct cbor_reader *r, struct cbor_item *ret, tenrec_error *err);

/* Names a kind in error texts. */
const char *cbor_kind_name(enum cbor_kind kind);

#endif
