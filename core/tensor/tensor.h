/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.h - functions of tensors for the core only. */
#ifndef TENREC_TENSOR_TENSOR_H
#define TENREC_TENSOR_TENSOR_H

#include <stdbool.h>
#include <tenrec/tensor.h>

/* Makes a tensor by `desc`, of a storage of > 0 bytes, in memory that a worker on this host can
 * map copy on write. Contents undefined; desc->data is ignored.
 *
 * errors   EINVAL, ETOOBIG, ENOMEM, EOS */
tenrec_status tensor_new_private(const struct tenrec_tensor_desc *desc, struct tenrec_tensor **ret,
                                 tenrec_error *err);

/* Makes a tensor of a storage and the view of it in `desc`. Checks all fields, since
 * descriptors of a peer are not trusted.
 *
 * desc     borrowed; desc->data is owned by the tensor from success on when
 *          free_fn is given
 * errors   EINVAL, ETOOBIG, ENOMEM */
tenrec_status tensor_from_desc(const struct tenrec_tensor_desc *desc,
                               tenrec_tensor_free_fn *free_fn, void *arg,
                               struct tenrec_tensor **ret, tenrec_error *err);

/* The same in new memory of desc->bytes bytes in the host, contents undefined;
 * desc->data and desc->device are ignored. */
tenrec_status tensor_for_desc(const struct tenrec_tensor_desc *desc, struct tenrec_tensor **ret,
                              tenrec_error *err);

/* As tensor_from_desc, with memory of another process; desc->bytes are all within the mapping.
 * Takes the mapping on success. */
struct tenrec_mapping;
tenrec_status mapped_tensor_new(struct tenrec_mapping *m, const struct tenrec_tensor_desc *desc,
                                struct tenrec_tensor **ret, tenrec_error *err);

/* Checks the type, the shape and the bounds; *ret_bytes is the size of the elements side by side.
 * errors: EINVAL, ETOOBIG */
tenrec_status tensor_check_desc(const struct tenrec_tensor_desc *d, uint64_t *ret_bytes,
                                tenrec_error *err);

/* The descriptor of a contiguous tensor without memory. errors: EINVAL, ETOOBIG */
tenrec_status tensor_describe(struct tenrec_dtype dtype, uint32_t ndim, const int64_t *shape,
                              struct tenrec_tensor_desc *ret, tenrec_error *err);

/* Sets the strides of a contiguous tensor. */
void tensor_set_row_major(struct tenrec_tensor_desc *d);

bool tensor_is_contiguous(const struct tenrec_tensor_desc *d);

/* The argument of its free function; NULL when that is not `free_fn`. */
void *tensor_free_arg(const struct tenrec_tensor *t, tenrec_tensor_free_fn *free_fn);

/* Returns the tensor to send for `t`: t itself, shared, when its elements are contiguous
 * and not a small part of a large storage; else a contiguous copy.
 *
 * ret      shares: drop it
 * errors   ENOMEM, EUNSUPPORTED (a copy of device memory) */
tenrec_status tensor_to_send(struct tenrec_tensor *t, struct tenrec_tensor **ret,
                             tenrec_error *err);

/* Bytes of one element; 0 for an invalid type: no whole number of bytes, no lanes, an
 * unknown code. */
uint32_t dtype_bytes(struct tenrec_dtype dtype);

#endif
