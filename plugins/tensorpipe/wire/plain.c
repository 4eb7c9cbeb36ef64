/* SPDX-License-Identifier: Apache-2.0 */
/* plain.c - messages without tensors, written and recognised by template. */
#include "wire/plain.h"
#include "wire/little_endian.h"
#include "wire/nop.h"

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

_Static_assert(sizeof head + 5 + sizeof tail + BODIES + LIST_LEN <= PLAIN_FRAMES_MAX,
               "the longest frames");

size_t plain_write(unsigned char *to, int32_t type, int64_t id, const void *payload,
                   uint64_t payload_len)
{
    unsigned char *at = to + sizeof head;

    memcpy(to, head, sizeof head);
    at = nop_put_uint(at, payload_len); /* the tail has room for the longest */
    *to = (unsigned char)(DESCRIPTOR + (size_t)(at - to) - sizeof head);
    memcpy(at, tail, sizeof tail);
    at += sizeof tail;
    put_le32(at, (uint32_t)type);
    memcpy(at + 4, id_head, FRAME);
    put_le64(at + 4 + FRAME, (uint64_t)id);
    put_le64(at + 4 + FRAME + 8, payload_len);
    at += BODIES;
    if (payload_len)
        memcpy(at, payload, (size_t)payload_len);
    memcpy(at + payload_len, list, LIST_LEN);
    return (size_t)(at - to) + (size_t)payload_len + LIST_LEN;
}

bool plain_read(const unsigned char *data, size_t len, struct plain *ret)
{
    const size_t fixed = sizeof head + sizeof tail + BODIES + LIST_LEN;
    const unsigned char *const number = data + sizeof head, *at = number;
    uint64_t payload_len;
    size_t n;

    if (len <= fixed || memcmp(data + 1, head + 1, sizeof head - 1) != 0 ||
        !nop_take_short(&at, data + len, &payload_len))
        return false;
    n = (size_t)(at - number);
    if (len - fixed < n || len - fixed - n < payload_len || *data != DESCRIPTOR + n ||
        memcmp(at, tail, sizeof tail) != 0)
        return false;
    at += sizeof tail;
    if (memcmp(at + 4, id_head, FRAME) != 0 || get_le64(at + 4 + FRAME + 8) != payload_len ||
        memcmp(at + BODIES + payload_len, list, LIST_LEN) != 0)
        return false;
    ret->type = (int32_t)get_le32(at);
    ret->id = (int64_t)get_le64(at + 4 + FRAME);
    ret->payload = at + BODIES;
    ret->payload_len = (size_t)payload_len;
    ret->len = fixed + n + (size_t)payload_len;
    return true;
}
