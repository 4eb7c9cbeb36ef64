/* SPDX-License-Identifier: Apache-2.0 */
/* plain.c - messages without tensors, written and recognised by template. */
#include "wire/plain.h"
#include "wire/nop.h"

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
/* The type, the id behind its length, and the length of the payload; all little endian. */
struct __attribute__((packed)) bodies {
    uint32_t type;
    uint64_t id_len;
    uint64_t id;
    uint64_t payload_len;
};

/* The frame of the fourth payload: the pickled list of no tensors. */
static const unsigned char list[] = "\x2f\0\0\0\0\0\0\0"
                                    "\x80\x02"
                                    "ctorch.jit._pickle\nbuild_tensorlist\n"
                                    "q\0(](etR.";

#define LIST_LEN (sizeof list - 1)
/* Bytes of the descriptor but for the third payload's length. */
#define DESCRIPTOR (sizeof head - FRAME + sizeof tail - FRAME)

_Static_assert(sizeof head + 5 + sizeof tail + sizeof(struct bodies) + LIST_LEN <= PLAIN_FRAMES_MAX,
               "the longest frames");

size_t plain_write(unsigned char *to, int32_t type, int64_t id, const void *payload,
                   uint64_t payload_len)
{
    const struct bodies bodies = { htole32((uint32_t)type), htole64(8), htole64((uint64_t)id),
                                   htole64(payload_len) };
    unsigned char *at = to + sizeof head;

    memcpy(to, head, sizeof head);
    at = nop_put_uint(at, payload_len); /* the tail has room for the longest */
    *to = (unsigned char)(DESCRIPTOR + (size_t)(at - to) - sizeof head);
    memcpy(at, tail, sizeof tail);
    at += sizeof tail;
    memcpy(at, &bodies, sizeof bodies);
    at += sizeof bodies;
    if (payload_len)
        memcpy(at, payload, (size_t)payload_len);
    memcpy(at + payload_len, list, LIST_LEN);
    return (size_t)(at - to) + (size_t)payload_len + LIST_LEN;
}

bool plain_read(const unsigned char *data, size_t len, struct plain *ret)
{
    const size_t fixed = sizeof head + sizeof tail + sizeof(struct bodies) + LIST_LEN;
    const unsigned char *const number = data + sizeof head, *at = number;
    struct bodies bodies;
    uint64_t payload_len;
    size_t n;

    if (len <= fixed || memcmp(data + 1, head + 1, sizeof head - 1) != 0 ||
        !nop_take_short(&at, data + len, &payload_len))
        return false;
    n = (size_t)(at - number);
    if (len - fixed < n || len - fixed - n < payload_len || *data != DESCRIPTOR + n ||
        memcmp(at, tail, sizeof tail) != 0)
        return false;
    memcpy(&bodies, at + sizeof tail, sizeof bodies);
    at += sizeof tail + sizeof bodies;
    if (bodies.id_len != htole64(8) || bodies.payload_len != htole64(payload_len) ||
        memcmp(at + payload_len, list, LIST_LEN) != 0)
        return false;
    ret->type = (int32_t)le32toh(bodies.type);
    ret->id = (int64_t)le64toh(bodies.id);
    ret->payload = at;
    ret->payload_len = (size_t)payload_len;
    ret->len = fixed + n + (size_t)payload_len;
    return true;
}
