/* SPDX-License-Identifier: Apache-2.0 */
#include "head.h"

#include <string.h>

#define MAGIC 0x58554e54u /* "TNUX" */
#define VERSION 2
#define APART 1u

static unsigned char *put(unsigned char *at, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        *at++ = (unsigned char)(value >> (8 * i));
    return at;
}

static uint64_t get(const unsigned char *at, unsigned bytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

void head_write(unsigned char out[HEAD_LEN], const struct head *h)
{
    out = put(out, MAGIC, 4);
    out = put(out, VERSION, 1);
    out = put(out, h->kind, 1);
    out = put(out, h->flags, 2);
    out = put(out, h->sequence, 8);
    out = put(out, (uint32_t)h->type, 4);
    out = put(out, h->count, 4);
    out = put(out, (uint64_t)h->id, 8);
    out = put(out, h->length, 8);
    out = put(out, h->list_len, 8);
    memcpy(out, h->cookie, HEAD_COOKIE_LEN);
}

tenrec_status head_read(const void *in, size_t len, struct head *ret, tenrec_error *err)
{
    const unsigned char *at = in;

    if (len != HEAD_LEN || get(at, 4) != MAGIC)
        return tenrec_fail(err, TENREC_EPROTOCOL, "malformed head of %zu bytes", len);
    if (at[4] != VERSION)
        return tenrec_fail(err, TENREC_EPROTOCOL, "version %u of the head, expected %u", at[4],
                           VERSION);
    *ret = (struct head){ .kind = at[5],
                          .flags = (uint16_t)get(at + 6, 2),
                          .sequence = get(at + 8, 8),
                          .type = (int32_t)get(at + 16, 4),
                          .count = (uint32_t)get(at + 20, 4),
                          .id = (int64_t)get(at + 24, 8),
                          .length = get(at + 32, 8),
                          .list_len = get(at + 40, 8) };
    memcpy(ret->cookie, at + 48, HEAD_COOKIE_LEN);
    if (ret->kind < HEAD_HELLO || ret->kind > HEAD_PROOF || ret->flags & ~HEAD_APART)
        return tenrec_fail(err, TENREC_EPROTOCOL, "kind %u and flags 0x%x of the head", ret->kind,
                           ret->flags);
    return TENREC_OK;
}

bool head_cookies_match(const unsigned char a[HEAD_COOKIE_LEN],
                        const unsigned char b[HEAD_COOKIE_LEN])
{
    volatile unsigned char differ = 0;

    for (int i = 0; i < HEAD_COOKIE_LEN; i++)
        differ |= a[i] ^ b[i];
    return differ == 0;
}

/* ---- tensors ------------------------------------------------------------------------- */

size_t head_tensor_len(const struct tenrec_tensor_desc *t)
{
    return HEAD_TENSOR_LEAST + (size_t)t->ndim * 16;
}

unsigned char *head_tensor_write(unsigned char *out, const struct tenrec_tensor_desc *t, bool apart)
{
    out = put(out, t->bytes, 8);
    out = put(out, t->byte_offset, 8);
    out = put(out, t->dtype.code, 1);
    out = put(out, t->dtype.bits, 1);
    out = put(out, t->dtype.lanes, 2);
    out = put(out, t->ndim, 4);
    out = put(out, t->flags, 8);
    out = put(out, (uint32_t)t->target.kind, 4);
    out = put(out, (uint32_t)t->target.index, 4);
    out = put(out, (uint32_t)t->device.kind, 4);
    out = put(out, (uint32_t)t->device.index, 4);
    out = put(out, t->same_storage, 8);
    out = put(out, apart ? APART : 0, 8);
    for (uint32_t d = 0; d < t->ndim; d++)
        out = put(out, (uint64_t)t->shape[d], 8);
    for (uint32_t d = 0; d < t->ndim; d++)
        out = put(out, (uint64_t)t->strides[d], 8);
    return out;
}

/* Returns true if every element lies within the storage. */
static bool tensor_fits(const struct tenrec_tensor_desc *t)
{
    const uint64_t element = ((uint64_t)t->dtype.bits * t->dtype.lanes + 7) / 8;
    uint64_t last = 0, step, end;
    bool none = false;

    if (t->dtype.bits == 0 || t->dtype.lanes == 0 || t->byte_offset > t->bytes)
        return false;
    for (uint32_t d = 0; d < t->ndim; d++) {
        if (t->shape[d] < 0 || t->strides[d] < 0)
            return false;
        none |= t->shape[d] == 0;
    }
    if (none)
        return true;
    for (uint32_t d = 0; d < t->ndim; d++)
        if (__builtin_mul_overflow((uint64_t)t->shape[d] - 1, (uint64_t)t->strides[d], &step) ||
            __builtin_add_overflow(last, step, &last))
            return false;
    return !__builtin_add_overflow(last, 1, &last) &&
           !__builtin_mul_overflow(last, element, &end) &&
           !__builtin_add_overflow(end, t->byte_offset, &end) && end <= t->bytes;
}

/* A storage of an earlier tensor is named by that one, which has it for itself. */
static bool shares_well(const struct tenrec_msg *msg, uint32_t i)
{
    const struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i), *first;

    if (!t->same_storage)
        return true;
    if (t->same_storage > i)
        return false;
    first = tenrec_msg_tensor(msg, (uint32_t)t->same_storage - 1);
    return !first->same_storage && first->bytes == t->bytes;
}

tenrec_status head_tensor_read(const unsigned char **at, const unsigned char *end,
                               const struct tenrec_msg *msg, uint32_t i, bool *ret_apart,
                               tenrec_error *err)
{
    struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);
    const unsigned char *p = *at;
    uint64_t marks;

    if ((size_t)(end - p) < HEAD_TENSOR_LEAST)
        return tenrec_fail(err, TENREC_EPROTOCOL, "tensor %u: its entry is cut short", i);
    t->bytes = get(p, 8);
    t->byte_offset = get(p + 8, 8);
    t->dtype = (struct tenrec_dtype){ p[16], p[17], (uint16_t)get(p + 18, 2) };
    t->ndim = (uint32_t)get(p + 20, 4);
    t->flags = get(p + 24, 8);
    t->target = (struct tenrec_device){ (int32_t)get(p + 32, 4), (int32_t)get(p + 36, 4) };
    t->source = (struct tenrec_device){ (int32_t)get(p + 40, 4), (int32_t)get(p + 44, 4) };
    t->same_storage = get(p + 48, 8);
    marks = get(p + 56, 8);
    p += HEAD_TENSOR_LEAST;
    if (t->ndim > TENREC_MAX_DIMS || (size_t)(end - p) < (size_t)t->ndim * 16 || marks & ~APART)
        return tenrec_fail(err, TENREC_EPROTOCOL, "tensor %u: malformed entry", i);
    for (uint32_t d = 0; d < t->ndim; d++, p += 8)
        t->shape[d] = (int64_t)get(p, 8);
    for (uint32_t d = 0; d < t->ndim; d++, p += 8)
        t->strides[d] = (int64_t)get(p, 8);
    *at = p;
    *ret_apart = marks & APART;
    if (!tensor_fits(t) || !shares_well(msg, i) || (*ret_apart && (!t->bytes || t->same_storage)))
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "tensor %u: its view does not fit its storage of %llu bytes", i,
                           (unsigned long long)t->bytes);
    return TENREC_OK;
}
