/* SPDX-License-Identifier: Apache-2.0 */
/* plain.c - messages without tensors, written and recognised by template. */
#include "wire/plain.h"
#include "wire/little_endian.h"
#include "wire/nop.h"

/* A descriptor without metadata and tensors, four payloads of which the first
 * two have 4 and 8 bytes; the third one's length comes next. */
static const unsigned char head[] = { 0xb9, 3, 0xbd, 0, 0xba, 4,    0xb9, 2,    4,
                                      0xbd, 0, 0xb9, 2, 8,    0xbd, 0,    0xb9, 2 };
/* The rest of it: the fourth has 47. */
static const unsigned char tail[] = { 0xbd, 0, 0xb9, 2, 47, 0xbd, 0, 0xba, 0 };

/* The frame of the fourth payload: the pickled list of no tensors. */
static const unsigned char list[] = "\x2f\0\0\0\0\0\0\0"
                                    "\x80\x02"
                                    "ctorch.jit._pickle\nbuild_tensorlist\n"
                                    "q\0(](etR.";

#define LIST_LEN (sizeof list - 1)
#define FRAME 8
#define BODIES (FRAME + 4 + FRAME + 8 + FRAME) /* type, id, head of the payload */

size_t plain_len(uint64_t payload_len)
{
    return FRAME + sizeof head + nop_uint_len(payload_len) + sizeof tail + BODIES +
           (size_t)payload_len + LIST_LEN;
}

void plain_write(unsigned char *to, int32_t type, int64_t id, const void *payload,
                 uint64_t payload_len)
{
    put_le64(to, sizeof head + nop_uint_len(payload_len) + sizeof tail);
    memcpy(to + FRAME, head, sizeof head);
    to = nop_put_uint(to + FRAME + sizeof head, payload_len);
    memcpy(to, tail, sizeof tail);
    to += sizeof tail;
    put_le64(to, 4);
    put_le32(to + FRAME, (uint32_t)type);
    to += FRAME + 4;
    put_le64(to, 8);
    put_le64(to + FRAME, (uint64_t)id);
    to += FRAME + 8;
    put_le64(to, payload_len);
    to += FRAME;
    if (payload_len)
        memcpy(to, payload, (size_t)payload_len);
    memcpy(to + payload_len, list, LIST_LEN);
}

bool plain_read(const unsigned char *data, size_t len, struct plain *ret)
{
    const size_t fixed = FRAME + sizeof head + sizeof tail + BODIES + LIST_LEN;
    const unsigned char *at = data + FRAME + sizeof head, *behind = at;
    uint64_t payload_len;
    size_t n;

    if (len <= fixed || memcmp(data + FRAME, head, sizeof head) != 0 ||
        !nop_take_short(&behind, data + len, &payload_len))
        return false;
    n = (size_t)(behind - at);
    if (len - fixed < n || len - fixed - n < payload_len ||
        get_le64(data) != sizeof head + n + sizeof tail || memcmp(at + n, tail, sizeof tail) != 0)
        return false;
    at += n + sizeof tail;
    if (get_le64(at) != 4 || get_le64(at + FRAME + 4) != 8 ||
        get_le64(at + FRAME + 4 + FRAME + 8) != payload_len ||
        memcmp(at + BODIES + payload_len, list, LIST_LEN) != 0)
        return false;
    ret->type = (int32_t)get_le32(at + FRAME);
    ret->id = (int64_t)get_le64(at + FRAME + 4 + FRAME);
    ret->payload = at + BODIES;
    ret->payload_len = (size_t)payload_len;
    ret->len = fixed + n + (size_t)payload_len;
    return true;
}
