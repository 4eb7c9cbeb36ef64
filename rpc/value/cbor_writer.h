/* SPDX-License-Identifier: Apache-2.0 */
/* cbor_writer.h - writes single data items of CBOR (RFC 8949), each with the
 * shortest head. Inline, because most items are one or two bytes. An item that does not fit is
 * dropped: the callers have counted the bytes. */
#ifndef TENREC_VALUE_CBOR_WRITER_H
#define TENREC_VALUE_CBOR_WRITER_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "rpc/value/cbor.h"

struct cbor_writer {
    unsigned char *at;
    unsigned char *end;
};

static inline size_t cbor_int_size(int64_t i)
{
    return cbor_head_size((uint64_t)(i < 0 ? ~i : i));
}

CBOR_INLINE void cbor_write_head(struct cbor_writer *w, enum cbor_major major, uint64_t n)
{
    const size_t room = (size_t)(w->end - w->at);

    if (room >= CBOR_HEAD_MAX || room >= cbor_head_size(n))
        w->at = cbor_put_head(w->at, major, n);
}

CBOR_INLINE void cbor_write_data(struct cbor_writer *w, const void *data, size_t n)
{
    if (n == 0 || n > (size_t)(w->end - w->at))
        return;
    memcpy(w->at, data, n);
    w->at += n;
}

CBOR_INLINE void cbor_write_int(struct cbor_writer *w, int64_t i)
{
    cbor_write_head(w, i < 0 ? CBOR_MAJOR_NEGINT : CBOR_MAJOR_UINT, (uint64_t)(i < 0 ? ~i : i));
}

CBOR_INLINE void cbor_write_double(struct cbor_writer *w, double d)
{
    uint64_t bits;

    if (w->end - w->at < CBOR_DOUBLE_SIZE)
        return;
    memcpy(&bits, &d, sizeof bits);
    bits = htobe64(bits);
    *w->at = CBOR_DOUBLE;
    memcpy(w->at + 1, &bits, sizeof bits);
    w->at += CBOR_DOUBLE_SIZE;
}

CBOR_INLINE void cbor_write_text(struct cbor_writer *w, const char *text, size_t n)
{
    cbor_write_head(w, CBOR_MAJOR_TEXT, n);
    cbor_write_data(w, text, n);
}

CBOR_INLINE void cbor_write_bytes(struct cbor_writer *w, const void *bytes, size_t n)
{
    cbor_write_head(w, CBOR_MAJOR_BYTES, n);
    cbor_write_data(w, bytes, n);
}

CBOR_INLINE void cbor_write_array(struct cbor_writer *w, size_t n)
{
    cbor_write_head(w, CBOR_MAJOR_ARRAY, n);
}

CBOR_INLINE void cbor_write_map(struct cbor_writer *w, size_t n)
{
    cbor_write_head(w, CBOR_MAJOR_MAP, n);
}

CBOR_INLINE void cbor_write_tag(struct cbor_writer *w, uint64_t tag)
{
    cbor_write_head(w, CBOR_MAJOR_TAG, tag);
}

CBOR_INLINE void cbor_write_nil(struct cbor_writer *w)
{
    cbor_write_head(w, CBOR_MAJOR_SIMPLE, CBOR_SIMPLE_NIL);
}

CBOR_INLINE void cbor_write_bool(struct cbor_writer *w, bool b)
{
    cbor_write_head(w, CBOR_MAJOR_SIMPLE, b ? CBOR_SIMPLE_TRUE : CBOR_SIMPLE_FALSE);
}

#endif
