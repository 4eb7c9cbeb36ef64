/* SPDX-License-Identifier: Apache-2.0 */
/* plain.c - messages without tensors, written and recognised by template. */
#include "wire/plain.h"

#include <endian.h>
#include <string.h>

#define FRAME 8

/* The frame of a descriptor without metadata and tensors, four payloads of which the first two
 * have 4 and 8 bytes; the third one's length comes next. The frame's length, which is below 256,
 * is put into the first byte. */
static const unsigned char head[] = { 0, 0,    0, 0, 0,    0, 0,    0, 0xb9, 3,    0xbd, 0,    0xba,
                                      4, 0xb9, 2, 4, 0xbd, 0, 0xb9, 2, 8,    0xbd, 0,    0xb9, 2 };
/* The rest of it, with 47 bytes of the fourth payload, and the length before the type. */
static const unsigned char tail[] = {
    0xbd, 0, 0xb9, 2, 47, 0xbd, 0, 0xba, 0, 4, 0, 0, 0, 0, 0, 0, 0
};
/* The length before the id. */
static const unsigned char id_head[FRAME] = { 8 };

/* The frame of the fourth payload: the pickled list of no tensors. */
static const unsigned char list[] = "\x2f\0\0\0\0\0\0\0"
                                    "\x80\x02"
                                    "ctorch.jit._pickle\nbuild_tensorlist\n"
                                    "q\0(](etR.";

#define LIST_LEN (sizeof list - 1)
/* Bytes of the descriptor but for the third payload's length. */
#define DESCRIPTOR (sizeof head - FRAME + sizeof tail - FRAME)
/* Bytes from the type to the payload. */
#define BODIES (4 + FRAME + 8 + FRAME)

/* The payload's length as an object's unsigned integer. */
static unsigned char *put_uint(unsigned char *to, uint64_t v)
{
    if (v < 0x80) {
        *to++ = (unsigned char)v;
        return to;
    }
    if (v < 0x100) {
        *to++ = 0x80;
        *to++ = (unsigned char)v;
        return to;
    }
    if (v < 0x10000) {
        *to++ = 0x81;
        *to++ = (unsigned char)v;
        *to++ = (unsigned char)(v >> 8);
        return to;
    }
    *to = 0x82;
    memcpy(to + 1, &(uint32_t){ htole32((uint32_t)v) }, 4);
    return to + 5;
}

size_t plain_len(uint64_t payload_len)
{
    const size_t wide = payload_len < 0x80      ? 1
                        : payload_len < 0x100   ? 2
                        : payload_len < 0x10000 ? 3
                                                : 5;

    return sizeof head + wide + sizeof tail + BODIES + (size_t)payload_len + LIST_LEN;
}

void plain_write(unsigned char *to, int32_t type, int64_t id, const void *payload,
                 uint64_t payload_len)
{
    unsigned char *at = to + sizeof head;

    memcpy(to, head, sizeof head);
    at = put_uint(at, payload_len);
    *to = (unsigned char)(DESCRIPTOR + (size_t)(at - to) - sizeof head);
    memcpy(at, tail, sizeof tail);
    at += sizeof tail;
    memcpy(at, &(uint32_t){ htole32((uint32_t)type) }, 4);
    memcpy(at + 4, id_head, FRAME);
    memcpy(at + 4 + FRAME, &(uint64_t){ htole64((uint64_t)id) }, 8);
    memcpy(at + 4 + FRAME + 8, &(uint64_t){ htole64(payload_len) }, FRAME);
    at += BODIES;
    if (payload_len)
        memcpy(at, payload, (size_t)payload_len);
    memcpy(at + payload_len, list, LIST_LEN);
}

/* Bytes of the integer at `from`, of which at least 5 can be read; 0 when it
 * is wider than a small message needs. */
static size_t get_uint(const unsigned char *from, uint64_t *ret)
{
    if (*from < 0x80) {
        *ret = *from;
        return 1;
    }
    switch (*from) {
    case 0x80:
        *ret = from[1];
        return 2;
    case 0x81:
        *ret = (uint64_t)from[1] | (uint64_t)from[2] << 8;
        return 3;
    case 0x82:
        *ret = (uint64_t)from[1] | (uint64_t)from[2] << 8 | (uint64_t)from[3] << 16 |
               (uint64_t)from[4] << 24;
        return 5;
    default:
        return 0;
    }
}

bool plain_read(const unsigned char *data, size_t len, struct plain *ret)
{
    const size_t fixed = sizeof head + sizeof tail + BODIES + LIST_LEN;
    const unsigned char *at = data + sizeof head;
    uint64_t payload_len, id, body_len;
    uint32_t type;
    size_t n;

    if (len <= fixed || memcmp(data + 1, head + 1, sizeof head - 1) != 0)
        return false;
    n = get_uint(at, &payload_len);
    if (!n || len - fixed < n || len - fixed - n < payload_len || *data != DESCRIPTOR + n ||
        memcmp(at + n, tail, sizeof tail) != 0)
        return false;
    at += n + sizeof tail;
    memcpy(&type, at, sizeof type);
    memcpy(&id, at + 4 + FRAME, sizeof id);
    memcpy(&body_len, at + 4 + FRAME + 8, sizeof body_len);
    if (memcmp(at + 4, id_head, FRAME) != 0 || le64toh(body_len) != payload_len ||
        memcmp(at + BODIES + payload_len, list, LIST_LEN) != 0)
        return false;
    ret->type = (int32_t)le32toh(type);
    ret->id = (int64_t)le64toh(id);
    ret->payload = at + BODIES;
    ret->payload_len = (size_t)payload_len;
    ret->len = fixed + n + (size_t)payload_len;
    return true;
}
