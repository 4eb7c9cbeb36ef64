/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - streams of devices, and the current ones of a thread.
 *
 * The device ops of a backend belong to the process, not to a worker: tensors and futures
 * outlive workers. A process without such a backend pays nothing. */
#ifndef TENREC_TENSOR_STREAM_H
#define TENREC_TENSOR_STREAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <tenrec/agent.h>
#include <tenrec/device.h>

#include "core/base/threads.h"

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

#endif
