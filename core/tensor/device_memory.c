/* SPDX-License-Identifier: Apache-2.0 */
/* device_memory.c - each block is allocated and dropped on a stream of the pool. Other streams that
 * use the block are recorded, so that the drop waits for them, too, on the device. */
#include "core/tensor/device.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/threads.h"
#include "core/tensor/tensor.h"

enum { FEW_USERS = 6 };

struct block {
    const struct tenrec_device_ops *ops;
    struct tenrec_stream stream;
    struct spinlock lock; /* guards the fields below */
    uint32_t n_users;
    struct tenrec_stream user[FEW_USERS];
};

static void block_drop(void *arg, void *data)
{
    struct block *b = arg;

    for (uint32_t i = 0; i < b->n_users; i++)
        tenrec_stream_order(&b->user[i], &b->stream, NULL);
    if (data)
        b->ops->memory_drop(&b->stream, data);
    free(b);
}

static void block_used(struct block *b, const struct tenrec_stream *s)
{
    struct tenrec_stream last;
    bool full, known;

    spinlock_lock(&b->lock);
    known = stream_equal(s, &b->stream);
    for (uint32_t i = 0; i < b->n_users; i++)
        known |= stream_equal(s, &b->user[i]);
    full = !known && b->n_users == FEW_USERS;
    if (full)
        last = b->user[FEW_USERS - 1];
    else if (!known)
        b->user[b->n_users++] = *s;
    if (full)
        b->user[FEW_USERS - 1] = *s;
    spinlock_unlock(&b->lock);
    /* The new user's stream waits for the stream that it replaced. */
    if (full)
        tenrec_stream_order(&last, s, NULL);
}

static tenrec_status block_new(const struct tenrec_stream *s, uint64_t bytes, struct block **ret,
                               void **ret_data, tenrec_error *err)
{
    const struct tenrec_device_ops *ops;
    struct block *b = memory_new(1, sizeof *b);
    tenrec_status st = stream_ops_for(s->device, &ops, err);

    if (st == TENREC_OK && !b)
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for a tensor");
    *ret_data = NULL;
    if (st == TENREC_OK && bytes > 0)
        st = ops->memory_new(s, bytes, ret_data, err);
    if (st != TENREC_OK) {
        free(b);
        return st;
    }
    b->ops = ops;
    b->stream = *s;
    *ret = b;
    return TENREC_OK;
}

tenrec_status device_tensor_for_desc(const struct tenrec_tensor_desc *desc,
                                     const struct tenrec_stream *s, struct tenrec_tensor **ret,
                                     tenrec_error *err)
{
    struct tenrec_tensor_desc d = *desc;
    struct block *b;
    uint64_t bytes;
    tenrec_status st = tensor_check_desc(desc, &bytes, err);

    if (st == TENREC_OK)
        st = block_new(s, d.bytes, &b, &d.data, err);
    if (st != TENREC_OK)
        return st;
    d.device = s->device;
    d.stream = s->stream;
    st = tensor_from_desc(&d, block_drop, b, ret, err);
    if (st != TENREC_OK)
        block_drop(b, d.data);
    return st;
}

tenrec_status device_tensor_new(const struct tenrec_tensor_desc *desc, struct tenrec_device device,
                                struct tenrec_tensor **ret, tenrec_error *err)
{
    struct tenrec_stream now = { .device = device }, s;
    tenrec_status st = tenrec_stream_get(device, &s, err);

    if (st == TENREC_OK)
        st = device_tensor_for_desc(desc, &s, ret, err);
    if (st != TENREC_OK)
        return st;
    now.stream = tenrec_stream_get_current(device);
    st = tenrec_stream_order(&s, &now, err);
    if (st == TENREC_OK) {
        tenrec_tensor_record_stream(*ret, &now);
    } else {
        tenrec_tensor_drop(*ret);
        *ret = NULL;
    }
    return st;
}

tenrec_status tenrec_tensor_from_desc(const struct tenrec_tensor_desc *desc,
                                      tenrec_tensor_free_fn *free_fn, void *arg,
                                      struct tenrec_tensor **ret, tenrec_error *err)
{
    struct tenrec_tensor_desc d = *desc;

    *ret = NULL;
    d.target = d.source = (struct tenrec_device){ 0 };
    if (d.device.kind <= TENREC_CPU) {
        d.device = d.target = (struct tenrec_device){ TENREC_CPU, 0 };
        d.stream = 0;
    }
    if (d.flags & TENREC_TENSOR_ROW_MAJOR && d.ndim <= TENREC_MAX_DIMS)
        tensor_set_row_major(&d);
    d.flags &= ~TENREC_TENSOR_ROW_MAJOR;
    return tensor_from_desc(&d, free_fn, arg, ret, err);
}

static void share_drop(void *arg, void *data)
{
    (void)data;
    tenrec_tensor_drop(arg);
}

void tenrec_tensor_record_stream(struct tenrec_tensor *t, const struct tenrec_stream *s)
{
    struct tenrec_tensor *of;
    struct block *b;

    while ((of = tensor_free_arg(t, share_drop))) /* a view */
        t = of;
    b = tensor_free_arg(t, block_drop);
    if (b)
        block_used(b, s);
}

tenrec_status device_tensor_order(const struct tenrec_tensor *t, const struct tenrec_stream *to,
                                  tenrec_error *err)
{
    const struct tenrec_tensor_desc *d = tenrec_tensor_desc(t);
    const struct tenrec_stream own = { d->device, d->stream };

    /* A tensor without a stream was made on its maker's current one, which the caller orders where
     * it is known. */
    if (d->device.kind == TENREC_CPU || d->stream == 0)
        return TENREC_OK;
    return tenrec_stream_order(&own, to, err);
}

tenrec_status tenrec_tensor_wait(struct tenrec_tensor *t, tenrec_error *err)
{
    const struct tenrec_tensor_desc *d = tenrec_tensor_desc(t);
    const struct tenrec_stream now = { d->device, tenrec_stream_get_current(d->device) };
    tenrec_status st = device_tensor_order(t, &now, err);

    if (st == TENREC_OK && d->device.kind != TENREC_CPU)
        tenrec_tensor_record_stream(t, &now);
    return st;
}

/* ---- views ------------------------------------------------------------------------ */

static tenrec_status device_memory_view(struct tenrec_tensor *t, const struct tenrec_tensor_desc *d,
                                        struct tenrec_tensor **ret, tenrec_error *err)
{
    tenrec_status st = tensor_from_desc(d, share_drop, t, ret, err);

    if (st == TENREC_OK)
        tenrec_tensor_share(t);
    return st;
}

tenrec_status device_tensor_to_send(struct tenrec_tensor *t, struct tenrec_tensor **ret,
                                    tenrec_error *err)
{
    struct tenrec_tensor_desc d = *tenrec_tensor_desc(t);

    if (!tensor_is_contiguous(&d) || (d.byte_offset == 0 && d.bytes == tenrec_tensor_bytes(t))) {
        *ret = tenrec_tensor_share(t);
        return TENREC_OK;
    }
    d.data = tenrec_tensor_data(t);
    d.bytes = tenrec_tensor_bytes(t);
    d.byte_offset = 0;
    return device_memory_view(t, &d, ret, err);
}

tenrec_status device_tensor_on(struct tenrec_tensor *t, const struct tenrec_stream *s,
                               struct tenrec_tensor **ret, tenrec_error *err)
{
    struct tenrec_tensor_desc d = *tenrec_tensor_desc(t);

    d.stream = s->stream;
    return device_memory_view(t, &d, ret, err);
}

/* ---- copies ------------------------------------------------------------------------- */

static tenrec_status device_memory_copy(struct tenrec_tensor *from, struct tenrec_tensor *to,
                                        const struct tenrec_stream *s, tenrec_error *err)
{
    const struct tenrec_device_ops *ops;
    tenrec_status st = stream_ops_for(s->device, &ops, err);

    if (st != TENREC_OK || tenrec_tensor_bytes(from) == 0)
        return st;
    return ops->copy(s, tenrec_tensor_data(to), tenrec_tensor_data(from), tenrec_tensor_bytes(from),
                     err);
}

tenrec_status device_tensor_copy(struct tenrec_tensor *from, struct tenrec_tensor *to,
                                 struct streams *ready, tenrec_error *err)
{
    const struct tenrec_tensor_desc *d = tenrec_tensor_desc(to);
    const struct tenrec_stream s = { d->device, d->stream };
    struct tenrec_stream other;
    tenrec_status st = device_tensor_order(from, &s, err);

    if (st == TENREC_OK && streams_has(ready, tenrec_tensor_desc(from)->device, &other))
        st = tenrec_stream_order(&other, &s, err);
    if (st == TENREC_OK)
        st = device_memory_copy(from, to, &s, err);
    if (st == TENREC_OK) {
        tenrec_tensor_record_stream(from, &s);
        if (streams_has(ready, d->device, &other)) /* `ready` includes the copy */
            st = tenrec_stream_order(&s, &other, err);
    }
    return st;
}

/* Queues the copy on the current stream of one device. With another device at the other end, that
 * device's current stream is ordered before and after the copy. */
static tenrec_status copy_ordered(struct tenrec_tensor *from, struct tenrec_tensor *to,
                                  tenrec_error *err)
{
    const struct tenrec_device a = tenrec_tensor_desc(from)->device;
    const struct tenrec_device b = tenrec_tensor_desc(to)->device;
    const struct tenrec_stream at_from = { a, tenrec_stream_get_current(a) };
    const struct tenrec_stream at_to = { b, tenrec_stream_get_current(b) };
    tenrec_status st = TENREC_OK;

    if (b.kind == TENREC_CPU) {
        const struct tenrec_device_ops *ops;

        st = device_memory_copy(from, to, &at_from, err);
        if (st == TENREC_OK)
            st = stream_ops_for(a, &ops, err);
        return st == TENREC_OK ? ops->stream_wait(&at_from, err) : st;
    }
    if (a.kind != TENREC_CPU)
        st = tenrec_stream_order(&at_from, &at_to, err);
    if (st == TENREC_OK)
        st = device_memory_copy(from, to, &at_to, err);
    if (st == TENREC_OK && a.kind != TENREC_CPU)
        st = tenrec_stream_order(&at_to, &at_from, err);
    if (st != TENREC_OK || a.kind != TENREC_CPU)
        return st;
    return tenrec_stream_wait(&at_to, err); /* the caller may free the host's memory now */
}

tenrec_status tenrec_tensor_to(struct tenrec_tensor *t, struct tenrec_device device,
                               struct tenrec_tensor **ret, tenrec_error *err)
{
    const struct tenrec_tensor_desc *d = tenrec_tensor_desc(t);
    tenrec_status st;

    *ret = NULL;
    if (device.kind == TENREC_CPU && d->device.kind == TENREC_CPU)
        return tenrec_tensor_copy(t, ret, err);
    if (!tensor_is_contiguous(d))
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "only a contiguous tensor is copied from or to a device");
    st = tenrec_tensor_wait(t, err);
    if (st == TENREC_OK)
        st = tenrec_tensor_new_with(
            d->dtype, d->ndim, d->shape,
            &(struct tenrec_tensor_options){ .size = sizeof(struct tenrec_tensor_options),
                                             .device = device },
            ret, err);
    if (st != TENREC_OK)
        return st;
    st = copy_ordered(t, *ret, err);
    if (st != TENREC_OK) {
        tenrec_tensor_drop(*ret);
        *ret = NULL;
    }
    return st;
}
