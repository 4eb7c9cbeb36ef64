/* SPDX-License-Identifier: Apache-2.0 */
/* dispatch.h - answering a request. */
#ifndef TENREC_RPC_DISPATCH_H
#define TENREC_RPC_DISPATCH_H

#include <stdbool.h>
#include <tenrec/agent.h>
#include <tenrec/value.h>

struct tenrec_call;
struct tenrec_worker;

/* Answer request `id` along its route; the caller is inside the worker, or on
 * one of its threads. */
void dispatch_answer_error(struct tenrec_worker *w, tenrec_peer to, int64_t id,
                           const struct tenrec_route *route, bool cbor, const tenrec_error *why);
void dispatch_answer_value(struct tenrec_worker *w, tenrec_peer to, int64_t id,
                           const struct tenrec_route *route, int32_t type,
                           const struct tenrec_value *value);

struct rref_parcel;

/* Sends a message that answers it; takes msg, NULL: no memory for one. Ends
 * `parcel`, what it brings of references; NULL: nothing. */
void dispatch_answer(struct tenrec_worker *w, tenrec_peer to, int64_t id,
                     const struct tenrec_route *route, struct tenrec_msg *msg,
                     struct rref_parcel *parcel);

/* From now on no function of `w` starts: the calls that wait for a thread are answered
 * ESHUTDOWN, and so are those that still arrive. Functions that run go on. The caller is
 * inside the worker, or the worker has stopped. */
void dispatch_stop(struct tenrec_worker *w);
/* Functions start again, in the worker's next life. */
void dispatch_resume(struct tenrec_worker *w);

/* Its arguments are there, or will not be: runs the function, or answers `why`. */
void dispatch_start(struct tenrec_call *c, const tenrec_error *why);

#endif
