/* SPDX-License-Identifier: Apache-2.0 */
/* parcel.h - the references and objects in a message, as calls handle them.
 *
 * A call or an answer that is written forks the references in its values; the forks are the
 * message's parcel, which ends with the message: the receiver has read it, may still read it, or
 * never will. What a parcel is belongs to the references (rref_value.c), which stand above calls
 * and give each worker this table. */
#ifndef TENREC_CALL_PARCEL_H
#define TENREC_CALL_PARCEL_H

#include "codec/codec.h"
#include "peer/worker.h"

struct call_spec;
struct rref_parcel;

enum parcel_outcome {
    PARCEL_TAKEN,   /* the receiver has read the message */
    PARCEL_UNSURE,  /* the message may still arrive: the receiver will say */
    PARCEL_REFUSED, /* the message will not arrive, or the receiver refused it */
};

/* Handed to the codec while a message for `to` is written. */
struct parcel_out {
    struct codec_refs refs; /* first */
    struct tenrec_worker *worker;
    tenrec_peer to;
    struct rref_parcel *parcel; /* NULL: the message brings nothing */
};

struct parcel_ops {
    /* codec_refs.fork of a struct parcel_out. */
    tenrec_status (*fork)(struct codec_refs *refs, struct tenrec_rref *r, bool deref,
                          struct rref_fork *ret, tenrec_error *err);

    /* Ends a parcel, which is not NULL. */
    void (*end)(struct rref_parcel *p, enum parcel_outcome outcome);

    /* Ends the parcel with the call of `spec`; while that leaves it unsure, with the backend's
     * word about the request: a request that was never written brings nothing. The end of a
     * one-way call does not mean that the call arrived. */
    void (*follow)(struct rref_parcel *p, struct call_spec *spec, bool one_way);

    /* Makes references and objects of what was read (reserved & CODEC_UNTAKEN) in `n` values
     * from `from`. `deref`: the first may be a value of this worker. The references are
     * released with the values, also after a failure. */
    tenrec_status (*take)(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_value *v,
                          size_t n, bool deref, tenrec_error *err);

    /* Refuses what `msg` from `from` brings: tells the workers that wait for a word about its
     * references. Borrows msg. */
    void (*forget)(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_msg *msg);
};

static inline void parcel_out_init(struct parcel_out *out, struct tenrec_worker *w, tenrec_peer to)
{
    *out = (struct parcel_out){ .refs = { .fork = w->parcels->fork }, .worker = w, .to = to };
}

/* Frees what only the writing needed. */
static inline void parcel_out_finish(struct parcel_out *out)
{
    if (__builtin_expect(out->refs.ref != NULL, 0))
        codec_refs_finish(&out->refs);
}

/* NULL is fine. */
static inline void parcel_end(const struct tenrec_worker *w, struct rref_parcel *p,
                              enum parcel_outcome outcome)
{
    if (__builtin_expect(p != NULL, 0))
        w->parcels->end(p, outcome);
}

#endif
