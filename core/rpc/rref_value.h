/* SPDX-License-Identifier: Apache-2.0 */
/* rref_value.h - references and objects inside of values: what goes out with a
 * message, and what came with one. */
#ifndef TENREC_RPC_RREF_VALUE_H
#define TENREC_RPC_RREF_VALUE_H

#include "rpc/call.h"
#include "rpc/codec.h"

struct rref_parcel;

/* Handed to the codec while a message for `to` is written. */
struct rref_out {
    struct codec_refs refs; /* first */
    struct tenrec_worker *worker;
    tenrec_peer to;
    struct rref_parcel *parcel; /* what the message brings; NULL: nothing */
};

static inline void rref_out_init(struct rref_out *out, struct tenrec_worker *w, tenrec_peer to);

/* Frees what only the writing needed, when there is something. */
void rref_out_finish(struct rref_out *out);

enum rref_outcome {
    RREF_TAKEN,   /* the receiver has read the message */
    RREF_UNSURE,  /* it may come, it may not: the receiver will say */
    RREF_REFUSED, /* it will not come, or the receiver did not take it */
};

/* Ends a parcel (NULL is fine). */
void rref_parcel_end(struct rref_parcel *p, enum rref_outcome outcome);
enum rref_outcome rref_outcome_of(const tenrec_error *why);

/* Ends the parcel with the call of `spec`; while that leaves it unsure, with the backend's
 * word about the request: a request that was never written brings nothing. The end of a
 * one-way call does not mean that it arrived. */
void rref_parcel_follow(struct rref_parcel *p, struct call_spec *spec, bool one_way);

/* Makes references and objects of what was read (reserved & CODEC_UNTAKEN) in
 * `n` values from `from`. `deref`: the first may be a value of ours. What was
 * taken is dropped with the values, also after a failure. */
tenrec_status rrefs_take(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_value *v,
                         size_t n, bool deref, tenrec_error *err);

/* Has it references or objects in it? */
bool rrefs_in(const struct tenrec_value *v);

/* Nobody wants what `msg` from `from` brings: tells those who wait for a word
 * about its references. Does not take msg. */
void rrefs_forget(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_msg *msg);

tenrec_status rref_out_fork(struct codec_refs *refs, struct tenrec_rref *r, bool deref,
                            struct rref_fork *ret, tenrec_error *err);

static inline void rref_out_init(struct rref_out *out, struct tenrec_worker *w, tenrec_peer to)
{
    *out = (struct rref_out){ .refs = { .fork = rref_out_fork }, .worker = w, .to = to };
}

#endif
