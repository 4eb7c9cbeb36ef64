/* SPDX-License-Identifier: Apache-2.0 */
/* rref_call.h - calls that bring references, call on a referenced value, or
 * make one. */
#ifndef TENREC_RPC_RREF_CALL_H
#define TENREC_RPC_RREF_CALL_H

#include <tenrec/rref.h>

struct rref_call; /* what such a call has beside its arguments */

struct rref_call *rref_call_new(void);

/* Takes the references of the arguments; dispatch_start follows, at once or
 * when all of them are there, with a reason if that cannot be. */
void rref_call_begin(struct tenrec_call *c);

struct codec_creation;

/* A creation that cannot even begin: keeps `why` in place of the value. Takes
 * msg. */
void rref_call_refused(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg,
                       const struct codec_creation *ids, const tenrec_error *why);

/* Keeps the result of a creation; false: it is none. */
bool rref_call_keep(struct tenrec_call *c, const struct tenrec_value *value, tenrec_status *ret,
                    tenrec_error *err);

/* The function of a creation has ended: keeps the value, or `why` it failed.
 * The message that answers it in both cases; NULL: it is no creation, or there
 * is no memory. */
bool rref_call_made(struct tenrec_call *c, const tenrec_error *why, struct tenrec_msg **ret);

/* A creation that came twice: the first one answers, when its value is made.
 * Only of a call with refs. */
bool rref_call_is_repeated(const struct tenrec_call *c);

/* Before the arguments are let go of. */
void rref_call_end(struct tenrec_call *c);

/* Somebody fetches a value of ours: takes msg. */
void rref_fetch_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg);

#endif
