/* SPDX-License-Identifier: Apache-2.0 */
/* rref_value.h - references and objects in the values of messages, outgoing and incoming. */
#ifndef TENREC_RREF_RREF_VALUE_H
#define TENREC_RREF_RREF_VALUE_H

#include "rpc/call/parcel.h"

extern const struct parcel_ops rref_parcels;

/* `take` and `forget` of rref_parcels. */
tenrec_status rrefs_take(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_value *v,
                         size_t n, bool deref, tenrec_error *err);
void rrefs_forget(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_msg *msg);

#endif
