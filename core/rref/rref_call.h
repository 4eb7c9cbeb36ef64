/* SPDX-License-Identifier: Apache-2.0 */
/* rref_call.h - calls that bring references, call on a referenced value, or
 * make one. */
#ifndef TENREC_RREF_RREF_CALL_H
#define TENREC_RREF_RREF_CALL_H

#include <tenrec/rref.h>

struct served_refs_ops;

extern const struct served_refs_ops rref_calls;

/* A fetch of a value of this worker arrived: takes msg. */
void rref_fetch_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg);

#endif
