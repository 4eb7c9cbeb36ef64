/* SPDX-License-Identifier: Apache-2.0 */
/* message.h - the memory of messages.
 *
 * One allocation holds the message, its descriptors and its payload; small ones are
 * recycled. Messages to send and messages that a backend fills from the wire are made
 * here. */
#ifndef TENREC_BACKEND_MESSAGE_H
#define TENREC_BACKEND_MESSAGE_H

#include <tenrec/agent.h>

/* Zeroed, with `payload_len` bytes (not zeroed) at ->payload and `n_tensors`
 * zeroed descriptors at ->tensors. NULL: out of memory or far too large. Any thread;
 * ->release may be called on another thread. */
struct tenrec_msg *message_new(uint64_t payload_len, uint32_t n_tensors);

#endif
