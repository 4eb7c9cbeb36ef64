/* SPDX-License-Identifier: Apache-2.0 */
/* transfer.h - the references and objects in a message, as calls handle them.
 *
 * Writing a call or an answer forks the references in its values. The forks are the message's
 * transfer, which ends with the message: the receiver has read it, may still read it, or never
 * will. Transfers are implemented by a room above (rref_value.c), which gives each worker this
 * table. */
#ifndef TENREC_CALL_TRANSFER_H
#define TENREC_CALL_TRANSFER_H

#include "core/base/fail.h"
#include "rpc/call/calls.h"
#include "rpc/value/codec.h"

struct call_spec;
struct rref_transfer;

enum transfer_outcome {
    TRANSFER_TAKEN,   /* the receiver has read the message */
    TRANSFER_UNSURE,  /* the message may still arrive: the receiver will report */
    TRANSFER_REFUSED, /* the message will not arrive, or the receiver refused it */
};

/* Passed to the codec for a message to `to`. */
struct transfer_out {
    struct codec_refs refs; /* first */
    struct tenrec_worker *worker;
    tenrec_peer to;
    struct rref_transfer *transfer; /* NULL: the message has no references */
};

struct transfer_ops {
    /* codec_refs.fork of a struct transfer_out. */
    tenrec_status (*fork)(struct codec_refs *refs, struct tenrec_rref *r, bool deref,
                          struct rref_fork *ret, tenrec_error *err);

    /* Ends a transfer, which is not NULL. */
    void (*end)(struct rref_transfer *t, enum transfer_outcome outcome);

    /* Ends the transfer with the call of `spec`. If that leaves the outcome unsure, the backend's
     * completion decides: a request that was never written has not arrived. The end of a one-way
     * call does not mean that the call has arrived. */
    void (*follow)(struct rref_transfer *t, struct call_spec *spec, bool one_way);

    /* Resolves the references and objects (flags & CODEC_UNTAKEN) in `n` values from `from`.
     * `deref`: the first may be a value of this worker. The references are released with the
     * values, also after a failure. */
    tenrec_status (*take)(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_value *v,
                          size_t n, bool deref, tenrec_error *err);

    /* Refuses the references in `msg` from `from`, and notifies the workers that wait for an
     * outcome. Borrows msg. */
    void (*forget)(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_msg *msg);
};

static inline void transfer_out_init(struct transfer_out *out, struct tenrec_worker *w,
                                     tenrec_peer to)
{
    *out = (struct transfer_out){ .refs = { .fork = w->calls->transfers->fork },
                                  .worker = w,
                                  .to = to };
}

/* Frees the memory that the writer used. */
static inline void transfer_out_finish(struct transfer_out *out)
{
    if (unlikely(out->refs.ref != NULL))
        codec_refs_finish(&out->refs);
}

/* NULL is fine. */
static inline void transfer_end(const struct tenrec_worker *w, struct rref_transfer *t,
                                enum transfer_outcome outcome)
{
    if (unlikely(t != NULL))
        w->calls->transfers->end(t, outcome);
}

#endif
