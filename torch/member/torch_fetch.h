/* SPDX-License-Identifier: Apache-2.0 */
/* torch_fetch.h - values of this member that torch's workers fetch by their references. */
#ifndef TENREC_MEMBER_TORCH_FETCH_H
#define TENREC_MEMBER_TORCH_FETCH_H

#include "rpc/value/rref_id.h"

#include <tenrec/error.h>

struct tenrec_msg;
struct tenrec_torch_member;

/* Answers once the value is made. Takes msg if it returns OK.
 *
 * errors   ENOTFOUND (the value was freed), EAGAIN (too many wait), ENOMEM */
tenrec_status torch_fetch_serve(struct tenrec_torch_member *m, tenrec_peer from,
                                struct tenrec_msg *msg, struct rref_id id, tenrec_error *err);

#endif
