/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/ops.h"

#include "cuda/memory.h"

static tenrec_status op_stream_wait(const struct tenrec_stream *s, tenrec_error *err)
{
    tenrec_status st = device_enter(s->device.index, err);

    if (st)
        return st;
    st = DRIVER(stream_sync, s->device.index, err, (void *)(uintptr_t)s->stream);
    device_leave();
    return st;
}

static tenrec_status op_copy(const struct tenrec_stream *s, void *to, const void *from,
                             uint64_t bytes, tenrec_error *err)
{
    tenrec_status st = device_enter(s->device.index, err);

    if (st)
        return st;
    if (bytes)
        st = DRIVER(copy, s->device.index, err, (uintptr_t)to, (uintptr_t)from, (size_t)bytes,
                    (void *)(uintptr_t)s->stream);
    device_leave();
    return st;
}

const struct tenrec_device_ops cuda_device_ops = {
    .size = sizeof(struct tenrec_device_ops),
    .kind = TENREC_CUDA,
    .stream_get = device_stream,
    .stream_order = device_order,
    .stream_wait = op_stream_wait,
    .memory_new = device_memory_new,
    .memory_drop = device_memory_drop,
    .copy = op_copy,
};
