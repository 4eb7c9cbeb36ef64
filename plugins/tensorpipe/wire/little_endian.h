/* SPDX-License-Identifier: Apache-2.0 */
/* little_endian.h - numbers at any place in a buffer. */
#ifndef TENSORPIPE_LITTLE_ENDIAN_H
#define TENSORPIPE_LITTLE_ENDIAN_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline void put_le16(unsigned char *to, uint16_t v)
{
    v = htole16(v);
    memcpy(to, &v, sizeof v);
}

static inline void put_le32(unsigned char *to, uint32_t v)
{
    v = htole32(v);
    memcpy(to, &v, sizeof v);
}

static inline void put_le64(unsigned char *to, uint64_t v)
{
    v = htole64(v);
    memcpy(to, &v, sizeof v);
}

static inline uint32_t get_le32(const unsigned char *from)
{
    uint32_t v;

    memcpy(&v, from, sizeof v);
    return le32toh(v);
}

static inline uint64_t get_le64(const unsigned char *from)
{
    uint64_t v;

    memcpy(&v, from, sizeof v);
    return le64toh(v);
}

#endif
