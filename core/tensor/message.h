/* SPDX-License-Identifier: Apache-2.0 */
/* message.h - messages whose tensors belong to somebody.
 *
 * What the worker sends, and what a backend fills from the wire for it: a
 * message of backend/message.h with one more slot per tensor for the handle
 * that keeps the tensor's memory alive. Releasing the message drops them. */
#ifndef TENREC_TENSOR_MESSAGE_H
#define TENREC_TENSOR_MESSAGE_H

#include <tenrec/tensor.h>

/* As message_new: zeroed, with payload and descriptors, no owners yet. NULL:
 * out of memory or absurdly large. */
struct tenrec_msg *rpc_message_new(uint64_t payload_len, uint32_t n_tensors);

/* Fills descriptor `i` from `t` and keeps it until the message is released, or
 * until another is set there. Only for messages of rpc_message_new.
 *
 * t        taken */
void rpc_message_set_tensor(struct tenrec_msg *msg, uint32_t i, struct tenrec_tensor *t);

/* The same without touching the descriptor. */
void rpc_message_set_owner(struct tenrec_msg *msg, uint32_t i, struct tenrec_tensor *t);

/* Gives tensor `i`, which has the storage of an earlier one (same_storage), a handle of
 * its own on the memory that was found for that one.
 *
 * errors   EINVAL, ENOMEM */
tenrec_status rpc_message_share_storage(struct tenrec_msg *msg, uint32_t i, tenrec_error *err);

/* The handle of tensor `i`, borrowed; NULL when there is none, and for a
 * message that was made elsewhere. */
struct tenrec_tensor *rpc_message_owner(const struct tenrec_msg *msg, uint32_t i);

#endif
