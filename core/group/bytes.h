/* SPDX-License-Identifier: Apache-2.0 */
/* bytes.h - a growing buffer of bytes, written little-endian as c10d's stores
 * do. A failed allocation is remembered in `failed`, so that a whole request
 * can be built before it is looked at. */
#ifndef TENREC_GROUP_BYTES_H
#define TENREC_GROUP_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
    uint8_t *data; /* owns */
    size_t len, cap;
    bool failed; /* out of memory; nothing was added since */
};

void bytes_add(struct bytes *b, const void *data, size_t len);
void bytes_add_u8(struct bytes *b, uint8_t v);
void bytes_add_u32(struct bytes *b, uint32_t v);
void bytes_add_u64(struct bytes *b, uint64_t v);
/* u64 length and the bytes. */
void bytes_add_blob(struct bytes *b, const void *data, size_t len);
void bytes_add_text(struct bytes *b, const char *text);

/* Room for `n` more bytes at the end, for a reader to fill; NULL when there is
 * no memory. bytes_grew says how many came. */
uint8_t *bytes_room(struct bytes *b, size_t n);
void bytes_grew(struct bytes *b, size_t n);

void bytes_drop_front(struct bytes *b, size_t n);
void bytes_free(struct bytes *b); /* leaves it empty and usable */

uint32_t bytes_get_u32(const uint8_t *p);
uint64_t bytes_get_u64(const uint8_t *p);

/* A copy with a NUL behind it that is not counted; NULL when out of memory. */
void *bytes_copy(const void *data, size_t len);

#endif
