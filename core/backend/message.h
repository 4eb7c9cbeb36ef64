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

/* As in struct tenrec_budget; of a message of another maker the charge ends at once. */
void message_carry(struct tenrec_msg *msg, struct tenrec_account *a, uint64_t n,
                   const struct tenrec_account_limits *limits);

/* Charges `n` bytes more that will be made of `msg`, until its release, if it carries a charge.
 * errors: EAGAIN */
tenrec_status message_charge(const struct tenrec_msg *msg, uint64_t n, tenrec_error *err);

#endif
