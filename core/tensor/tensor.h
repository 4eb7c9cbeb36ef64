/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.h - what only the core does with tensors. */
#ifndef TENREC_TENSOR_TENSOR_H
#define TENREC_TENSOR_TENSOR_H

#include <stdbool.h>
#include <tenrec/tensor.h>

/* A tensor as `desc` describes it, of a storage of > 0 bytes, in memory that a worker on this
 * host can map and write, each page of which is copied by its first write there. Contents
 * undefined; desc->data does not matter.
 *
 * errors   EINVAL, ETOOBIG, ENOMEM, EOS */
tenrec_status tensor_new_private(const struct tenrec_tensor_desc *desc, struct tenrec_tensor **ret,
                                 tenrec_error *err);

/* Makes a tensor of a storage and the view of it that `desc` describes. Checks
 * all of it: descriptors that came from a peer may say anything.
 *
 * desc     borrowed; desc->data is owned by the tensor from success on when
 *          free_fn is given
 * errors   EINVAL, ETOOBIG, ENOMEM */
tenrec_status tensor_from_desc(const struct tenrec_tensor_desc *desc,
                               tenrec_tensor_free_fn *free_fn, void *arg,
                               struct tenrec_tensor **ret, tenrec_error *err);

/* The same in new memory of desc->bytes bytes in the host, contents undefined;
 * desc->data and desc->device do not matter. */
tenrec_status tensor_for_desc(const struct tenrec_tensor_desc *desc, struct tenrec_tensor **ret,
                              tenrec_error *err);

/* Is it sound: type, shape, reach? errors: EINVAL, ETOOBIG */
tenrec_status tensor_check_desc(const struct tenrec_tensor_desc *desc, tenrec_error *err);

/* The descriptor of a contiguous tensor without memory. errors: EINVAL, ETOOBIG */
tenrec_status tensor_describe(struct tenrec_dtype dtype, uint32_t ndim, const int64_t *shape,
                              struct tenrec_tensor_desc *ret, tenrec_error *err);

bool tensor_is_contiguous(const struct tenrec_tensor_desc *d);

/* What it hands to its free function; NULL when that is not `free_fn`. */
void *tensor_free_arg(const struct tenrec_tensor *t, tenrec_tensor_free_fn *free_fn);

/* What to send for `t`: t itself, shared, when its elements lie together and
 * are not a small part of a large storage; else a contiguous copy.
 *
 * ret      shares: drop it
 * errors   ENOMEM, EUNSUPPORTED (a copy of device memory) */
tenrec_status tensor_to_send(struct tenrec_tensor *t, struct tenrec_tensor **ret,
                             tenrec_error *err);

/* Bytes of one element; 0 for a type that cannot be: no whole number of bytes,
 * no lanes, an unknown code. */
uint32_t dtype_bytes(struct tenrec_dtype dtype);

#endif
