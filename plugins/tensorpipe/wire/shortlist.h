/* SPDX-License-Identifier: Apache-2.0 */
/* shortlist.h - what the tensors of a message are, among Tenrec peers.
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
#ifndef TENSORPIPE_SHORTLIST_H
#define TENSORPIPE_SHORTLIST_H

#include <stdbool.h>
#include <tenrec/error.h>
#include <tenrec/types.h>

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

struct listed;

/* As tensorlist_read, but that of more tensors than to->room none is looked at.
 *
 * errors   EPROTOCOL, ETOOBIG (more than TENREC_MAX_DIMS dimensions, or to->max tensors) */
tenrec_status shortlist_read(const void *list, size_t len, const struct listed *to, uint32_t *ret_n,
                             tenrec_error *err);

#endif
