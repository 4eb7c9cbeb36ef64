/* SPDX-License-Identifier: Apache-2.0 */
/* copy.h - a second message of one, and one with another payload.
 *
 * The bytes of a message belong to whoever made it: nothing here writes to
 * them. */
#ifndef FAULTY_COPY_H
#define FAULTY_COPY_H

#include <stdbool.h>
#include <tenrec/agent.h>

/* Two messages that share the bytes of `msg` (to be sent). Takes it on
 * success; false: out of memory. */
bool copy_twins(struct tenrec_msg *msg, struct tenrec_msg *ret[2]);

/* A message to be sent with a payload of its own, that shares the tensors.
 * Takes `msg` on success; NULL: out of memory. */
struct tenrec_msg *copy_with_payload(struct tenrec_msg *msg);

/* A whole copy of a message that came from `from`, in memory of the host.
 * NULL: out of memory, or a tensor lies where this plugin cannot read it. */
struct tenrec_msg *copy_received(struct tenrec_agent *self, tenrec_peer from,
                                 const struct tenrec_msg *msg);

#endif
