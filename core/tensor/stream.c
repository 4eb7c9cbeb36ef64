/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tensor/device.h"

#include <stdlib.h>

#include "core/base/memory.h"
#include "core/base/threads.h"

_Atomic(const struct tenrec_device_ops *) stream_ops_of_process;
_Thread_local struct streams *thread_streams;

tenrec_status stream_ops_set(const struct tenrec_device_ops *ops, tenrec_error *err)
{
    const struct tenrec_device_ops *none = NULL;

    if (!TENREC_HAS(ops, stream_get) || !TENREC_HAS(ops, stream_order) ||
        !TENREC_HAS(ops, stream_wait) || !TENREC_HAS(ops, memory_new) ||
        !TENREC_HAS(ops, memory_drop) || !TENREC_HAS(ops, copy))
        return tenrec_fail(err, TENREC_EPLUGIN, "the device ops of the backend lack a function");
    atomic_compare_exchange_strong(&stream_ops_of_process, &none, ops);
    return TENREC_OK;
}

tenrec_status stream_ops_for(struct tenrec_device device, const struct tenrec_device_ops **ret,
                             tenrec_error *err)
{
    char text[DEVICE_TEXT_MAX];

    *ret = stream_ops();
    if (*ret && (*ret)->kind == device.kind)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EUNSUPPORTED,
                       device.kind == TENREC_CPU
                           ? "%s has no streams"
                           : "no backend of this process has %s: the group of a worker must use "
                             "devices, after tenrec_init_rpc",
                       device_text(device, text));
}

/* ---- sets ------------------------------------------------------------------------ */

struct streams *streams_new(bool fresh)
{
    struct streams *s = malloc(sizeof *s);

    if (!s)
        return NULL;
    atomic_init(&s->refs, 1);
    s->lock = (struct spinlock){ false };
    s->n = 0;
    s->fresh = fresh;
    return s;
}

struct streams *streams_share(struct streams *s)
{
    if (s)
        atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void streams_drop(struct streams *s)
{
    if (s && atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1)
        free(s);
}

/* The caller holds the lock. Returns NULL without a stream for the device. */
static struct tenrec_stream *stream_find(struct streams *s, struct tenrec_device device)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (device_equal(s->stream[i].device, device))
            return &s->stream[i];
    return NULL;
}

bool streams_has(struct streams *s, struct tenrec_device device, struct tenrec_stream *ret)
{
    const struct tenrec_stream *found;

    if (!s)
        return false;
    spinlock_lock(&s->lock);
    found = stream_find(s, device);
    if (found)
        *ret = *found;
    spinlock_unlock(&s->lock);
    return found != NULL;
}

/* With `replace` sets the stream of its device, else keeps the stream that another thread may have
 * added before: *stream is the stream of the set then. */
static tenrec_status stream_add(struct streams *s, struct tenrec_stream *stream, bool replace,
                                tenrec_error *err)
{
    struct tenrec_stream *at;

    spinlock_lock(&s->lock);
    at = stream_find(s, stream->device);
    if (at && !replace)
        *stream = *at;
    else if (!at && s->n < STREAMS_MAX)
        at = &s->stream[s->n++];
    if (at)
        *at = *stream;
    spinlock_unlock(&s->lock);
    return at ? TENREC_OK
              : tenrec_fail(err, TENREC_ETOOBIG, "streams of more than %d devices", STREAMS_MAX);
}

tenrec_status streams_put(struct streams *s, const struct tenrec_stream *stream, tenrec_error *err)
{
    struct tenrec_stream copy = *stream;

    return stream_add(s, &copy, true, err);
}

tenrec_status streams_get(struct streams *s, struct tenrec_device device, struct tenrec_stream *ret,
                          tenrec_error *err)
{
    tenrec_status st;

    if (streams_has(s, device, ret))
        return TENREC_OK;
    *ret = (struct tenrec_stream){ .device = device };
    if (!s || !s->fresh)
        return TENREC_OK;
    st = tenrec_stream_get(device, ret, err);
    return st == TENREC_OK ? stream_add(s, ret, false, err) : st;
}

/* ---- order -------------------------------------------------------------------------- */

tenrec_status tenrec_stream_get(struct tenrec_device device, struct tenrec_stream *ret,
                                tenrec_error *err)
{
    const struct tenrec_device_ops *ops;
    tenrec_status st = stream_ops_for(device, &ops, err);

    *ret = (struct tenrec_stream){ 0 };
    if (st != TENREC_OK)
        return st;
    st = ops->stream_get(device.index, &ret->stream, err);
    if (st == TENREC_OK)
        ret->device = device;
    else
        ret->stream = 0;
    return st;
}

tenrec_status tenrec_stream_order(const struct tenrec_stream *first,
                                  const struct tenrec_stream *then, tenrec_error *err)
{
    const struct tenrec_device_ops *ops;
    tenrec_status st;

    if (stream_equal(first, then))
        return TENREC_OK;
    st = stream_ops_for(first->device, &ops, err);
    if (st == TENREC_OK)
        st = stream_ops_for(then->device, &ops, err);
    return st == TENREC_OK ? ops->stream_order(first, then, err) : st;
}

tenrec_status stream_after(const struct tenrec_stream *first, struct tenrec_stream *ret,
                           tenrec_error *err)
{
    tenrec_status st = tenrec_stream_get(first->device, ret, err);

    return st == TENREC_OK ? tenrec_stream_order(first, ret, err) : st;
}

tenrec_status tenrec_stream_wait(const struct tenrec_stream *s, tenrec_error *err)
{
    const struct tenrec_device_ops *ops;
    tenrec_status st = stream_ops_for(s->device, &ops, err);

    return st == TENREC_OK ? ops->stream_wait(s, err) : st;
}

tenrec_status streams_order(struct streams *first, struct streams *then, tenrec_error *err)
{
    struct tenrec_stream list[STREAMS_MAX], to;
    tenrec_status st = TENREC_OK;
    uint32_t n = 0;

    if (!first)
        return TENREC_OK;
    spinlock_lock(&first->lock);
    for (; n < first->n; n++)
        list[n] = first->stream[n];
    spinlock_unlock(&first->lock);
    for (uint32_t i = 0; i < n && st == TENREC_OK; i++) {
        st = streams_get(then ? then : thread_streams, list[i].device, &to, err);
        if (st == TENREC_OK)
            st = tenrec_stream_order(&list[i], &to, err);
    }
    return st;
}

/* ---- of this thread ------------------------------------------------------------------- */

/* Made by tenrec_stream_set_current; NULL: it was not called. */
static _Thread_local struct streams *own;
static _Thread_local struct thread_end own_end;

static void own_drop(void)
{
    streams_drop(own);
    if (thread_streams == own)
        thread_streams = NULL;
    own = NULL;
}

uint64_t tenrec_stream_get_current(struct tenrec_device device)
{
    struct tenrec_stream s = { .device = device };

    if (device.kind == TENREC_CPU || streams_get(thread_streams, device, &s, NULL))
        return 0;
    return s.stream;
}

tenrec_status tenrec_stream_set_current(const struct tenrec_stream *s, tenrec_error *err)
{
    if (s->device.kind == TENREC_CPU)
        return tenrec_fail(err, TENREC_EINVAL, "the host has no streams");
    if (!thread_streams) {
        if (!thread_end_follow(&own_end, own_drop) || !(own = streams_new(false)))
            return tenrec_fail(err, TENREC_ENOMEM, "no memory for this thread's streams");
        thread_streams = own;
    }
    return streams_put(thread_streams, s, err);
}
