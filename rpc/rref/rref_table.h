/* SPDX-License-Identifier: Apache-2.0 */
/* rref_table.h - shared by the files of the state machine. Lock of the context held, everywhere. */
#ifndef TENREC_RREF_RREF_TABLE_H
#define TENREC_RREF_RREF_TABLE_H

#include "rpc/rref/rref_context.h"

struct rref_id rref_new_id(struct rref_context *ctx);

tenrec_status rref_no_memory(tenrec_error *err); /* the error of a reference */

/* Fills in a new reference; shares the context. */
void rref_init(struct tenrec_rref *r, struct rref_context *ctx, struct rref_id id,
               tenrec_peer owner, bool is_owner);

/* Sets the error of the reference; the first error stays. */
void rref_set_error(struct tenrec_rref *r, const tenrec_error *why);

/* Ends all waits for `r`. */
void rref_ready(struct tenrec_rref *r, const tenrec_error *why, struct rref_acts *acts);

/* Ends a wait; `why` must be static. */
void rref_end_wait(struct rref_waiter *w, const tenrec_error *why, struct rref_acts *acts);

void rref_act_dead(struct rref_acts *acts, struct tenrec_rref *r);

/* Adds a control message to the acts. */
void rref_job_start(struct rref_job *job, struct rref_context *ctx, struct tenrec_rref *ref,
                    int32_t type, tenrec_peer to, struct rref_id id, struct rref_id fork,
                    struct rref_acts *acts);
/* The recipient is lost: runs a postponed try now and schedules no more. */
void rref_job_expedite(struct rref_job *job);

/* Frees the reference, or begins its user delete, once it is not needed any more. */
void rref_owner_settle(struct rref_owner *o, struct rref_acts *acts);
void rref_user_settle(struct rref_user *u, struct rref_acts *acts);
void rref_settle(struct tenrec_rref *r, struct rref_acts *acts); /* either */

/* Returns true if the peer has left the group. Its requests may still be in flight. */
static inline bool rref_is_gone(const struct rref_context *ctx, tenrec_peer peer)
{
    return peer >= 0 && (size_t)peer < ctx->n_names && ctx->gone[peer];
}

struct rref_owner *rref_owner_get(struct rref_context *ctx, struct rref_id id);
/* Returns false if out of memory. A peer that has left gets no fork. */
bool rref_owner_add_fork(struct rref_owner *o, struct rref_id fork, tenrec_peer holder);
bool rref_owner_remove_fork(struct rref_owner *o, struct rref_id fork, tenrec_peer holder,
                            struct rref_acts *acts);

void rref_child_end(struct rref_context *ctx, struct rref_child *c, struct rref_acts *acts);

/* Parts of rref_peer_lost. */
struct rref_released rref_owner_lose(struct rref_owner *o, tenrec_peer peer,
                                     struct rref_acts *acts);
void rref_user_lose(struct rref_user *u, const tenrec_error *why, struct rref_acts *acts);

#endif
