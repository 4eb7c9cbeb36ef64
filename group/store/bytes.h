/* SPDX-License-Identifier: Apache-2.0 */
/* bytes.h - a growing buffer of bytes, written little-endian as c10d's stores do, and a cursor to
 * read such bytes. Both remember the first failure, so that a caller writes or reads a whole
 * record before it checks. */
#ifndef TENREC_STORE_BYTES_H
#define TENREC_STORE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
    uint8_t *data; /* owns */
    size_t len, cap;
    bool failed; /* out of memory; nothing was added since */
};

struct bytes_slice {
    const uint8_t *data; /* borrows */
    size_t len;
};

void bytes_add(struct bytes *b, const void *data, size_t len);
void bytes_add_u8(struct bytes *b, uint8_t v);
void bytes_add_u32(struct bytes *b, uint32_t v);
void bytes_add_u64(struct bytes *b, uint64_t v);
/* u64 length and the bytes. */
void bytes_add_blob(struct bytes *b, const void *data, size_t len);
void bytes_add_text(struct bytes *b, const char *text);

/* Room for `n` more bytes at the end, for a reader to fill; NULL without memory.
 * bytes_grew counts the bytes that were read. */
uint8_t *bytes_room(struct bytes *b, size_t n);
void bytes_grew(struct bytes *b, size_t n);

void bytes_drop_front(struct bytes *b, size_t n);
void bytes_free(struct bytes *b); /* leaves it empty and usable */

uint32_t bytes_get_u32(const uint8_t *p);
uint64_t bytes_get_u64(const uint8_t *p);

struct bytes_slice bytes_of_text(const char *text); /* without the NUL */

/* For "%.*s": a length that fits into an int, and is cut so that it does not flood an error text. A
 * length that becomes negative as an int would mean no limit. */
#define BYTES_PRINT(span) (int)((span).len < 128 ? (span).len : 128), (const char *)(span).data
/* Reads a whole decimal number. */
bool bytes_number(struct bytes_slice text, int64_t *ret);

/* A cursor over bytes from outside. A read beyond their end sets `bad`, as does a caller that
 * refuses a value; from then on all reads give 0, NULL or "". */
struct bytes_reader {
    const uint8_t *data; /* borrows */
    size_t len, at;
    size_t need; /* set by a read beyond the end: so many bytes suffice for it */
    bool bad;
};

/* The next `n` bytes; NULL when there are fewer. */
const uint8_t *bytes_read(struct bytes_reader *r, size_t n);
uint32_t bytes_read_u32(struct bytes_reader *r);
uint64_t bytes_read_u64(struct bytes_reader *r);
/* A u64 number of elements, at most `most`; `bad` also when less than `size` bytes are left for
 * each. */
size_t bytes_read_count(struct bytes_reader *r, size_t most, size_t size);
/* The bytes of a blob of at most `most` bytes; NULL when `bad`. */
const uint8_t *bytes_read_blob(struct bytes_reader *r, size_t most, size_t *ret_len);
/* A blob without a NUL, of less than `room` bytes, as a text. */
void bytes_read_text(struct bytes_reader *r, char *ret, size_t room);

/* A copy with a NUL behind it that is not counted; NULL when out of memory. */
void *bytes_copy(const void *data, size_t len);

#endif
