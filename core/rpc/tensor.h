/* tensor.h - what only the core does with tensors. */
#ifndef TENREC_RPC_TENSOR_H
#define TENREC_RPC_TENSOR_H

#include <tenrec/tensor.h>

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
