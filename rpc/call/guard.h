/* SPDX-License-Identifier: Apache-2.0 */
/* guard.h - refuses messages of callers that `security:` does not permit, before the arguments are
 * decoded. Only for a worker whose functions have rules. */
#ifndef TENREC_CALL_GUARD_H
#define TENREC_CALL_GUARD_H

#include "rpc/value/codec.h"

struct function;
struct tenrec_worker;

/* Checks a call of `f`; NULL: a name without a function, which a stranger must not learn.
 * Counts and logs a refusal.
 *
 * errors   EPERM: the text is for the caller, and names the rule to members alone */
tenrec_status guard_call(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_msg *msg,
                         const struct function *f, const struct codec_head *head,
                         tenrec_error *err);

/* Checks a request that is no call: strangers may send none while the mode is not none. errors: as
 * above */
tenrec_status guard_message(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_msg *msg,
                            tenrec_error *err);

#endif
