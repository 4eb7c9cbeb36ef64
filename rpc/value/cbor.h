/* SPDX-License-Identifier: Apache-2.0 */
/* cbor.h - the format of data items of CBOR (RFC 8949), for the reader and the
 * writer, and their heads.
 *
 * An item begins with a head: its major type in the upper three bits of a byte,
 * and a number in the lower five bits, or in 1, 2, 4 or 8 bytes that follow. */
#ifndef TENREC_VALUE_CBOR_H
#define TENREC_VALUE_CBOR_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum cbor_major {
    CBOR_MAJOR_UINT,
    CBOR_MAJOR_NEGINT, /* -1 - the number */
    CBOR_MAJOR_BYTES,
    CBOR_MAJOR_TEXT,
    CBOR_MAJOR_ARRAY,
    CBOR_MAJOR_MAP,
    CBOR_MAJOR_TAG,
    CBOR_MAJOR_SIMPLE,
};

#define CBOR_BYTE(major, low) ((unsigned char)((major) << 5 | (low)))
#define CBOR_LOW_BITS 0x1f

/* The lower bits of a head whose number follows in 1, 2, 4 or 8 bytes. */
enum { CBOR_LOW_1 = 24, CBOR_LOW_2, CBOR_LOW_4, CBOR_LOW_8, CBOR_LOW_INDEFINITE = 31 };

/* The lower bits of CBOR_MAJOR_SIMPLE that begin a value here. */
enum {
    CBOR_SIMPLE_FALSE = 20,
    CBOR_SIMPLE_TRUE,
    CBOR_SIMPLE_NIL,
    CBOR_SIMPLE_UNDEFINED,
    CBOR_SIMPLE_HALF = CBOR_LOW_2,
    CBOR_SIMPLE_SINGLE = CBOR_LOW_4,
    CBOR_SIMPLE_DOUBLE = CBOR_LOW_8,
    CBOR_SIMPLE_BREAK = CBOR_LOW_INDEFINITE,
};

#define CBOR_NIL CBOR_BYTE(CBOR_MAJOR_SIMPLE, CBOR_SIMPLE_NIL)
#define CBOR_DOUBLE CBOR_BYTE(CBOR_MAJOR_SIMPLE, CBOR_SIMPLE_DOUBLE)

#define CBOR_HEAD_MAX 9    /* bytes of the longest head */
#define CBOR_DOUBLE_SIZE 9 /* bytes of a double */

/* For the few loops and functions through which each call goes. */
#define CBOR_INLINE static inline __attribute__((always_inline))

/* The tag before each payload: d9 d9 f7. */
#define CBOR_SELF_DESCRIBED 55799

/* ---- heads ------------------------------------------------------------------------ */

/* Bytes of a head with the number `n`. */
static inline size_t cbor_head_size(uint64_t n)
{
    if (n < CBOR_LOW_1)
        return 1;
    if (n <= UINT8_MAX)
        return 2;
    if (n <= UINT16_MAX)
        return 3;
    return n <= UINT32_MAX ? 5 : 9;
}

/* A head of 5 or 9 bytes. */
unsigned char *cbor_put_long_head(unsigned char *at, enum cbor_major major, uint64_t n);

CBOR_INLINE unsigned char *cbor_put_head(unsigned char *at, enum cbor_major major, uint64_t n)
{
    if (n < CBOR_LOW_1) {
        at[0] = CBOR_BYTE(major, n);
        return at + 1;
    }
    if (n <= UINT8_MAX) {
        at[0] = CBOR_BYTE(major, CBOR_LOW_1);
        at[1] = (unsigned char)n;
        return at + 2;
    }
    if (n <= UINT16_MAX) {
        at[0] = CBOR_BYTE(major, CBOR_LOW_2);
        memcpy(at + 1, &(uint16_t){ htobe16((uint16_t)n) }, 2);
        return at + 3;
    }
    return cbor_put_long_head(at, major, n);
}

struct cbor_number {
    const unsigned char *behind; /* the head; NULL if the head is cut or has no number */
    uint64_t n;
};

/* The number of 4 or 8 bytes of the head at `at`. By value, so that a reader may stay in
 * registers. */
struct cbor_number cbor_long_number(const unsigned char *at, const unsigned char *end);
/* Reads the head at *at, which is before `end`, and returns its number in *ret. Returns false, and
 * leaves *at there, if the head is cut or has no number. */
CBOR_INLINE bool cbor_read_head(const unsigned char **at, const unsigned char *end, uint64_t *ret)
{
    const unsigned char *first = *at;
    const unsigned low = first[0] & CBOR_LOW_BITS;
    struct cbor_number number;

    if (low < CBOR_LOW_1) {
        *ret = low;
        *at = first + 1;
        return true;
    }
    if (low == CBOR_LOW_1 && end - first >= 2) {
        *ret = first[1];
        *at = first + 2;
        return true;
    }
    if (low == CBOR_LOW_2 && end - first >= 3) {
        *ret = (uint64_t)first[1] << 8 | first[2];
        *at = first + 3;
        return true;
    }
    number = cbor_long_number(first, end);
    if (!number.behind)
        return false;
    *ret = number.n;
    *at = number.behind;
    return true;
}

#endif
