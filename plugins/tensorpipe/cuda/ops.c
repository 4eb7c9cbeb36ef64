/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/ops.h"

#include "cuda/memory.h"

const struct tenrec_device_ops cuda_device_ops = {
    .size = sizeof(struct tenrec_device_ops),
    .kind = TENREC_CUDA,
    .stream_get = device_stream,
    .stream_order = device_order,
    .stream_wait = device_stream_wait,
    .memory_new = device_memory_new,
    .memory_drop = device_memory_drop,
    .copy = device_copy,
};
