/* SPDX-License-Identifier: Apache-2.0 */
/* rref_call.h - calls with references in their arguments, calls on a referenced value, creations
 * and fetches, at the callee. */
#ifndef TENREC_RREF_RREF_CALL_H
#define TENREC_RREF_RREF_CALL_H

#include <tenrec/message.h>
#include <tenrec/rref.h>

struct served_refs_ops;

extern const struct service rref_service; /* of a worker (rpc/call/service.h) */

extern const struct served_refs_ops rref_calls;

/* A fetch of a value of this worker has arrived. Takes msg. */
void rref_fetch_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg);

#endif
