/* plain.c - messages without tensors, written and recognised by template. */
#include "plain.h"

#include <string.h>

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

static void put_le(unsigned char *to, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (unsigned char)(v >> (8 * i));
}

static uint64_t get_le(const unsigned char *from, int bytes)
{
    uint64_t v = 0;

    for (int i = bytes - 1; i >= 0; i--)
        v = v << 8 | from[i];
    return v;
}

/* Bytes after the prefix of an unsigned integer; 0 when it is its own prefix. */
static int width_of(uint64_t v)
{
    if (v < 0x80)
        return 0;
    if (v < 0x100)
        return 1;
    return v < 0x10000 ? 2 : 4;
}

size_t plain_len(uint64_t payload_len)
{
    return FRAME + sizeof head + 1 + (size_t)width_of(payload_len) + sizeof tail + BODIES +
           (size_t)payload_len + LIST_LEN;
}

void plain_write(unsigned char *to, int32_t type, int64_t id, const void *payload,
                 uint64_t payload_len)
{
    int width = width_of(payload_len);

    put_le(to, sizeof head + 1 + (size_t)width + sizeof tail, FRAME);
    to += FRAME;
    memcpy(to, head, sizeof head);
    to += sizeof head;
    *to++ = (unsigned char)(width == 0 ? payload_len : width == 4 ? 0x82 : 0x7f + (unsigned)width);
    put_le(to, payload_len, width);
    to += width;
    memcpy(to, tail, sizeof tail);
    to += sizeof tail;
    put_le(to, 4, FRAME);
    put_le(to + FRAME, (uint32_t)type, 4);
    to += FRAME + 4;
    put_le(to, 8, FRAME);
    put_le(to + FRAME, (uint64_t)id, 8);
    to += FRAME + 8;
    put_le(to, payload_len, FRAME);
    to += FRAME;
    if (payload_len)
        memcpy(to, payload, (size_t)payload_len);
    memcpy(to + payload_len, list, LIST_LEN);
}

bool plain_read(const unsigned char *data, size_t len, struct plain *ret)
{
    const size_t fixed = FRAME + sizeof head + 1 + sizeof tail + BODIES + LIST_LEN;
    const unsigned char *at = data + FRAME + sizeof head;
    uint64_t payload_len;
    int width = 0;

    if (len < fixed || memcmp(data + FRAME, head, sizeof head) != 0)
        return false;
    payload_len = *at++;
    if (payload_len >= 0x80) {
        if (payload_len > 0x82)
            return false;
        width = 1 << (payload_len - 0x80);
        if (len - fixed < (size_t)width)
            return false;
        payload_len = get_le(at, width);
        at += width;
    }
    if (len - fixed - (size_t)width < payload_len ||
        get_le(data, FRAME) != sizeof head + 1 + (size_t)width + sizeof tail ||
        memcmp(at, tail, sizeof tail) != 0)
        return false;
    at += sizeof tail;
    if (get_le(at, FRAME) != 4 || get_le(at + FRAME + 4, FRAME) != 8 ||
        get_le(at + FRAME + 4 + FRAME + 8, FRAME) != payload_len ||
        memcmp(at + BODIES + payload_len, list, LIST_LEN) != 0)
        return false;
    ret->type = (int32_t)(uint32_t)get_le(at + FRAME, 4);
    ret->id = (int64_t)get_le(at + FRAME + 4 + FRAME, 8);
    ret->payload = at + BODIES;
    ret->payload_len = (size_t)payload_len;
    ret->len = fixed + (size_t)width + (size_t)payload_len;
    return true;
}
