/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - streams of devices, the current ones of a thread, and tensors in memory of devices.
 *
 * The device ops of a backend belong to the process, not to a worker: tensors and futures
 * outlive workers. A process without such a backend pays nothing. */
#ifndef TENREC_TENSOR_STREAM_H
#define TENREC_TENSOR_STREAM_H

#include "core/base/threads.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <tenrec/agent.h>
#include <tenrec/device.h>

#define STREAMS_MAX 32

/* At most one stream for each device. Shared (counted). */
struct streams {
    atomic_uint refs;
    struct spinlock lock; /* guards the fields below */
    uint32_t n;
    bool fresh; /* a new device gets a stream of the pool, else the default stream */
    struct tenrec_stream stream[STREAMS_MAX];
};

extern _Atomic(const struct tenrec_device_ops *) stream_ops_of_process;

/* The current streams of the calling thread: its own, or those of the call that it serves; NULL:
 * the default streams. */
extern _Thread_local struct streams *thread_streams STATIC_TLS;

/* The device ops of the process; NULL without a backend with devices. */
static inline const struct tenrec_device_ops *stream_ops(void)
{
    return atomic_load_explicit(&stream_ops_of_process, memory_order_acquire);
}

/* Sets the device ops; the first call counts. errors: EPLUGIN (a function is missing) */
tenrec_status stream_ops_set(const struct tenrec_device_ops *ops, tenrec_error *err);

/* errors: EUNSUPPORTED, naming the device */
tenrec_status stream_ops_for(struct tenrec_device device, const struct tenrec_device_ops **ret,
                             tenrec_error *err);

/* NULL: no memory. */
struct streams *streams_new(bool fresh);
struct streams *streams_share(struct streams *s); /* NULL is fine, */
void streams_drop(struct streams *s);             /* here too */

/* Returns the stream for `device`; `s` may be NULL. errors: EUNSUPPORTED, the driver's */
tenrec_status streams_get(struct streams *s, struct tenrec_device device, struct tenrec_stream *ret,
                          tenrec_error *err);
bool streams_has(struct streams *s, struct tenrec_device device, struct tenrec_stream *ret);
/* errors: ETOOBIG */
tenrec_status streams_put(struct streams *s, const struct tenrec_stream *stream, tenrec_error *err);

static inline bool stream_equal(const struct tenrec_stream *a, const struct tenrec_stream *b)
{
    return a->device.kind == b->device.kind && a->device.index == b->device.index &&
           a->stream == b->stream;
}

/* Makes each stream of `then` (NULL: this thread's current streams) wait for that of `first` on
 * the same device. `first` may be NULL. */
tenrec_status streams_order(struct streams *first, struct streams *then, tenrec_error *err);

/* Returns a stream of the pool that waits for `first`, on the same device. */
tenrec_status stream_after(const struct tenrec_stream *first, struct tenrec_stream *ret,
                           tenrec_error *err);

/* Tensors in memory of a backend's devices. */

/* Makes a tensor for `desc` in memory of s->device, to be written on `s`, a stream of the
 * pool; desc->data and desc->device are ignored. errors: as tensor_for_desc,
 * EUNSUPPORTED */
tenrec_status device_tensor_for_desc(const struct tenrec_tensor_desc *desc,
                                     const struct tenrec_stream *s, struct tenrec_tensor **ret,
                                     tenrec_error *err);

/* The same on `device`, to be used on the thread's current stream there. */
tenrec_status device_tensor_new(const struct tenrec_tensor_desc *desc, struct tenrec_device device,
                                struct tenrec_tensor **ret, tenrec_error *err);

/* Returns a view of `t`, on a device, whose storage is its contiguous bytes alone; or `t`
 * itself if that would need a copy. errors: ENOMEM */
tenrec_status device_tensor_to_send(struct tenrec_tensor *t, struct tenrec_tensor **ret,
                                    tenrec_error *err);

/* Returns a view of `t` that is written, and ready, on `s`; shares t. errors: ENOMEM */
tenrec_status device_tensor_on(struct tenrec_tensor *t, const struct tenrec_stream *s,
                               struct tenrec_tensor **ret, tenrec_error *err);

/* Copies on the stream of `to` (device_tensor_on), after `from` is ready on `ready` (may
 * be NULL), and makes `ready` wait for the copy. Both tensors are on devices. */
tenrec_status device_tensor_copy(struct tenrec_tensor *from, struct tenrec_tensor *to,
                                 struct streams *ready, tenrec_error *err);

/* Makes `to` wait for the elements of `t`. Does nothing for a tensor in the host. */
tenrec_status device_tensor_order(const struct tenrec_tensor *t, const struct tenrec_stream *to,
                                  tenrec_error *err);

#endif
