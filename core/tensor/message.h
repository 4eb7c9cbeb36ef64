/* SPDX-License-Identifier: Apache-2.0 */
/* message.h - messages whose tensors have owners, and maybe the payload.
 *
 * For messages that the worker sends and that a backend fills from the wire: a message of
 * backend/message.h with a slot per tensor for the handle that keeps the tensor's memory
 * alive, and one for the owner of the payload. Releasing the message drops them. */
#ifndef TENREC_TENSOR_MESSAGE_H
#define TENREC_TENSOR_MESSAGE_H

#include <tenrec/message.h>
#include <tenrec/tensor.h>

/* As message_new: zeroed, with payload and descriptors, no owners yet. NULL:
 * out of memory or far too large. */
struct tenrec_msg *rpc_message_new(uint64_t payload_len, uint32_t n_tensors);

struct payload_owner {
    void *owner;
    void (*drop)(void *owner);
};

/* The same with a payload in memory of `payload`, which the message takes on success. */
struct tenrec_msg *rpc_message_new_around(const struct payload_owner *payload, void *data,
                                          uint64_t payload_len, uint32_t n_tensors);

/* Takes the payload with its owner; NULL without an owner, and for a message of another maker. */
void *rpc_message_take_payload(struct tenrec_msg *msg);

/* Fills descriptor `i` from `t` and keeps `t` until the message is released, or another
 * tensor is set there. Only for messages of rpc_message_new.
 *
 * t        taken */
void rpc_message_set_tensor(struct tenrec_msg *msg, uint32_t i, struct tenrec_tensor *t);

/* The same without touching the descriptor. */
void rpc_message_set_owner(struct tenrec_msg *msg, uint32_t i, struct tenrec_tensor *t);

/* Gives tensor `i`, which has the storage of an earlier tensor (same_storage), a handle of
 * its own on that tensor's memory.
 *
 * errors   EINVAL, ENOMEM */
tenrec_status rpc_message_share_storage(struct tenrec_msg *msg, uint32_t i, tenrec_error *err);

/* The handle of tensor `i`, borrowed; NULL without a handle, and for a message of another
 * maker. */
struct tenrec_tensor *rpc_message_owner(const struct tenrec_msg *msg, uint32_t i);

#endif
