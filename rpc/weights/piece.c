/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/weights/piece.h"

#include "core/base/memory.h"
#include "core/tensor/tensor.h"
#include "rpc/region/regions.h"

#include <stdlib.h>
#include <string.h>
#include <tenrec/device.h>

const struct tenrec_weights_box *piece_box_at(const struct tenrec_weights_box *boxes, size_t i)
{
    return (const struct tenrec_weights_box *)(const void *)((const char *)boxes + i * boxes->size);
}

void piece_box_prefix(const struct tenrec_weights_box *boxes, size_t i, tenrec_error *err)
{
    const struct tenrec_weights_box *b = piece_box_at(boxes, i);
    const bool whole = b->size >= sizeof *b && b->size == boxes->size;

    tenrec_error_prefix(err, "box %zu ('%.*s')", i, PIECE_NAME_MAX,
                        whole && b->name ? b->name : "");
}

/* Checks what piece.h says of a piece, and computes its bytes. errors: EINVAL, ETOOBIG */
static tenrec_status piece_check(struct piece *p, tenrec_error *err)
{
    struct tenrec_tensor_desc d;
    tenrec_status st = tensor_describe(p->dtype, p->ndim, p->shape, &d, err);

    if (st == TENREC_OK)
        st = tensor_describe(p->dtype, p->ndim, p->extent, &d, err);
    for (uint32_t i = 0; i < p->ndim && st == TENREC_OK; i++)
        if (p->at[i] < 0 || p->at[i] > p->shape[i] - p->extent[i])
            st = tenrec_fail(err, TENREC_EINVAL,
                             "dimension %u: %lld elements from %lld on, but the shape has %lld", i,
                             (long long)p->extent[i], (long long)p->at[i], (long long)p->shape[i]);
    p->bytes = st == TENREC_OK ? d.bytes : 0;
    return st;
}

/* ---- of the program ----------------------------------------------------------------- */

static tenrec_status piece_check_box(const struct tenrec_weights_box *b, uint32_t size,
                                     enum piece_use use, tenrec_error *err)
{
    const size_t len = b->size == size && b->name ? strlen(b->name) : 0;

    if (b->size < sizeof *b || b->size != size)
        return tenrec_fail(err, TENREC_EINVAL, "size is %u, expected %zu (set it to sizeof)",
                           b->size, sizeof *b);
    if (len == 0 || len > PIECE_NAME_MAX)
        return tenrec_fail(err, TENREC_EINVAL, "a name has 1 to %d bytes, got %zu", PIECE_NAME_MAX,
                           len);
    if (!b->tensor)
        return tenrec_fail(err, TENREC_EINVAL, "no tensor is given");
    if (use != PIECE_COPIED)
        return region_check_tensor(b->tensor, use == PIECE_FILLED, err);
    if (tenrec_tensor_desc(b->tensor)->device.kind != TENREC_CPU)
        return region_check_tensor(b->tensor, false, err);
    return TENREC_OK;
}

tenrec_status piece_tensor_in_host(struct tenrec_tensor *t, struct tenrec_tensor **ret,
                                   tenrec_error *err)
{
    static const struct tenrec_device host = { TENREC_CPU, 0 };

    *ret = NULL;
    if (tenrec_tensor_desc(t)->device.kind != TENREC_CPU)
        return tenrec_tensor_to(t, host, ret, err);
    *ret = tenrec_tensor_share(t);
    return TENREC_OK;
}

static tenrec_status piece_of_box(const struct tenrec_weights_box *b, struct piece *ret,
                                  tenrec_error *err)
{
    const struct tenrec_tensor_desc *d = tenrec_tensor_desc(b->tensor);

    ret->name = b->name;
    ret->dtype = d->dtype;
    ret->ndim = d->ndim;
    for (uint32_t i = 0; i < d->ndim; i++) {
        ret->extent[i] = d->shape[i];
        ret->shape[i] = b->shape ? b->shape[i] : d->shape[i];
        ret->at[i] = b->at ? b->at[i] : 0;
    }
    return piece_check(ret, err);
}

tenrec_status pieces_of_boxes(const struct tenrec_weights_box *boxes, size_t n, enum piece_use use,
                              struct piece **ret, tenrec_error *err)
{
    struct piece *p;
    tenrec_status st = TENREC_OK;

    *ret = NULL;
    if (!boxes || n == 0)
        return tenrec_fail(err, TENREC_EINVAL, "no boxes are given");
    p = memory_new(n, sizeof *p);
    if (!p)
        return memory_fail(err);
    for (size_t i = 0; i < n && st == TENREC_OK; i++) {
        const struct tenrec_weights_box *b = piece_box_at(boxes, i);
        st = piece_check_box(b, boxes->size, use, err);
        if (st == TENREC_OK)
            st = piece_of_box(b, &p[i], err);
        if (st != TENREC_OK)
            piece_box_prefix(boxes, i, err);
    }
    if (st == TENREC_OK)
        *ret = p;
    else
        free(p);
    return st;
}

uint64_t pieces_digest(const struct piece *p, size_t n)
{
    uint64_t sum = n;

    for (size_t i = 0; i < n; i++) {
        const size_t dims = p[i].ndim * sizeof *p[i].shape;
        sum = piece_hash(p[i].name, strlen(p[i].name) + 1, sum);
        sum = piece_hash(&p[i].dtype, sizeof p[i].dtype, sum);
        sum = piece_hash(p[i].shape, dims, sum);
        sum = piece_hash(p[i].at, dims, sum);
        sum = piece_hash(p[i].extent, dims, sum);
    }
    return sum;
}

/* ---- as they travel ----------------------------------------------------------------- */

/* Before the three lists of `ndim` numbers: shape, at, extent. */
struct piece_head {
    struct tenrec_dtype dtype;
    uint32_t ndim;
    uint64_t checksum;
    struct tenrec_region_ref ref;
};

static size_t piece_packed_bytes(uint32_t ndim)
{
    return sizeof(struct piece_head) + 3 * (size_t)ndim * sizeof(int64_t);
}

static void piece_pack(const struct piece *p, char *to)
{
    const struct piece_head head = { p->dtype, p->ndim, p->checksum, p->ref };
    const size_t dims = p->ndim * sizeof(int64_t);

    memcpy(to, &head, sizeof head);
    memcpy(to + sizeof head, p->shape, dims);
    memcpy(to + sizeof head + dims, p->at, dims);
    memcpy(to + sizeof head + 2 * dims, p->extent, dims);
}

struct tenrec_value *pieces_pack(const struct piece *p, size_t n)
{
    size_t bytes = 0;
    struct tenrec_value *v;
    char *at;

    for (size_t i = 0; i < n; i++)
        bytes += piece_packed_bytes(p[i].ndim);
    v = memory_new(1, (1 + 2 * n) * sizeof *v + bytes);
    if (!v)
        return NULL;
    at = (char *)(v + 1 + 2 * n);
    *v = tenrec_value_array(v + 1, 2 * n);
    for (size_t i = 0; i < n; i++) {
        piece_pack(&p[i], at);
        v[1 + 2 * i] = tenrec_value_text(p[i].name);
        v[2 + 2 * i] = tenrec_value_bytes(at, piece_packed_bytes(p[i].ndim));
        at += piece_packed_bytes(p[i].ndim);
    }
    return v;
}

static tenrec_status piece_unpack(const struct tenrec_value *name, const struct tenrec_value *v,
                                  struct piece *ret, tenrec_error *err)
{
    struct piece_head head;
    const char *from;
    size_t dims;

    if (name->type != TENREC_VALUE_TEXT || v->type != TENREC_VALUE_BYTES || v->n < sizeof head)
        return tenrec_fail(err, TENREC_EPROTOCOL, "expected a name and bytes");
    memcpy(&head, v->u.bytes, sizeof head);
    if (head.ndim > TENREC_MAX_DIMS || v->n != piece_packed_bytes(head.ndim))
        return tenrec_fail(err, TENREC_EPROTOCOL, "%llu bytes with %u dimensions",
                           (unsigned long long)v->n, head.ndim);
    from = (const char *)v->u.bytes + sizeof head;
    dims = head.ndim * sizeof(int64_t);
    *ret = (struct piece){ .name = name->u.text,
                           .dtype = head.dtype,
                           .ndim = head.ndim,
                           .checksum = head.checksum,
                           .ref = head.ref };
    memcpy(ret->shape, from, dims);
    memcpy(ret->at, from + dims, dims);
    memcpy(ret->extent, from + 2 * dims, dims);
    if (piece_check(ret, err) != TENREC_OK)
        return err->code = TENREC_EPROTOCOL;
    return TENREC_OK;
}

tenrec_status pieces_unpack(const struct tenrec_value *v, struct piece **ret, size_t *ret_n,
                            tenrec_error *err)
{
    const size_t n = v->type == TENREC_VALUE_ARRAY ? v->n / 2 : 0;
    tenrec_status st = TENREC_OK;
    struct piece *p;

    *ret = NULL;
    *ret_n = 0;
    if (v->type != TENREC_VALUE_ARRAY || v->n % 2)
        return tenrec_fail(err, TENREC_EPROTOCOL, "malformed pieces: expected pairs");
    p = memory_new(n ? n : 1, sizeof *p);
    if (!p)
        return memory_fail(err);
    for (size_t i = 0; i < n && st == TENREC_OK; i++) {
        st = piece_unpack(&v->u.array[2 * i], &v->u.array[2 * i + 1], &p[i], err);
        if (st != TENREC_OK)
            tenrec_error_prefix(err, "malformed piece %zu", i);
    }
    if (st != TENREC_OK) {
        free(p);
        return st;
    }
    *ret = p;
    *ret_n = n;
    return TENREC_OK;
}
