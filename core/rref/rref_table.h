/* SPDX-License-Identifier: Apache-2.0 */
/* rref_table.h - what the files of the state machine share. With the lock of
 * the context held, all of it. */
#ifndef TENREC_RREF_RREF_TABLE_H
#define TENREC_RREF_RREF_TABLE_H

#include "rref/rref_context.h"

struct rref_id rref_new_id(struct rref_context *ctx);

/* Fills in a new reference; shares the context. */
void rref_init(struct tenrec_rref *r, struct rref_context *ctx, struct rref_id id,
               tenrec_peer owner, bool is_owner);

/* Sets why it is of no use; the first reason stays. */
void rref_set_error(struct tenrec_rref *r, const tenrec_error *why);

/* All that wait for `r` are ready. */
void rref_ready(struct tenrec_rref *r, const tenrec_error *why, struct rref_acts *acts);

/* Takes one waiter off its reference; `why` must be static. */
void rref_end_wait(struct rref_waiter *w, const tenrec_error *why, struct rref_acts *acts);

void rref_act_dead(struct rref_acts *acts, struct tenrec_rref *r);

/* Starts a control message, once. */
void rref_job_start(struct rref_job *job, struct rref_context *ctx, struct tenrec_rref *ref,
                    int32_t type, tenrec_peer to, struct rref_id id, struct rref_id fork,
                    struct rref_acts *acts);
/* Who gets it is lost: a try that rests is made now, and none after it. */
void rref_job_hurry(struct rref_job *job);

/* Lets go of what is needed no more. */
void rref_owner_settle(struct rref_owner *o, struct rref_acts *acts);
void rref_user_settle(struct rref_user *u, struct rref_acts *acts);

/* Is it no member any more? What it asked for may still be under way. */
static inline bool rref_is_gone(const struct rref_context *ctx, tenrec_peer peer)
{
    return peer >= 0 && (size_t)peer < ctx->n_names && ctx->gone[peer];
}

struct rref_owner *rref_owner_get(struct rref_context *ctx, struct rref_id id);
/* False: no memory. Who is gone gets none. */
bool rref_owner_add_fork(struct rref_owner *o, struct rref_id fork, tenrec_peer holder);
bool rref_owner_remove_fork(struct rref_owner *o, struct rref_id fork, tenrec_peer holder,
                            struct rref_acts *acts);

void rref_child_end(struct rref_context *ctx, struct rref_child *c, struct rref_acts *acts);

/* The lost side of each; see rref_peer_lost. */
struct rref_released rref_owner_lose(struct rref_owner *o, tenrec_peer peer,
                                     struct rref_acts *acts);
void rref_user_lose(struct rref_user *u, const tenrec_error *why, struct rref_acts *acts);

#endif
