/* SPDX-License-Identifier: Apache-2.0 */
/* item_write.h - writes single data items of CBOR (RFC 8949), each with the
 * shortest head there is.
 *
 * Inline, because most items are one or two bytes. Who writes has counted
 * before; what finds no room is left out. */
#ifndef TENREC_RPC_ITEM_WRITE_H
#define TENREC_RPC_ITEM_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The upper three bits of an item's first byte. */
enum item_major {
    ITEM_MAJOR_UINT,
    ITEM_MAJOR_NEGINT,
    ITEM_MAJOR_BYTES,
    ITEM_MAJOR_TEXT,
    ITEM_MAJOR_ARRAY,
    ITEM_MAJOR_MAP,
    ITEM_MAJOR_TAG,
    ITEM_MAJOR_SIMPLE,
};

/* The numbers of ITEM_MAJOR_SIMPLE that are values here. */
enum { ITEM_SIMPLE_FALSE = 20, ITEM_SIMPLE_TRUE = 21, ITEM_SIMPLE_NIL = 22 };

/* From here on the number does not fit into the lower five bits: they say
 * instead, as a power of two, how many bytes it takes. */
#define ITEM_LONG_HEAD 24

#define ITEM_DOUBLE_SIZE 9

struct item_writer {
    unsigned char *at;
    unsigned char *end;
};

/* Bytes that the head of a length, an integer or a tag takes. */
static inline size_t item_head_size(uint64_t n)
{
    if (n < ITEM_LONG_HEAD)
        return 1;
    if (n <= UINT8_MAX)
        return 2;
    if (n <= UINT16_MAX)
        return 3;
    return n <= UINT32_MAX ? 5 : 9;
}

static inline size_t item_int_size(int64_t i)
{
    return item_head_size((uint64_t)(i < 0 ? ~i : i));
}

void item_put_long_head(struct item_writer *w, enum item_major major, uint64_t n);
void item_put_double(struct item_writer *w, double d);

static inline void item_put_head(struct item_writer *w, enum item_major major, uint64_t n)
{
    if (n >= ITEM_LONG_HEAD)
        item_put_long_head(w, major, n);
    else if (w->at < w->end)
        *w->at++ = (unsigned char)((unsigned)major << 5 | n);
}

static inline void item_put_data(struct item_writer *w, const void *data, size_t n)
{
    if (n == 0 || n > (size_t)(w->end - w->at))
        return;
    memcpy(w->at, data, n);
    w->at += n;
}

static inline void item_put_int(struct item_writer *w, int64_t i)
{
    item_put_head(w, i < 0 ? ITEM_MAJOR_NEGINT : ITEM_MAJOR_UINT, (uint64_t)(i < 0 ? ~i : i));
}

static inline void item_put_text(struct item_writer *w, const char *text, size_t n)
{
    item_put_head(w, ITEM_MAJOR_TEXT, n);
    item_put_data(w, text, n);
}

static inline void item_put_bytes(struct item_writer *w, const void *bytes, size_t n)
{
    item_put_head(w, ITEM_MAJOR_BYTES, n);
    item_put_data(w, bytes, n);
}

static inline void item_put_array(struct item_writer *w, size_t n)
{
    item_put_head(w, ITEM_MAJOR_ARRAY, n);
}

static inline void item_put_map(struct item_writer *w, size_t n)
{
    item_put_head(w, ITEM_MAJOR_MAP, n);
}

static inline void item_put_tag(struct item_writer *w, uint64_t tag)
{
    item_put_head(w, ITEM_MAJOR_TAG, tag);
}

static inline void item_put_nil(struct item_writer *w)
{
    item_put_head(w, ITEM_MAJOR_SIMPLE, ITEM_SIMPLE_NIL);
}

static inline void item_put_bool(struct item_writer *w, bool b)
{
    item_put_head(w, ITEM_MAJOR_SIMPLE, b ? ITEM_SIMPLE_TRUE : ITEM_SIMPLE_FALSE);
}

#endif
