/* SPDX-License-Identifier: Apache-2.0 */
/* copy.h - copies of messages; the bytes of the original are never written to. */
#ifndef FAULTY_COPY_H
#define FAULTY_COPY_H

#include <stdbool.h>
#include <tenrec/agent.h>

/* Makes `n` messages to send that share the bytes of `msg`; `own_payload`: each with a payload of
 * its own. Takes `msg` on success; returns false when out of memory. */
bool copy_to_send(struct tenrec_msg *msg, bool own_payload, unsigned n, struct tenrec_msg *ret[]);

/* Copies a message received from `from`, tensors included, into memory of the
 * host. Returns NULL when out of memory, or when a tensor is not in CPU memory. */
struct tenrec_msg *copy_received(struct tenrec_agent *self, tenrec_peer from,
                                 const struct tenrec_msg *msg);

#endif
