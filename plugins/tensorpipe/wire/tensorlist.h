/* tensorlist.h - payload 3 of the agent's messages: what the tensors are.
 *
 * Tensors travel as bare storages; dtype, shape and strides are a pickle of
 * the form that torch's own C++ pickler writes. The reader is no general
 * unpickler: it accepts what torch writes for dense tensors, and nothing that
 * could run code or allocate.
 */
#ifndef TENSORPIPE_TENSORLIST_H
#define TENSORPIPE_TENSORLIST_H

#include <stdbool.h>
#include <tenrec/error.h>
#include <tenrec/types.h>

#define TENSORLIST_EMPTY_LEN 47 /* bytes of the list of no tensors */

/* Bytes that a list of `n` tensors takes at most. */
#define TENSORLIST_MAX(n) (TENSORLIST_EMPTY_LEN + (size_t)(n)*640)

/* Writes the list of `n` tensors, each `tensor_size` bytes after the one
 * before; tensor i's storage is the i-th that the message carries.
 *
 * to_tenrec  the peer reads dtypes that torch cannot carry
 * errors     EUNSUPPORTED (dtype that the peer cannot read, device without a
 *            name), EINVAL (a view that leaves its storage, or one that torch
 *            has no form for), ETOOBIG (`cap`)
 */
tenrec_status tensorlist_write(void *buf, size_t cap, const struct tenrec_tensor_desc *tensors,
                               uint32_t n, uint32_t tensor_size, bool to_tenrec, size_t *ret_len,
                               tenrec_error *err);

/* True for the list of no tensors as torch and we write it. */
bool tensorlist_is_empty(const void *pickle, size_t len);

/* Fills dtype, ndim, shape, strides, byte_offset and flags of each of the `n`
 * tensors; `bytes` of each, from the message's descriptor, must be set and is
 * what the view is checked against. After a failure the tensors are undefined.
 *
 * errors   EPROTOCOL (not torch's form, not n tensors, a view that leaves its
 *          storage), EUNSUPPORTED (sparse, quantized, unknown storage class),
 *          ETOOBIG (more than TENREC_MAX_DIMS dimensions)
 */
tenrec_status tensorlist_read(const void *pickle, size_t len, struct tenrec_tensor_desc *tensors,
                              uint32_t n, uint32_t tensor_size, tenrec_error *err);

#endif
