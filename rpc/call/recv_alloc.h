/* SPDX-License-Identifier: Apache-2.0 */
/* recv_alloc.h - memory for received tensors. worker.lock guards the allocator. */
#ifndef TENREC_CALL_RECV_ALLOC_H
#define TENREC_CALL_RECV_ALLOC_H

#include <stdbool.h>
#include <tenrec/agent.h>
#include <tenrec/tensor.h>

/* A chain_user function: uses the caller's buffer, else the user's allocator, else our own memory.
 */
tenrec_status recv_alloc_tensors(void *worker, tenrec_peer from, struct tenrec_msg *msg,
                                 tenrec_error *err);

/* Returns true if the tensor is contiguous and fills its storage. */
bool recv_alloc_is_plain(const struct tenrec_tensor *t);

#endif
