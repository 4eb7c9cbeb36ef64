/* SPDX-License-Identifier: Apache-2.0 */
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
 * before; the message carries a storage for each tensor that names no earlier one
 * (same_storage), in their order. A tensor that does has the dtype of the earlier one.
 *
 * to_tenrec  the peer reads dtypes that torch cannot carry
 * errors     EUNSUPPORTED (dtype that the peer cannot read, device without a
 *            name), EINVAL (a view that leaves its storage, or one that torch
 *            has no form for), ETOOBIG (`cap`)
 */
tenrec_status tensorlist_write(void *buf, size_t cap, const struct tenrec_tensor_desc *tensors,
                               uint32_t n, uint32_t tensor_size, bool to_tenrec, size_t *ret_len,
                               tenrec_error *err);

/* Returns true for the list of no tensors, as torch and Tenrec write it. */
bool tensorlist_is_empty(const void *pickle, size_t len);

struct listed;

/* Fills dtype, ndim, shape, strides, byte_offset, flags, bytes and same_storage of each
 * tensor, and of each storage which tensor is its first view. `*ret_n` is the number of
 * tensors; of more than to->room those beyond are checked and left out, and the caller
 * reads the list again into more room. After a failure the tensors are undefined.
 *
 * errors   EPROTOCOL (not torch's form, other storages than the message carries, a view
 *          that leaves its storage), EUNSUPPORTED (sparse, quantized, unknown storage
 *          class), ETOOBIG (more than TENREC_MAX_DIMS dimensions, or to->max tensors)
 */
tenrec_status tensorlist_read(const void *pickle, size_t len, const struct listed *to,
                              uint32_t *ret_n, tenrec_error *err);

/* shortlist.c: what the tensors of a message are, among Tenrec peers.
 *
 * Says what the pickle of tensorlist.h says in a tenth of the bytes and of the
 * time, for peers that named IDENTITY_SHORT_LISTS. All numbers little endian:
 *
 *     "TNR1", number of tensors (4), then of each:
 *     dtype: code (1), bits (1), lanes (2); dimensions (1), flags (1), zero (2),
 *     offset in the storage in bytes (8), the earlier tensor that has the same
 *     storage (4) only when there is one, sizes (8 each), strides (8 each) only
 *     when they are not those of a contiguous tensor
 */

/* Bytes that a list of `n` tensors takes at most. */
#define SHORTLIST_MAX(n) (8 + (size_t)(n) * (20 + 16 * TENREC_MAX_DIMS))

/* Each tensor `tensor_size` bytes after the one before; `buf` has SHORTLIST_MAX
 * bytes.
 *
 * errors   EINVAL (a view that leaves its storage, too many dimensions),
 *          EUNSUPPORTED (a dtype without whole bytes) */
tenrec_status shortlist_write(void *buf, const struct tenrec_tensor_desc *tensors, uint32_t n,
                              uint32_t tensor_size, size_t *ret_len, tenrec_error *err);

/* Returns true for a short list, by its first bytes; a pickle never begins so. */
bool shortlist_is(const void *list, size_t len);

/* As tensorlist_read, but that of more tensors than to->room none is looked at.
 *
 * errors   EPROTOCOL, ETOOBIG (more than TENREC_MAX_DIMS dimensions, or to->max tensors) */
tenrec_status shortlist_read(const void *list, size_t len, const struct listed *to, uint32_t *ret_n,
                             tenrec_error *err);

#endif
