/* SPDX-License-Identifier: Apache-2.0 */
/* torch_call.h - how calls of the program are written, for those that return and those that make a
 * remote value. */
#ifndef TENREC_MEMBER_TORCH_CALL_H
#define TENREC_MEMBER_TORCH_CALL_H

#include "torch/member/member.h"
#include "torch/member/references.h"

/* Between the name of a TorchScript function and the type of its result. */
#define TORCH_CALL_TYPE " -> "

/* Checks a call, and sets *ms if it is TENREC_TIMEOUT_DEFAULT. errors: EINVAL, ESHUTDOWN */
tenrec_status torch_call_check(struct tenrec_torch_member *m, const char *to, const char *function,
                               const struct tenrec_value *args, size_t n, int64_t *ms,
                               tenrec_error *err);

/* Writes the request.
 *
 * ids      those of the value and of the fork that a creation makes; NULL: a call
 * refs     receives the references in it; undone on errors
 * errors   EINVAL, EUNSUPPORTED, ENOMEM, and those of the references
 */
tenrec_status torch_call_write(const char *function, const struct tenrec_value *args, size_t n,
                               const struct rref_id *ids, struct outgoing *refs,
                               struct tenrec_msg **ret, tenrec_error *err);

/* Waits for the value (owns; `ret` may be NULL) and drops `f`. */
tenrec_status torch_call_wait(struct tenrec_future *f, struct tenrec_value **ret,
                              tenrec_error *err);

#endif
