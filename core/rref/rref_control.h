/* SPDX-License-Identifier: Apache-2.0 */
/* rref_control.h - the control messages of references: sent with repetitions,
 * received, acknowledged. */
#ifndef TENREC_RREF_RREF_CONTROL_H
#define TENREC_RREF_RREF_CONTROL_H

#include <tenrec/rpc.h>

struct rref_context;

/* The group whose members hold the references of a session. */
struct rref_group {
    const struct tenrec_member *member; /* borrowed during the call */
    uint32_t n;
    uint64_t incarnation; /* the group's life */
};

/* The references of a session: between start and stop of the worker, whose
 * loop runs. */
tenrec_status rrefs_open(struct tenrec_worker *w, const struct rref_group *g, tenrec_error *err);
void rrefs_stop(struct tenrec_worker *w); /* ends all that waits; nobody is inside any more */
void rrefs_drop(struct tenrec_worker *w); /* NULL it; before the loop goes */

/* FORK_REQUEST, CHILD_ACCEPT or USER_DELETE came: takes msg. */
void rrefs_control_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg);

/* A connection broke, in either direction. Returns how many control messages to the peer are
 * not acknowledged. */
size_t rrefs_lost(struct tenrec_worker *w, tenrec_peer peer, bool tell, const tenrec_error *why);

/* The loop looks at the clock at `deadline_ns` at the latest. */
void rrefs_arm(struct rref_context *ctx, uint64_t deadline_ns);

/* From the nth sending of a control message to the next: twice the first gap,
 * and then half more each time. */
uint64_t rref_gap_ns(uint32_t first_ms, uint32_t tries);

/* A payload of numbers: reading one of exactly `n`. errors: EPROTOCOL, ENOMEM */
tenrec_status rref_numbers_read(const struct tenrec_msg *msg, size_t n, int64_t *ret,
                                tenrec_error *err);
tenrec_status rref_numbers_write(int32_t type, const int64_t *number, size_t n,
                                 struct tenrec_msg **ret, tenrec_error *err);

#endif
