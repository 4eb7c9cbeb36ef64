/* SPDX-License-Identifier: Apache-2.0 */

#include "core/base/forks.h"
#include "core/tensor/device.h"
#include "core/tensor/sharing.h"
#include "core/tensor/tensor.h"
#include "rpc/call/call.h"
#include "rpc/call/calls.h"
#include "rpc/call/service.h"

/* A message being received; its copies to a device are queued on a stream of the pool. */
struct arrival {
    struct tenrec_worker *w;
    struct streams *streams; /* a stream per device, made when needed */
};

bool recv_alloc_is_plain(const struct tenrec_tensor *t)
{
    const struct tenrec_tensor_desc *d = tenrec_tensor_desc(t);

    return d->byte_offset == 0 && d->bytes == tenrec_tensor_bytes(t) && tensor_is_contiguous(d);
}

/* Checks that the tensor fits the caller's buffer. */
static tenrec_status check_into(struct tenrec_tensor *into, const struct tenrec_tensor_desc *got,
                                tenrec_error *err)
{
    const struct tenrec_tensor_desc *want = tenrec_tensor_desc(into);
    char a[DEVICE_TEXT_MAX], b[DEVICE_TEXT_MAX];

    if (memcmp(&want->dtype, &got->dtype, sizeof want->dtype) != 0)
        return tenrec_fail(err, TENREC_EINVAL, "the result is %s, the buffer given for it is %s",
                           tenrec_dtype_name(got->dtype), tenrec_dtype_name(want->dtype));
    if (!device_equal(want->device, got->target))
        return tenrec_fail(err, TENREC_EINVAL,
                           "the result goes to %s, the buffer given for it is on %s",
                           device_text(got->target, a), device_text(want->device, b));
    if (want->ndim != got->ndim ||
        memcmp(want->shape, got->shape, got->ndim * sizeof got->shape[0]) != 0 ||
        got->bytes != want->bytes || got->byte_offset != 0 || !tensor_is_contiguous(got))
        return tenrec_fail(err, TENREC_EINVAL,
                           "the result has %u dimensions and %llu bytes, the buffer given for it "
                           "%u and %llu (same shape, contiguous)",
                           got->ndim, (unsigned long long)got->bytes, want->ndim,
                           (unsigned long long)want->bytes);
    return TENREC_OK;
}

static struct tenrec_allocator allocator_of(struct tenrec_worker *w)
{
    struct tenrec_allocator a;

    pthread_mutex_lock(&w->lock);
    a = w->calls->allocator;
    pthread_mutex_unlock(&w->lock);
    return a;
}

static void *allocator_ask(const struct tenrec_allocator *a, const struct tenrec_tensor_desc *d)
{
    const uint32_t forks = forks_seen;
    void *data = a->alloc(a->arg, d);

    forks_check(forks, "an allocator");
    return data;
}

/* For a tensor on a device: memory of the user's allocator, if it supports devices and has memory,
 * else of the backend. */
static tenrec_status find_device_memory(struct arrival *on, struct tenrec_tensor_desc *d,
                                        struct tenrec_tensor **ret, tenrec_error *err)
{
    const struct tenrec_allocator a = allocator_of(on->w);
    struct tenrec_stream s;
    tenrec_status st = devices_check_target(on->w, d->target, err);

    if (st == TENREC_OK && d->mapping)
        st = tenrec_fail(err, TENREC_EPROTOCOL, "a tensor for a device was sent as shared memory");
    if (st == TENREC_OK && !on->streams && !(on->streams = streams_new(true)))
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for the streams of a message");
    if (st == TENREC_OK)
        st = streams_get(on->streams, d->target, &s, err);
    if (st != TENREC_OK)
        return st;
    d->device = d->target;
    d->stream = s.stream;
    d->data = a.alloc && (a.flags & TENREC_ALLOCATOR_DEVICES) ? allocator_ask(&a, d) : NULL;
    if (!d->data)
        return device_tensor_for_desc(d, &s, ret, err);
    st = tensor_from_desc(d, a.free_fn, a.arg, ret, err);
    if (st != TENREC_OK && a.free_fn)
        a.free_fn(a.arg, d->data);
    return st;
}

/* Memory of the user's allocator, the mapping that the tensor is in, or our own memory. */
static tenrec_status find_memory(struct tenrec_worker *w, struct tenrec_tensor_desc *d,
                                 struct tenrec_tensor **ret, tenrec_error *err)
{
    const struct tenrec_allocator a = allocator_of(w);
    tenrec_status st;

    if (!a.alloc && d->mapping) {
        st = mapped_tensor_new(d->mapping, d, ret, err);
        if (st == TENREC_OK)
            d->mapping = NULL; /* the tensor has it */
        return st;
    }
    if (!a.alloc)
        return tensor_for_desc(d, ret, err);
    d->data = allocator_ask(&a, d);
    if (!d->data)
        return tenrec_fail(err, TENREC_ENOMEM, "the allocator has no memory for %llu bytes",
                           (unsigned long long)d->bytes);
    if (tensor_from_desc(d, a.free_fn, a.arg, ret, err) == TENREC_OK)
        return TENREC_OK;
    if (a.free_fn)
        a.free_fn(a.arg, d->data);
    return err->code;
}

/* Finds memory for tensor `i`. `into`: the buffer for it; NULL: none is given. */
static tenrec_status place_tensor(struct arrival *on, struct tenrec_msg *msg, uint32_t i,
                                  struct tenrec_tensor *into, tenrec_error *err)
{
    struct tenrec_tensor_desc *d = tenrec_msg_tensor(msg, i);
    const bool host = d->target.kind == TENREC_CPU || d->target.kind == 0;
    struct tenrec_tensor *t = NULL;
    tenrec_status st;

    d->device = (struct tenrec_device){ TENREC_CPU, 0 };
    d->stream = 0;
    if (host)
        d->target = d->device;
    d->flags &= ~(TENREC_TENSOR_READ_ONLY | TENREC_TENSOR_UNSHARED); /* as the sender had it */
    if (d->same_storage)
        return rpc_message_share_storage(msg, i, err);
    if (into) {
        st = check_into(into, d, err);
        if (st == TENREC_OK)
            t = tenrec_tensor_share(into);
    } else {
        st = host ? find_memory(on->w, d, &t, err) : find_device_memory(on, d, &t, err);
    }
    if (!t)
        return st;
    d->data = tenrec_tensor_desc(t)->data;
    d->device = tenrec_tensor_desc(t)->device;
    d->stream = tenrec_tensor_desc(t)->stream;
    mapping_copy(d);
    rpc_message_set_owner(msg, i, t);
    return st;
}

tenrec_status recv_alloc_tensors(void *worker, tenrec_peer from, struct tenrec_msg *msg,
                                 tenrec_error *err)
{
    struct tenrec_worker *w = worker;
    struct arrival on = { .w = w };
    struct dispatch_into into;
    tenrec_error why;
    tenrec_status st = dispatch_into(w, from, msg, &into, &why);

    if (st == TENREC_OK && into.n == 0 && (into.tensor[0] = call_into(w, from, msg)) != NULL)
        into.n = 1;
    for (uint32_t i = 0; i < msg->n_tensors && st == TENREC_OK; i++)
        st = place_tensor(&on, msg, i, i < into.n ? into.tensor[i] : NULL, &why);
    while (into.n > 0)
        tenrec_tensor_drop(into.tensor[--into.n]);
    streams_drop(on.streams);
    if (st != TENREC_OK) {
        tenrec_error_prefix(&why, "message from '%s'", peers_name(&w->peers, from));
        call_fail(w, from, msg, &why);
        if (err)
            *err = why;
    }
    return st;
}
