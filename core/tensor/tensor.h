/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.h - tensors, and messages whose tensors have owners; for the rooms above.
 *
 * Devices are in device.h, memory that is shared with other processes in
 * sharing.h. */
#ifndef TENREC_TENSOR_TENSOR_H
#define TENREC_TENSOR_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <tenrec/agent.h>
#include <tenrec/message.h>
#include <tenrec/tensor.h>

/* Makes a tensor by `desc`, of a storage of > 0 bytes, in memory that a worker on this host can
 * map copy on write. Contents undefined; desc->data is ignored.
 *
 * errors   EINVAL, ETOOBIG, ENOMEM, EOS */
tenrec_status tensor_new_private(const struct tenrec_tensor_desc *desc, struct tenrec_tensor **ret,
                                 tenrec_error *err);

/* Makes a tensor of a storage and the view of it in `desc`. Checks all fields, since
 * descriptors of a peer are not trusted.
 *
 * desc     borrowed; desc->data is owned by the tensor from success on when
 *          free_fn is given
 * errors   EINVAL, ETOOBIG, ENOMEM */
tenrec_status tensor_from_desc(const struct tenrec_tensor_desc *desc,
                               tenrec_tensor_free_fn *free_fn, void *arg,
                               struct tenrec_tensor **ret, tenrec_error *err);

/* The same in new memory of desc->bytes bytes in the host, contents undefined;
 * desc->data and desc->device are ignored. */
tenrec_status tensor_for_desc(const struct tenrec_tensor_desc *desc, struct tenrec_tensor **ret,
                              tenrec_error *err);

/* As tensor_from_desc, with memory of another process; desc->bytes are all within the mapping.
 * Takes the mapping on success. */
struct tenrec_mapping;
tenrec_status mapped_tensor_new(struct tenrec_mapping *m, const struct tenrec_tensor_desc *desc,
                                struct tenrec_tensor **ret, tenrec_error *err);

/* Checks the type, the shape and the bounds; *ret_bytes is the size of the elements side by side.
 * errors: EINVAL, ETOOBIG */
tenrec_status tensor_check_desc(const struct tenrec_tensor_desc *d, uint64_t *ret_bytes,
                                tenrec_error *err);

/* The descriptor of a contiguous tensor without memory. errors: EINVAL, ETOOBIG */
tenrec_status tensor_describe(struct tenrec_dtype dtype, uint32_t ndim, const int64_t *shape,
                              struct tenrec_tensor_desc *ret, tenrec_error *err);

/* Sets the strides of a contiguous tensor. */
void tensor_set_row_major(struct tenrec_tensor_desc *d);

bool tensor_is_contiguous(const struct tenrec_tensor_desc *d);

/* What a function works on; checked by tenrec_tensor_expect. */
struct tensor_wanted {
    struct tenrec_dtype dtype;
    int ndim;             /* -1: any */
    const int64_t *shape; /* borrows; ndim lengths, -1: any; NULL: any shape */
};

/* errors: EINVAL */
tenrec_status tensor_check(const struct tenrec_tensor *t, const struct tensor_wanted *wanted,
                           tenrec_error *err);

/* The argument of its free function; NULL when that is not `free_fn`. */
void *tensor_free_arg(const struct tenrec_tensor *t, tenrec_tensor_free_fn *free_fn);

/* Returns the tensor to send for `t`: t itself, shared, when its elements are contiguous
 * and not a small part of a large storage; else a contiguous copy.
 *
 * ret      shares: drop it
 * errors   ENOMEM, EUNSUPPORTED (a copy of device memory) */
tenrec_status tensor_to_send(struct tenrec_tensor *t, struct tenrec_tensor **ret,
                             tenrec_error *err);

/* Bytes of one element; 0 for an invalid type: no whole number of bytes, no lanes, an
 * unknown code. */
uint32_t dtype_bytes(struct tenrec_dtype dtype);

/* Messages that the worker sends and that a backend fills from the wire: a message of
 * message_new with a slot per tensor for the handle that keeps the tensor's memory alive, and one
 * for the owner of the payload. Releasing the message drops them. */

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

/* A message of that type and flags with a copy of the payload, and with the same tensors, whose
 * memory both keep. NULL: out of memory. */
struct tenrec_msg *rpc_message_copy(const struct tenrec_msg *msg);

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

/* Messages for errors of a process that has no memory left.
 *
 * A caller whose callee cannot allocate an answer would wait until its deadline. So some
 * messages are part of the process, and return to the reserve when they are released. */

#define RESERVE_MESSAGES 64
#define RESERVE_BYTES 576 /* of a payload: any error fits */

/* Returns a message with a copy of `payload`; NULL: the payload is larger than RESERVE_BYTES,
 * or all messages of the reserve are in use. Any thread. */
struct tenrec_msg *reserve_message(const void *payload, size_t n);

#endif
