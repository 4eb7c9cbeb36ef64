/* SPDX-License-Identifier: Apache-2.0 */
/* rref_control.h - control messages of references: sent with retries, received, acknowledged. */
#ifndef TENREC_RREF_RREF_CONTROL_H
#define TENREC_RREF_RREF_CONTROL_H

#include <tenrec/agent.h>
#include <tenrec/rpc.h>

struct rref_context;

/* The references of a session, which the `n` members of this incarnation of the group hold, from
 * start to stop of the worker. The loop runs. */
tenrec_status rrefs_open(struct tenrec_worker *w, const struct tenrec_member *member, size_t n,
                         uint64_t incarnation, tenrec_error *err);
void rrefs_stop(struct tenrec_worker *w); /* fails all waiters and jobs; no thread is inside */
void rrefs_drop(struct tenrec_worker *w); /* before the loop is closed; w->rrefs may be NULL */

/* FORK_REQUEST, CHILD_ACCEPT or USER_DELETE has arrived. Takes msg. */
void rrefs_control_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg);

/* A connection broke, in either direction. With `report`, calls the program's callback. Returns the
 * number of control messages to the peer that are not acknowledged. */
size_t rrefs_lost(struct tenrec_worker *w, tenrec_peer peer, bool report, const tenrec_error *why);

/* Arms the timer for `deadline_ns` or earlier. */
void rrefs_arm(struct rref_context *ctx, uint64_t deadline_ns);

/* The time from try n of a control message to the next: the first gap twice, then each half as long
 * again. */
uint64_t rref_gap_ns(uint32_t first_ms, uint32_t tries);

/* Reads a payload of exactly `n` numbers. errors: EPROTOCOL, ENOMEM */
tenrec_status rref_numbers_read(const struct tenrec_msg *msg, size_t n, int64_t *ret,
                                tenrec_error *err);
tenrec_status rref_numbers_write(int32_t type, const int64_t *number, size_t n,
                                 struct tenrec_msg **ret, tenrec_error *err);

#endif
