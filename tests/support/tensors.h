/* SPDX-License-Identifier: Apache-2.0 */
/* tensors.h - tensors of a test's memory, shared memory and devices, made by one call each. */
#ifndef TENREC_TESTS_SUPPORT_TENSORS_H
#define TENREC_TESTS_SUPPORT_TENSORS_H

#include <tenrec/tensor.h>

/* A view of `bytes` bytes at `data`, which outlive the tensor. strides: NULL for row-major. */
static inline tenrec_status tensors_view(void *data, uint64_t bytes, struct tenrec_dtype dtype,
                                         uint32_t ndim, const int64_t *shape,
                                         const int64_t *strides, struct tenrec_tensor **ret,
                                         tenrec_error *err)
{
    struct tenrec_tensor_desc d = { .data = data,
                                    .bytes = bytes,
                                    .dtype = dtype,
                                    .ndim = ndim,
                                    .flags = strides ? 0 : TENREC_TENSOR_ROW_MAJOR };

    for (uint32_t i = 0; i < ndim && i < TENREC_MAX_DIMS; i++) {
        d.shape[i] = shape[i];
        d.strides[i] = strides ? strides[i] : 0;
    }
    return tenrec_tensor_from_desc(&d, NULL, NULL, ret, err);
}

/* All of `data`, of one dimension, which the tensor owns from success on. */
static inline tenrec_status tensors_owned(void *data, uint64_t bytes, struct tenrec_dtype dtype,
                                          const int64_t *length, tenrec_tensor_free_fn *free_fn,
                                          void *arg, struct tenrec_tensor **ret, tenrec_error *err)
{
    const struct tenrec_tensor_desc d = { .data = data,
                                          .bytes = bytes,
                                          .dtype = dtype,
                                          .ndim = 1,
                                          .flags = TENREC_TENSOR_ROW_MAJOR,
                                          .shape = { *length } };

    return tenrec_tensor_from_desc(&d, free_fn, arg, ret, err);
}

/* flags: enum tenrec_tensor_alloc_flags */
static inline tenrec_status tensors_new(struct tenrec_dtype dtype, uint32_t ndim,
                                        const int64_t *shape, uint32_t flags,
                                        struct tenrec_tensor **ret, tenrec_error *err)
{
    const struct tenrec_tensor_options o = { .size = sizeof o, .flags = flags };

    return tenrec_tensor_new_with(dtype, ndim, shape, &o, ret, err);
}

static inline tenrec_status tensors_new_on(struct tenrec_device device, struct tenrec_dtype dtype,
                                           uint32_t ndim, const int64_t *shape,
                                           struct tenrec_tensor **ret, tenrec_error *err)
{
    const struct tenrec_tensor_options o = { .size = sizeof o, .device = device };

    return tenrec_tensor_new_with(dtype, ndim, shape, &o, ret, err);
}

#endif
