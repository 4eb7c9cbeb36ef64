/* SPDX-License-Identifier: Apache-2.0 */
/* nop.h - the encoding of the objects that TensorPipe peers exchange.
 *
 * Writer and reader keep their first failure and do nothing afterwards, so
 * that an object is one straight run of calls with one question at its end.
 * Neither allocates: the writer fills the caller's buffer, the reader hands
 * out views of the frame.
 */
#ifndef TENSORPIPE_NOP_H
#define TENSORPIPE_NOP_H

#include "wire/little_endian.h"
#include <stdbool.h>
#include <stddef.h>
#include <tenrec/error.h>

enum nop_prefix {
    NOP_U8 = 0x80, /* and those of 2, 4 and 8 bytes after it */
    NOP_VARIANT = 0xb8,
    NOP_STRUCT = 0xb9,
    NOP_ARRAY = 0xba,
    NOP_MAP = 0xbb,
    NOP_BINARY = 0xbc,
    NOP_STRING = 0xbd,
    NOP_NIL = 0xbe,
};

/* Borrowed bytes, not terminated. */
struct nop_bytes {
    const unsigned char *data;
    size_t len;
};

/* A device as peers name it: ("cpu", 0), ("cuda", 1). */
struct nop_device {
    struct nop_bytes type;
    int32_t index;
};

struct nop_bytes nop_text(const char *text);
bool nop_bytes_is(struct nop_bytes a, const char *text);
bool nop_device_equal(const struct nop_device *a, const struct nop_device *b);

/* For "%.*s": a length that printf takes, cut so that it does not flood an
 * error text. */
#define NOP_PRINT(bytes) (int)((bytes).len < 64 ? (bytes).len : 64), (const char *)(bytes).data

/* `len` counts on beyond `cap` without writing: then it says what is needed,
 * and a writer with cap 0 measures. */
struct nop_writer {
    unsigned char *buf;
    size_t cap;
    size_t len;
};

static inline void nop_writer_init(struct nop_writer *w, void *buf, size_t cap)
{
    w->buf = buf;
    w->cap = cap;
    w->len = 0;
}

void nop_write_raw(struct nop_writer *w, const void *data, size_t len);
void nop_write_int(struct nop_writer *w, int32_t value);
/* One of 0x80 and more. */
void nop_write_long_uint(struct nop_writer *w, uint64_t value);

/* Inline, as most heads and numbers are one byte or two. */
static inline void nop_write_byte(struct nop_writer *w, unsigned int byte)
{
    if (w->len < w->cap)
        w->buf[w->len] = (unsigned char)byte;
    w->len++;
}

static inline void nop_write_uint(struct nop_writer *w, uint64_t value)
{
    if (value < 0x80)
        nop_write_byte(w, (unsigned int)value);
    else
        nop_write_long_uint(w, value);
}

#define NOP_UINT_MAX 9

/* Bytes of an unsigned number. */
static inline size_t nop_uint_len(uint64_t value)
{
    if (value < NOP_U8)
        return 1;
    return value <= UINT8_MAX    ? 2
           : value <= UINT16_MAX ? 3
           : value <= UINT32_MAX ? 5
                                 : NOP_UINT_MAX;
}

/* Without a writer: `at` has room for NOP_UINT_MAX bytes, all of which may be written. Returns
 * the end of the number. */
static inline unsigned char *nop_put_uint(unsigned char *at, uint64_t value)
{
    const size_t len = nop_uint_len(value);

    if (len == 1) {
        *at = (unsigned char)value;
        return at + 1;
    }
    *at = (unsigned char)(NOP_U8 + __builtin_ctzl(len - 1));
    put_le64(at + 1, value);
    return at + len;
}

/* The heads of composite values; their parts follow. */
static inline void nop_write_head(struct nop_writer *w, enum nop_prefix prefix, uint64_t count)
{
    nop_write_byte(w, prefix);
    nop_write_uint(w, count);
}

static inline void nop_write_struct(struct nop_writer *w, uint64_t members)
{
    nop_write_head(w, NOP_STRUCT, members);
}

static inline void nop_write_array(struct nop_writer *w, uint64_t elements)
{
    nop_write_head(w, NOP_ARRAY, elements);
}

static inline void nop_write_map(struct nop_writer *w, uint64_t pairs)
{
    nop_write_head(w, NOP_MAP, pairs);
}

static inline void nop_write_string(struct nop_writer *w, struct nop_bytes text)
{
    nop_write_head(w, NOP_STRING, text.len);
    nop_write_raw(w, text.data, text.len);
}

void nop_write_variant(struct nop_writer *w, int32_t index);
/* A vector of integers: raw little endian, its head counts bytes. */
void nop_write_uint64s(struct nop_writer *w, const uint64_t *values, size_t n);
void nop_write_device(struct nop_writer *w, const struct nop_device *device);

/* `object` and `what` name in errors what is being read: they are borrowed
 * until the reader is done. After a failure every read returns 0, an empty
 * view or false, and `status` is set. */
struct nop_reader {
    const unsigned char *start, *pos, *end;
    const char *object;
    tenrec_error *err; /* may be NULL */
    tenrec_status status;
};

static inline void nop_reader_init(struct nop_reader *r, const char *object, const void *frame,
                                   size_t len, tenrec_error *err)
{
    r->start = r->pos = frame;
    r->end = r->start + len;
    r->object = object;
    r->err = err;
    r->status = TENREC_OK;
}

/* Fails the reader (its first failure stays): "<object>.<what> at byte N: ..." */
TENREC_PRINTF(4, 5)
void nop_reader_fail(struct nop_reader *r, tenrec_status code, const char *what, const char *fmt,
                     ...);

uint64_t nop_read_uint(struct nop_reader *r, uint64_t max, const char *what);
int32_t nop_read_int(struct nop_reader *r, const char *what);
struct nop_bytes nop_read_string(struct nop_reader *r, const char *what);
/* Refuses any other member count: there are no optional members. */
void nop_read_struct(struct nop_reader *r, uint64_t members, const char *what);
/* The number of elements, at least `min_bytes` each: more than fit in the rest
 * of the frame are refused, so a count is safe to loop over. */
size_t nop_read_array(struct nop_reader *r, size_t min_bytes, const char *what);
/* A map of at most `max` pairs, where a lookup walks them all. */
uint32_t nop_read_map(struct nop_reader *r, size_t min_bytes, uint32_t max, const char *what);
/* 0..alternatives-1, or -1 for the empty variant, whose nil is read too. */
int32_t nop_read_variant(struct nop_reader *r, int32_t alternatives, const char *what);
/* Consumes a nil. Returns false if the next value is not nil. */
bool nop_read_nil(struct nop_reader *r);
/* A vector of uint64; take its values out with nop_uint64_at. */
struct nop_bytes nop_read_uint64s(struct nop_reader *r, const char *what);
struct nop_device nop_read_device(struct nop_reader *r, const char *what);

static inline size_t nop_uint64_count(struct nop_bytes values)
{
    return values.len / 8;
}

uint64_t nop_uint64_at(struct nop_bytes values, size_t i);

/* Without a reader: takes a number of up to 4 bytes; false for anything else, and for one at the
 * very end. */
static inline bool nop_take_short(const unsigned char **pos, const unsigned char *end,
                                  uint64_t *ret)
{
    const unsigned char *at = *pos;
    unsigned int bytes;

    if (at == end)
        return false;
    if (*at < 0x80) {
        *ret = *at;
        *pos = at + 1;
        return true;
    }
    /* Reads 4 bytes in any case. */
    if (*at > 0x82 || end - at < 5)
        return false;
    bytes = 1u << (*at & 3);
    *ret = get_le32(at + 1) & (UINT32_MAX >> (32 - 8 * bytes));
    *pos = at + 1 + bytes;
    return true;
}

#define NOP_DEVICE_MIN 5 /* bytes of the shortest device: b9 02 bd 00 00 */

#endif
