/* SPDX-License-Identifier: Apache-2.0 */
/* recv_alloc.h - memory for tensors that arrive. */
#ifndef TENREC_CALL_RECV_ALLOC_H
#define TENREC_CALL_RECV_ALLOC_H

#include <stdbool.h>
#include <tenrec/agent.h>
#include <tenrec/tensor.h>

/* The chain's user: the caller's own buffer first, then the user's allocator,
 * then memory of our own. */
tenrec_status recv_alloc_tensors(void *worker, tenrec_peer from, struct tenrec_msg *msg,
                                 tenrec_error *err);

/* Contiguous in host memory, and nothing else in its storage. */
bool recv_alloc_is_plain(const struct tenrec_tensor *t);

#endif
