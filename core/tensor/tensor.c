/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.c - a tensor is a counted descriptor. The storage follows in the same block; a large
 * storage is from the pool; a foreign storage is released through free_fn. */
#include "core/tensor/tensor.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/fail.h"
#include "core/base/forks.h"
#include "core/base/memory.h"
#include "core/tensor/device.h"
#include "core/tensor/shared_memory.h"
#include "core/tensor/sharing.h"
#include "core/tensor/storage_pool.h"

#define ALIGNMENT 64

/* A smaller storage is sent whole even when the view is a part of it. */
#define WHOLE_BELOW 8192

struct tenrec_tensor {
    atomic_size_t count;
    tenrec_tensor_free_fn *free_fn;
    void *arg;
    uint64_t bytes; /* of the elements side by side */
    struct tenrec_tensor_desc desc;
};

bool tensor_is_contiguous(const struct tenrec_tensor_desc *d)
{
    int64_t step = 1;

    for (uint32_t i = d->ndim; i-- > 0;) {
        if (d->shape[i] == 0)
            return true;
        if (d->shape[i] != 1 && d->strides[i] != step)
            return false;
        step *= d->shape[i]; /* the elements were counted: no overflow */
    }
    return true;
}

void tensor_set_row_major(struct tenrec_tensor_desc *d)
{
    uint64_t step = 1;

    for (uint32_t i = d->ndim; i-- > 0;) {
        d->strides[i] = (int64_t)step;
        if (d->shape[i] > 1 && __builtin_mul_overflow(step, (uint64_t)d->shape[i], &step))
            step = 0; /* the shape has a 0 further out: the strides are unused */
    }
}

/* Counts the bytes of the elements of the shape, side by side. */
static tenrec_status tensor_measure(const struct tenrec_tensor_desc *d, uint64_t *ret,
                                    tenrec_error *err)
{
    const uint32_t item = dtype_bytes(d->dtype);
    uint64_t n = 1;
    bool empty = false;

    if (item == 0)
        return tenrec_fail(
            err, TENREC_EINVAL,
            "no such element type: code %u, %u bits, %u lanes (whole bytes expected)",
            d->dtype.code, d->dtype.bits, d->dtype.lanes);
    if (d->ndim > TENREC_MAX_DIMS)
        return tenrec_fail(err, TENREC_EINVAL, "tensor has %u dimensions, at most %d are possible",
                           d->ndim, TENREC_MAX_DIMS);
    for (uint32_t i = 0; i < d->ndim; i++) {
        if (d->shape[i] < 0)
            return tenrec_fail(err, TENREC_EINVAL, "length %lld of dimension %u is negative",
                               (long long)d->shape[i], i);
        empty |= d->shape[i] == 0;
    }
    for (uint32_t i = 0; i < d->ndim && !empty; i++) {
        if (__builtin_mul_overflow(n, (uint64_t)d->shape[i], &n) || n > INT64_MAX / item)
            return tenrec_fail(err, TENREC_ETOOBIG,
                               "tensor is too large: its dimensions overflow at %u", i);
    }
    *ret = empty ? 0 : n * item;
    return TENREC_OK;
}

/* Checks that shape and strides stay within the storage. */
static tenrec_status check_reach(const struct tenrec_tensor_desc *d, tenrec_error *err)
{
    uint64_t last = 0, step, end;

    for (uint32_t i = 0; i < d->ndim; i++) {
        if (__builtin_mul_overflow((uint64_t)d->shape[i] - 1, (uint64_t)d->strides[i], &step) ||
            __builtin_add_overflow(last, step, &last))
            return tenrec_fail(err, TENREC_EINVAL, "stride %lld of dimension %u is too large",
                               (long long)d->strides[i], i);
    }
    if (__builtin_add_overflow(last, 1, &end) ||
        __builtin_mul_overflow(end, dtype_bytes(d->dtype), &end) ||
        __builtin_add_overflow(end, d->byte_offset, &end) || end > d->bytes)
        return tenrec_fail(err, TENREC_EINVAL,
                           "tensor reaches beyond its storage of %llu bytes (element %llu, offset "
                           "%llu bytes)",
                           (unsigned long long)d->bytes, (unsigned long long)last,
                           (unsigned long long)d->byte_offset);
    return TENREC_OK;
}

tenrec_status tensor_check_desc(const struct tenrec_tensor_desc *d, uint64_t *ret_bytes,
                                tenrec_error *err)
{
    tenrec_status status = tensor_measure(d, ret_bytes, err);

    if (status)
        return status;
    for (uint32_t i = 0; i < d->ndim; i++)
        if (d->strides[i] < 0)
            return tenrec_fail(err, TENREC_EINVAL, "stride %lld of dimension %u is negative",
                               (long long)d->strides[i], i);
    if (*ret_bytes)
        return check_reach(d, err);
    if (d->byte_offset > d->bytes)
        return tenrec_fail(err, TENREC_EINVAL, "offset %llu is beyond the storage of %llu bytes",
                           (unsigned long long)d->byte_offset, (unsigned long long)d->bytes);
    return TENREC_OK;
}

/* Where the storage of a tensor in one block begins. */
#define HEAD ((sizeof(struct tenrec_tensor) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT)

static void tensor_free_pooled(void *class, void *data)
{
    storage_pool_give(storage_pool_of_process(), data, (unsigned)(uintptr_t) class);
}

/* Makes a tensor whose storage is a block of the pool. */
static struct tenrec_tensor *pooled_new(uint64_t bytes)
{
    struct tenrec_tensor *t = memory_new(1, sizeof *t);
    unsigned class = 0;

    if (!t)
        return NULL;
    t->desc.data = storage_pool_take(storage_pool_of_process(), (size_t)bytes, &class);
    if (!t->desc.data) {
        free(t);
        return NULL;
    }
    t->free_fn = tensor_free_pooled;
    t->arg = (void *)(uintptr_t) class;
    return t;
}

/* Makes a tensor with `bytes` bytes at desc.data; the other fields are not set. */
static tenrec_status block_new(uint64_t bytes, struct tenrec_tensor **ret, tenrec_error *err)
{
    struct tenrec_tensor *t = NULL;

    if (bytes >= STORAGE_POOL_MIN && bytes <= PTRDIFF_MAX) {
        t = pooled_new(bytes);
    } else if (bytes < STORAGE_POOL_MIN) {
        t = aligned_alloc(ALIGNMENT,
                          HEAD + ((size_t)bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
        if (t) {
            memset(t, 0, sizeof *t);
            t->desc.data = (char *)t + HEAD;
        }
    }
    if (!t)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a tensor of %llu bytes",
                           (unsigned long long)bytes);
    atomic_init(&t->count, 1);
    *ret = t;
    return TENREC_OK;
}

static void tensor_fill_desc(struct tenrec_tensor *t, const struct tenrec_tensor_desc *d,
                             void *data, uint64_t bytes)
{
    t->desc = *d;
    t->desc.data = data;
    t->desc.mapping = NULL; /* belongs to the message if `d` is a message's */
    t->bytes = bytes;
}

tenrec_status tensor_describe(struct tenrec_dtype dtype, uint32_t ndim, const int64_t *shape,
                              struct tenrec_tensor_desc *ret, tenrec_error *err)
{
    tenrec_status status;

    *ret = (struct tenrec_tensor_desc){
        .dtype = dtype, .ndim = ndim, .device = { TENREC_CPU, 0 }, .target = { TENREC_CPU, 0 }
    };
    if (ndim && ndim <= TENREC_MAX_DIMS)
        memcpy(ret->shape, shape, ndim * sizeof *shape);
    status = tensor_measure(ret, &ret->bytes, err);
    if (status == TENREC_OK)
        tensor_set_row_major(ret);
    return status;
}

void *tensor_free_arg(const struct tenrec_tensor *t, tenrec_tensor_free_fn *free_fn)
{
    return t->free_fn == free_fn ? t->arg : NULL;
}

tenrec_status tenrec_tensor_new(struct tenrec_dtype dtype, uint32_t ndim, const int64_t *shape,
                                struct tenrec_tensor **ret, tenrec_error *err)
{
    struct tenrec_tensor_desc d;
    struct tenrec_tensor *t = NULL;
    tenrec_status status = tensor_describe(dtype, ndim, shape, &d, err);

    *ret = NULL;
    if (!status)
        status = block_new(d.bytes, &t, err);
    if (status)
        return status;
    tensor_fill_desc(t, &d, t->desc.data, d.bytes);
    *ret = t;
    return TENREC_OK;
}

static void drop_block(void *block, void *data)
{
    (void)data;
    shared_block_drop(block);
}

/* Makes a tensor in a block of desc->bytes (> 0) bytes. */
static tenrec_status tensor_in_block(struct tenrec_tensor_desc *d, enum shared_way way,
                                     struct tenrec_tensor **ret, tenrec_error *err)
{
    struct shared_block *block;
    tenrec_status st = shared_block_new((size_t)d->bytes, way, &block, err);

    if (st != TENREC_OK)
        return st;
    d->data = shared_block_data(block);
    st = tensor_from_desc(d, drop_block, block, ret, err);
    if (st != TENREC_OK)
        shared_block_drop(block);
    return st;
}

static tenrec_status check_options(const struct tenrec_tensor_options *o, tenrec_error *err)
{
    const bool on_device = o->device.kind > TENREC_CPU;

    if (o->size < sizeof *o)
        return tenrec_fail(err, TENREC_EINVAL,
                           "tensor options: size is %u, expected %zu (set it to sizeof)", o->size,
                           sizeof *o);
    if (o->flags & ~(uint32_t)(TENREC_SHARED | TENREC_MOVES) || o->flags == TENREC_MOVES)
        return tenrec_fail(err, TENREC_EINVAL,
                           "tensor flags 0x%x: expected 0, TENREC_SHARED, or that and TENREC_MOVES",
                           o->flags);
    if (on_device && o->flags)
        return tenrec_fail(err, TENREC_EINVAL,
                           "tensor flags 0x%x: expected 0 for memory of a device", o->flags);
    return TENREC_OK;
}

tenrec_status tenrec_tensor_new_with(struct tenrec_dtype dtype, uint32_t ndim, const int64_t *shape,
                                     const struct tenrec_tensor_options *options,
                                     struct tenrec_tensor **ret, tenrec_error *err)
{
    struct tenrec_tensor_desc d;
    tenrec_status st;

    *ret = NULL;
    if (!options)
        return tenrec_tensor_new(dtype, ndim, shape, ret, err);
    st = check_options(options, err);
    if (st == TENREC_OK)
        st = tensor_describe(dtype, ndim, shape, &d, err);
    if (st != TENREC_OK)
        return st;
    if (options->device.kind > TENREC_CPU)
        return device_tensor_new(&d, options->device, ret, err);
    if (!options->flags || d.bytes == 0)
        return tenrec_tensor_new(dtype, ndim, shape, ret, err);
    sharing_collect(clock_now_ns());
    return tensor_in_block(&d, options->flags & TENREC_MOVES ? SHARED_MOVED : SHARED_LENT, ret,
                           err);
}

tenrec_status tensor_new_private(const struct tenrec_tensor_desc *desc, struct tenrec_tensor **ret,
                                 tenrec_error *err)
{
    struct tenrec_tensor_desc d = *desc;

    return tensor_in_block(&d, SHARED_PRIVATE, ret, err);
}

tenrec_status tensor_from_desc(const struct tenrec_tensor_desc *desc,
                               tenrec_tensor_free_fn *free_fn, void *arg,
                               struct tenrec_tensor **ret, tenrec_error *err)
{
    struct tenrec_tensor *t = NULL;
    uint64_t bytes;
    tenrec_status status = tensor_check_desc(desc, &bytes, err);

    if (status)
        return status;
    if (!desc->data && desc->bytes)
        return tenrec_fail(err, TENREC_EINVAL, "no data given for a storage of %llu bytes",
                           (unsigned long long)desc->bytes);
    t = memory_new(1, sizeof *t);
    if (!t)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a tensor");
    atomic_init(&t->count, 1);
    t->free_fn = free_fn;
    t->arg = arg;
    tensor_fill_desc(t, desc, desc->data, bytes);
    *ret = t;
    return TENREC_OK;
}

tenrec_status tensor_for_desc(const struct tenrec_tensor_desc *desc, struct tenrec_tensor **ret,
                              tenrec_error *err)
{
    struct tenrec_tensor *t = NULL;
    uint64_t bytes;
    tenrec_status status = tensor_check_desc(desc, &bytes, err);

    if (!status)
        status = block_new(desc->bytes, &t, err);
    if (status)
        return status;
    tensor_fill_desc(t, desc, t->desc.data, bytes);
    t->desc.device = (struct tenrec_device){ TENREC_CPU, 0 };
    *ret = t;
    return TENREC_OK;
}

struct tenrec_tensor *tenrec_tensor_share(struct tenrec_tensor *t)
{
    /* Relaxed: the caller holds a reference already. */
    atomic_fetch_add_explicit(&t->count, 1, memory_order_relaxed);
    return t;
}

void tenrec_tensor_drop(struct tenrec_tensor *t)
{
    /* The last holder must see all changes of the elements by other holders. */
    if (!t || atomic_fetch_sub_explicit(&t->count, 1, memory_order_acq_rel) != 1)
        return;
    if (t->free_fn) {
        const uint32_t forks = forks_seen;

        t->free_fn(t->arg, t->desc.data);
        forks_check(forks, "the free function of a tensor");
    }
    free(t);
}

const struct tenrec_tensor_desc *tenrec_tensor_desc(const struct tenrec_tensor *t)
{
    return &t->desc;
}

void *tenrec_tensor_data(const struct tenrec_tensor *t)
{
    return t->desc.data ? (char *)t->desc.data + t->desc.byte_offset : NULL;
}

/* Copies the elements of dimension `dim` and those inside it one after the
 * other; returns the place of the next element. */
static char *tensor_gather(char *to, const char *from, const struct tenrec_tensor_desc *d,
                           uint32_t dim, size_t item)
{
    const size_t step = (size_t)d->strides[dim] * item;

    if (dim + 1 < d->ndim) {
        for (int64_t i = 0; i < d->shape[dim]; i++, from += step)
            to = tensor_gather(to, from, d, dim + 1, item);
        return to;
    }
    if (step == item) {
        memcpy(to, from, (size_t)d->shape[dim] * item);
        return to + (size_t)d->shape[dim] * item;
    }
    for (int64_t i = 0; i < d->shape[dim]; i++, from += step, to += item)
        memcpy(to, from, item);
    return to;
}

tenrec_status tenrec_tensor_copy(const struct tenrec_tensor *t, struct tenrec_tensor **ret,
                                 tenrec_error *err)
{
    const struct tenrec_tensor_desc *d = &t->desc;
    struct tenrec_tensor *copy;
    tenrec_status status;

    *ret = NULL;
    if (d->device.kind != TENREC_CPU)
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "the tensor is in memory of a device: tenrec_tensor_to copies it");
    status = tenrec_tensor_new(d->dtype, d->ndim, d->shape, &copy, err);
    if (status)
        return status;
    copy->desc.target = d->target;
    copy->desc.flags = d->flags & ~TENREC_TENSOR_READ_ONLY;
    if (t->bytes == 0)
        ; /* nothing to copy */
    else if (tensor_is_contiguous(d))
        memcpy(copy->desc.data, tenrec_tensor_data(t), (size_t)t->bytes);
    else
        tensor_gather(copy->desc.data, tenrec_tensor_data(t), d, 0, dtype_bytes(d->dtype));
    *ret = copy;
    return TENREC_OK;
}

tenrec_status tenrec_tensor_contiguous(struct tenrec_tensor *t, struct tenrec_tensor **ret,
                                       tenrec_error *err)
{
    *ret = NULL;
    if (!tensor_is_contiguous(&t->desc) || t->bytes != t->desc.bytes)
        return tenrec_tensor_copy(t, ret, err);
    *ret = tenrec_tensor_share(t);
    return TENREC_OK;
}

tenrec_status tensor_to_send(struct tenrec_tensor *t, struct tenrec_tensor **ret, tenrec_error *err)
{
    const struct tenrec_tensor_desc *d = &t->desc;
    const uint32_t item = dtype_bytes(d->dtype);
    /* The wire counts storage and offset in elements. */
    const bool whole = d->bytes % item == 0 && d->byte_offset % item == 0;
    const bool small_part = d->bytes >= WHOLE_BELOW && t->bytes <= d->bytes / 2;

    if (unlikely(d->device.kind != TENREC_CPU))
        return device_tensor_to_send(t, ret, err);
    if (!tensor_is_contiguous(d) || !whole || small_part)
        return tenrec_tensor_copy(t, ret, err);
    *ret = tenrec_tensor_share(t);
    return TENREC_OK;
}
