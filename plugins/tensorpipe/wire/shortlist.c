/* SPDX-License-Identifier: Apache-2.0 */
/* shortlist.c - the short form of the list of tensors. */
#include "wire/little_endian.h"
#include "wire/storage.h"
#include "wire/tensorlist.h"

#define HEAD 8
#define FIXED 16 /* of a tensor, before its sizes */

enum flags { REQUIRES_GRAD = 1, HAS_STRIDES = 2, SHARES_STORAGE = 4 };

static const char magic[4] = { 'T', 'N', 'R', '1' };

/* Contiguous, the last dimension first. Returns false if these strides cannot be counted. */
static bool row_major(const int64_t *shape, uint32_t ndim, int64_t *ret)
{
    int64_t step = 1;

    for (uint32_t i = ndim; i-- > 0;) {
        ret[i] = step;
        if (shape[i] > 1 && __builtin_mul_overflow(step, shape[i], &step))
            return false;
    }
    return true;
}

/* ---- writing ---- */

static tenrec_status shortlist_check(const struct tenrec_tensor_desc *t, tenrec_error *err)
{
    if (t->ndim > TENREC_MAX_DIMS)
        return tenrec_fail(err, TENREC_EINVAL, "%u dimensions; the limit is %d", t->ndim,
                           TENREC_MAX_DIMS);
    if (storage_element_bytes(t->dtype) == 0)
        return tenrec_fail(
            err, TENREC_EUNSUPPORTED, "the wire has no dtype with code %u, %u bits, %u lanes",
            (unsigned)t->dtype.code, (unsigned)t->dtype.bits, (unsigned)t->dtype.lanes);
    return storage_check_view(t, TENREC_EINVAL, err);
}

static unsigned char *put_numbers(unsigned char *at, const int64_t *number, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++, at += 8)
        put_le64(at, (uint64_t)number[i]);
    return at;
}

static unsigned char *put_tensor(unsigned char *at, const struct tenrec_tensor_desc *t)
{
    int64_t expected[TENREC_MAX_DIMS];
    const bool plain = row_major(t->shape, t->ndim, expected) &&
                       memcmp(expected, t->strides, t->ndim * sizeof expected[0]) == 0;

    at[0] = t->dtype.code;
    at[1] = t->dtype.bits;
    put_le16(at + 2, t->dtype.lanes);
    at[4] = (unsigned char)t->ndim;
    at[5] = (unsigned char)((t->flags & TENREC_TENSOR_REQUIRES_GRAD ? REQUIRES_GRAD : 0) |
                            (plain ? 0 : HAS_STRIDES) | (t->same_storage ? SHARES_STORAGE : 0));
    put_le16(at + 6, 0);
    put_le64(at + 8, t->byte_offset);
    at += FIXED;
    if (t->same_storage) {
        put_le32(at, (uint32_t)t->same_storage - 1);
        at += 4;
    }
    at = put_numbers(at, t->shape, t->ndim);
    return plain ? at : put_numbers(at, t->strides, t->ndim);
}

tenrec_status shortlist_write(void *buf, const struct tenrec_tensor_desc *tensors, uint32_t n,
                              uint32_t tensor_size, size_t *ret_len, tenrec_error *err)
{
    const char *from = (const char *)tensors;
    unsigned char *at = buf;

    memcpy(at, magic, sizeof magic);
    put_le32(at + 4, n);
    at += HEAD;
    for (uint32_t i = 0; i < n; i++, from += tensor_size) {
        const struct tenrec_tensor_desc *t = (const void *)from;
        tenrec_status status = shortlist_check(t, err);

        if (status) {
            tenrec_error_prefix(err, "tensor %u", i);
            return status;
        }
        at = put_tensor(at, t);
    }
    *ret_len = (size_t)(at - (unsigned char *)buf);
    return TENREC_OK;
}

/* ---- reading ---- */

struct shortlist_reader {
    const unsigned char *at, *end;
};

static size_t shortlist_left(const struct shortlist_reader *r)
{
    return (size_t)(r->end - r->at);
}

static void get_numbers(struct shortlist_reader *r, int64_t *ret, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++, r->at += 8)
        ret[i] = (int64_t)get_le64(r->at);
}

/* Bytes of the tensor at `r`, as its first bytes say. */
static size_t tensor_bytes(const struct shortlist_reader *r)
{
    const unsigned ndim = r->at[4], flags = r->at[5];

    return FIXED + (flags & SHARES_STORAGE ? 4u : 0u) + 8 * ndim * (flags & HAS_STRIDES ? 2u : 1u);
}

/* The storage of tensor `i`: an earlier one's, or the next that the message carries. */
static tenrec_status get_storage(struct shortlist_reader *r, unsigned flags,
                                 const struct listed *to, uint32_t i, uint32_t *carried,
                                 tenrec_error *err)
{
    struct tenrec_tensor_desc *t = listed_tensor(to, i);
    uint32_t first = i;

    if (flags & SHARES_STORAGE) {
        first = get_le32(r->at);
        r->at += 4;
        if (first >= i || listed_tensor(to, first)->same_storage)
            return tenrec_fail(err, TENREC_EPROTOCOL, "tensor %u has no storage to share", first);
    } else if (*carried == to->n_carried) {
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "more storages than the %u that the message carries", *carried);
    } else {
        t->bytes = to->carried[*carried].bytes;
        to->carried[(*carried)++].tensor = i;
    }
    t->same_storage = first < i ? (uint64_t)first + 1 : 0;
    t->bytes = listed_tensor(to, first)->bytes;
    return TENREC_OK;
}

static tenrec_status get_tensor(struct shortlist_reader *r, const struct listed *to, uint32_t i,
                                uint32_t *carried, tenrec_error *err)
{
    struct tenrec_tensor_desc *t = listed_tensor(to, i);
    unsigned ndim, flags;

    if (shortlist_left(r) < FIXED)
        return tenrec_fail(err, TENREC_EPROTOCOL, "the list is cut");
    ndim = r->at[4];
    flags = r->at[5];
    if (ndim > TENREC_MAX_DIMS)
        return tenrec_fail(err, TENREC_ETOOBIG, "%u dimensions; the limit is %d", ndim,
                           TENREC_MAX_DIMS);
    if (shortlist_left(r) < tensor_bytes(r))
        return tenrec_fail(err, TENREC_EPROTOCOL, "the list is cut");
    t->dtype = (struct tenrec_dtype){ r->at[0], r->at[1], (uint16_t)(r->at[2] | r->at[3] << 8) };
    t->ndim = ndim;
    t->flags = flags & REQUIRES_GRAD ? TENREC_TENSOR_REQUIRES_GRAD : 0;
    t->byte_offset = get_le64(r->at + 8);
    r->at += FIXED;
    if (get_storage(r, flags, to, i, carried, err))
        return TENREC_EPROTOCOL;
    get_numbers(r, t->shape, ndim);
    if (flags & HAS_STRIDES)
        get_numbers(r, t->strides, ndim);
    else if (!row_major(t->shape, ndim, t->strides))
        return tenrec_fail(err, TENREC_EPROTOCOL, "its sizes cannot be counted");
    if (storage_element_bytes(t->dtype) == 0)
        return tenrec_fail(err, TENREC_EPROTOCOL, "dtype of %u bits and %u lanes",
                           (unsigned)t->dtype.bits, (unsigned)t->dtype.lanes);
    return storage_check_view(t, TENREC_EPROTOCOL, err);
}

bool shortlist_is(const void *list, size_t len)
{
    return len >= HEAD && memcmp(list, magic, sizeof magic) == 0;
}

tenrec_status shortlist_read(const void *list, size_t len, const struct listed *to, uint32_t *ret_n,
                             tenrec_error *err)
{
    struct shortlist_reader r = { (const unsigned char *)list + HEAD,
                                  (const unsigned char *)list + len };
    const uint32_t n = get_le32((const unsigned char *)list + 4);
    uint32_t carried = 0;

    if (n > to->max)
        return tenrec_fail(err, TENREC_ETOOBIG, "list of %u tensors; the limit is %u", n, to->max);
    if (n < to->n_carried || n > shortlist_left(&r) / FIXED)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "list of %u tensors and %zu bytes in a message that carries %u", n, len,
                           to->n_carried);
    *ret_n = n;
    if (n > to->room)
        return TENREC_OK;
    for (uint32_t i = 0; i < n; i++) {
        tenrec_status status = get_tensor(&r, to, i, &carried, err);

        if (status) {
            tenrec_error_prefix(err, "tensor %u", i);
            return status;
        }
    }
    if (shortlist_left(&r))
        return tenrec_fail(err, TENREC_EPROTOCOL, "%zu bytes behind the list of tensors",
                           shortlist_left(&r));
    if (carried != to->n_carried)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "list of %u storages in a message that carries %u", carried,
                           to->n_carried);
    return TENREC_OK;
}
