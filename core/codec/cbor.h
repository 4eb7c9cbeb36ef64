/* SPDX-License-Identifier: Apache-2.0 */
/* cbor.h - the format of data items of CBOR (RFC 8949), for the reader and the
 * writer.
 *
 * An item begins with a head: its major type in the upper three bits of a byte,
 * and a number in the lower five bits, or in 1, 2, 4 or 8 bytes that follow. */
#ifndef TENREC_CODEC_CBOR_H
#define TENREC_CODEC_CBOR_H

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

#endif
