/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h - the answers that arrive, and those that a callee sends, along the routes of their
 * requests. The calling thread has entered the worker, or belongs to the worker. */
#ifndef TENREC_CALL_ANSWER_H
#define TENREC_CALL_ANSWER_H

#include <stdbool.h>
#include <tenrec/agent.h>
#include <tenrec/value.h>

struct rref_transfer;
struct tenrec_worker;

/* An answer has arrived (call.c). Takes msg. */
void call_answered(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg);

/* Sends `msg` as the answer of request `id`.
 *
 * msg       takes; NULL: out of memory, the caller gets ENOMEM
 * transfer  takes: the references in `msg`; may be NULL */
void answer_send(struct tenrec_worker *w, tenrec_peer to, int64_t id,
                 const struct tenrec_route *route, struct tenrec_msg *msg,
                 struct rref_transfer *transfer);

/* Returns true if the backend may refuse to send `msg`, for more than a broken connection: then its
 * sender asks for the end of the send, and the caller gets the reason. */
bool answer_is_followed(const struct tenrec_msg *msg);
/* Returns true if it has refused; an answer lost to a fault or with its connection is not replaced.
 * NULL: it has not. */
bool answer_is_refused(const tenrec_error *why);

/* Answers with an error: as CBOR for a Tenrec worker, else as plain text. */
void answer_error(struct tenrec_worker *w, tenrec_peer to, int64_t id,
                  const struct tenrec_route *route, bool cbor, const tenrec_error *why);

/* Makes the EXCEPTION that a chain sends in answer to `msg`, or in its place: all of `why` if its
 * payload is Tenrec's, else the text. NULL: out of memory. */
struct tenrec_msg *answer_exception_new(const struct tenrec_msg *msg, const tenrec_error *why);

/* Answers with a value in a message of this type. */
void answer_value(struct tenrec_worker *w, tenrec_peer to, int64_t id,
                  const struct tenrec_route *route, int32_t type, const struct tenrec_value *value);

#endif
