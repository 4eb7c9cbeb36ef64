/* SPDX-License-Identifier: Apache-2.0 */
/* serve.h - served calls, from their request to their answer; and requests that are refused. */
#ifndef TENREC_CALL_SERVE_H
#define TENREC_CALL_SERVE_H

#include "rpc/call/calls.h"
#include "rpc/value/codec.h"

/* Serves a call. Takes msg. */
void serve_request(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg);

/* The arguments are resolved, or failed: runs the function, or answers with `why`. */
void serve_start(struct tenrec_call *c, const tenrec_error *why);

/* From now on no function of `w` starts: queued calls are answered with ESHUTDOWN, and so are later
 * ones. Running functions continue. The caller is inside the worker, or the worker has stopped. */
void serve_stop(struct tenrec_worker *w);
/* Functions start again, after a restart of the worker. */
void serve_resume(struct tenrec_worker *w);

/* ---- serve_end.c ---------------------------------------------------------- */

/* Sends the answer of a function that has returned or finished; ends the call. */
void serve_end(struct tenrec_call *c, const tenrec_error *why);
/* Answers a call whose function was not started. */
void serve_refuse(struct tenrec_call *c, const tenrec_error *why);
/* Ends a call whose arguments were not read, or that was not taken. Inside the worker. */
void serve_abandon(struct tenrec_call *c, const tenrec_error *why);
/* Refuses a message / a call whose start was read. Both take msg. */
void dispatch_refuse(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg, bool cbor,
                     const tenrec_error *why);
void serve_refuse_request(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg,
                          const struct codec_head *head, const tenrec_error *why);

/* ---- guard.c: callers that `security:` does not permit, before the arguments are decoded; only
 * for a worker whose functions have rules ------------------------------------- */

/* Checks a call of `f`; NULL: a name without a function, which a stranger may not find out.
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
