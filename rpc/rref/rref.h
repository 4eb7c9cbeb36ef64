/* SPDX-License-Identifier: Apache-2.0 */
/* rref.h - the references of a worker: its service, and what the files of this room share. */
#ifndef TENREC_RREF_RREF_H
#define TENREC_RREF_RREF_H

#include "rpc/call/service.h"
#include "rpc/call/transfer.h"
#include "rpc/value/value.h"

#include <tenrec/agent.h>
#include <tenrec/rref.h>

struct rref_context;
struct served_refs_ops;

extern const struct service rref_service;

/* The state of the service. */
struct rrefs {
    struct rref_context *context; /* of this session; shares; NULL: none */
    struct object_types types;
    /* Set by the program; guarded by the worker's lock. */
    tenrec_rrefs_released_fn *released;
    void *released_arg;
    bool leak_check;
};

static inline struct rrefs *rrefs_of(const struct tenrec_worker *w)
{
    return w->service[SERVICE_RREF];
}

static inline struct rref_context *rref_context_of(const struct tenrec_worker *w)
{
    return rrefs_of(w)->context;
}

/* A connection broke, in either direction. With `report`, calls the program's callback. Returns the
 * number of control messages to the peer that are not acknowledged. */
size_t rrefs_lost(struct tenrec_worker *w, tenrec_peer peer, bool report, const tenrec_error *why);

/* Returns true if the loss of `peer` would release, or fail, references. */
bool rrefs_need(struct tenrec_worker *w, tenrec_peer peer);

/* Logs the leaks. errors: EBUSY, if tenrec_worker_set_rref_leak_check is on */
tenrec_status rrefs_check(struct tenrec_worker *w, bool graceful, tenrec_error *err);

/* ---- rref_control.c: control messages, which are retried and acknowledged ---------------- */

/* The references of a session, which the `n` members of this incarnation of the group hold, from
 * start to stop of the worker. The loop runs. */
tenrec_status rrefs_open(struct tenrec_worker *w, const struct tenrec_member *member, size_t n,
                         uint64_t incarnation, tenrec_error *err);
void rrefs_stop(struct tenrec_worker *w); /* fails all waiters and jobs; no thread is inside */
void rrefs_drop(struct tenrec_worker *w); /* before the loop is closed; safe without a session */

/* FORK_REQUEST, CHILD_ACCEPT or USER_DELETE has arrived. Takes msg. */
void rrefs_control_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg);

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

/* ---- rref_call.c: served calls with references, creations and fetches ------------------- */

extern const struct served_refs_ops rref_calls;

/* A fetch of a value of this worker has arrived. Takes msg. */
void rref_fetch_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg);

/* ---- rref_value.c: references and objects in the values of messages ---------------------- */

extern const struct transfer_ops rref_transfers;

/* `take` and `forget` of rref_transfers. */
tenrec_status rrefs_take(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_value *v,
                         size_t n, bool deref, tenrec_error *err);
void rrefs_forget(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_msg *msg);

/* ---- rref.c, rref_remote.c: new references of the program -------------------------------- */

/* Moves the origin that tenrec_rref_set_origin noted on this thread into `r`. */
void rref_origin_take(struct tenrec_rref *r);
void rref_origin_forget(void);

/* tenrec_remote. With `deref` the first argument, a reference, stands for its value at the callee.
 */
tenrec_status rref_remote(struct tenrec_worker *w, const char *to, const char *function,
                          const struct tenrec_value *args, size_t n, bool deref,
                          const struct tenrec_call_options *options, struct tenrec_rref **ret,
                          tenrec_error *err);

#endif
