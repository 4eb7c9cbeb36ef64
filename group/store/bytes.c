/* SPDX-License-Identifier: Apache-2.0 */
#include "group/store/bytes.h"

#include "core/base/memory.h"

#include <stdlib.h>
#include <string.h>

uint8_t *bytes_room(struct bytes *b, size_t n)
{
    size_t cap = b->cap ? b->cap : 256;
    uint8_t *data;

    if (b->failed || n > SIZE_MAX / 4 - b->len) {
        b->failed = true;
        return NULL;
    }
    if (b->len + n > b->cap || !b->data) {
        while (cap < b->len + n)
            cap *= 2;
        if (!(data = memory_resize(b->data, cap, 1))) {
            b->failed = true;
            return NULL;
        }
        b->data = data;
        b->cap = cap;
    }
    return b->data + b->len;
}

void bytes_grew(struct bytes *b, size_t n)
{
    b->len += n;
}

void bytes_add(struct bytes *b, const void *data, size_t len)
{
    uint8_t *to = bytes_room(b, len);

    if (!to || len == 0)
        return;
    memcpy(to, data, len);
    b->len += len;
}

void bytes_add_u8(struct bytes *b, uint8_t v)
{
    bytes_add(b, &v, 1);
}

void bytes_add_u32(struct bytes *b, uint32_t v)
{
    uint8_t raw[4];

    for (size_t i = 0; i < sizeof raw; i++)
        raw[i] = (uint8_t)(v >> (8 * i));
    bytes_add(b, raw, sizeof raw);
}

void bytes_add_u64(struct bytes *b, uint64_t v)
{
    bytes_add_u32(b, (uint32_t)v);
    bytes_add_u32(b, (uint32_t)(v >> 32));
}

void bytes_add_blob(struct bytes *b, const void *data, size_t len)
{
    bytes_add_u64(b, len);
    bytes_add(b, data, len);
}

void bytes_add_text(struct bytes *b, const char *text)
{
    bytes_add_blob(b, text, strlen(text));
}

void bytes_drop_front(struct bytes *b, size_t n)
{
    b->len -= n;
    if (n && b->len)
        memmove(b->data, b->data + n, b->len);
    /* Do not keep the memory that one large request needed. */
    if (b->len == 0 && b->cap > 65536)
        bytes_free(b);
}

void bytes_free(struct bytes *b)
{
    free(b->data);
    *b = (struct bytes){ 0 };
}

uint32_t bytes_get_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint64_t bytes_get_u64(const uint8_t *p)
{
    return bytes_get_u32(p) | (uint64_t)bytes_get_u32(p + 4) << 32;
}

struct bytes_slice bytes_of_text(const char *text)
{
    return (struct bytes_slice){ (const uint8_t *)text, strlen(text) };
}

bool bytes_number(struct bytes_slice text, int64_t *ret)
{
    bool negative = text.len && text.data[0] == '-';
    int64_t n = 0;

    if (text.len <= (size_t)negative)
        return false;
    for (size_t i = negative; i < text.len; i++) {
        int digit = text.data[i] - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(n, 10, &n) ||
            __builtin_sub_overflow(n, digit, &n)) /* downwards: INT64_MIN fits */
            return false;
    }
    if (!negative)
        return !__builtin_sub_overflow((int64_t)0, n, ret);
    *ret = n;
    return true;
}

const uint8_t *bytes_read(struct bytes_reader *r, size_t n)
{
    if (r->bad)
        return NULL;
    if (n > r->len - r->at) {
        r->need = n > SIZE_MAX - r->at ? SIZE_MAX : r->at + n;
        r->bad = true;
        return NULL;
    }
    r->at += n;
    return r->data + r->at - n;
}

uint32_t bytes_read_u32(struct bytes_reader *r)
{
    const uint8_t *p = bytes_read(r, 4);

    return p ? bytes_get_u32(p) : 0;
}

uint64_t bytes_read_u64(struct bytes_reader *r)
{
    const uint8_t *p = bytes_read(r, 8);

    return p ? bytes_get_u64(p) : 0;
}

size_t bytes_read_count(struct bytes_reader *r, size_t most, size_t size)
{
    const uint64_t n = bytes_read_u64(r);

    if (n > most || n > (r->len - r->at) / size) {
        r->bad = true;
        return 0;
    }
    return (size_t)n;
}

const uint8_t *bytes_read_blob(struct bytes_reader *r, size_t most, size_t *ret_len)
{
    *ret_len = bytes_read_count(r, most, 1);
    return bytes_read(r, *ret_len);
}

void bytes_read_text(struct bytes_reader *r, char *ret, size_t room)
{
    size_t len;
    const uint8_t *text = bytes_read_blob(r, room - 1, &len);

    if (text && memchr(text, 0, len)) {
        r->bad = true;
        len = 0;
    }
    if (len)
        memcpy(ret, text, len);
    ret[len] = '\0';
}

void *bytes_copy(const void *data, size_t len)
{
    char *copy = memory_new(len + 1, 1);

    if (copy && len)
        memcpy(copy, data, len);
    return copy;
}
