/* SPDX-License-Identifier: Apache-2.0 */
/* references.h - remote references between a member and torch's workers. The rules are those of
 * Tenrec's own references (rref/rref_context.h), for both follow torch's protocol; the messages are
 * torch's. */
#ifndef TENREC_MEMBER_REFERENCES_H
#define TENREC_MEMBER_REFERENCES_H

#include "group/store/bytes.h"
#include "rpc/rref/rref_context.h"
#include "rpc/value/value.h"

struct tenrec_torch_member;

enum {
    REFERENCE_TYPE_MAX = 255,      /* bytes of the name of a value's type */
    REFERENCES_MAX = 1024,         /* in one message */
    REFERENCE_FUNCTION_MAX = 1023, /* bytes of the name of a function that makes a value */
};

#define REFERENCE_OF_PYTHON "PyObject" /* torch's type of each value that is not TorchScript's */

/* ---- of a message ------------------------------------------------------------------ */

/* The references in a message that is written. */
struct outgoing {
    struct rref_context *ctx; /* borrows */
    tenrec_peer to;
    struct rref_fork *fork; /* owns */
    size_t n, room;
};

/* Makes a fork for `to`. errors: those of the reference, EUNSUPPORTED, EINVAL, ENOMEM */
tenrec_status outgoing_add(struct outgoing *o, struct tenrec_rref *r, struct rref_fork *ret,
                           char type[REFERENCE_TYPE_MAX + 1], tenrec_error *err);
/* The message may have arrived: the receiver deletes the forks. / It never will. */
void outgoing_finish(struct outgoing *o);
void outgoing_undo(struct outgoing *o);

/* The references in a message that is read. */
struct arrivals {
    struct rref_context *ctx; /* borrows */
    tenrec_peer from;
    struct arrivals_item {
        struct rref_id fork;
        struct tenrec_rref *ref; /* holds */
    } * item;                    /* owns */
    size_t n, room;
    size_t uses; /* of them in the message */
    struct rref_acts acts;
};

/* ret      borrowed from `in`
 * errors   EPROTOCOL (the fork is another worker's), EUNSUPPORTED (from no member), ETOOBIG, and
 *          those of rref_arrive */
tenrec_status arrivals_add(struct arrivals *in, const struct rref_fork *f, struct bytes_slice type,
                           struct tenrec_rref **ret, tenrec_error *err);
/* Tells the owners and the parents of the added references. */
void arrivals_tell(struct arrivals *in);
void arrivals_finish(struct arrivals *in);

/* ---- names ------------------------------------------------------------------------- */

/* Sets the type of the referenced value, and the function that made it ("": unknown). Without
 * memory they stay unknown. */
void reference_name(struct tenrec_rref *r, struct bytes_slice type, const char *function);
void reference_function(struct tenrec_rref *r, char ret[REFERENCE_FUNCTION_MAX + 1]);
/* The name that TorchScript has for the type of a value; "" for a type that it lacks. */
const char *reference_type_of(const struct tenrec_value *v);

/* ---- of a member --------------------------------------------------------------------- */

/* Opened with the id; closed before the member's chain stops. */
tenrec_status references_open(struct tenrec_torch_member *m, tenrec_error *err);
void references_close(struct tenrec_torch_member *m);

/* A worker joins, has left, or its connection broke. */
tenrec_status references_join(struct tenrec_torch_member *m, tenrec_peer id, const char *name,
                              tenrec_error *err);
void references_left(struct tenrec_torch_member *m, tenrec_peer id, const tenrec_error *why);
void references_lost(struct tenrec_torch_member *m, tenrec_peer id, const tenrec_error *why);

/* Ends the waits that are late; returns the next deadline, or CLOCK_NEVER. */
uint64_t references_expire(struct tenrec_torch_member *m);

/* Before leaving: releases the references of this member, and waits until no worker refers to its
 * values. What remains at the deadline is logged. */
void references_release(struct tenrec_torch_member *m, uint64_t deadline_ns);

/* Answers FORK_REQUEST, CHILD_ACCEPT, USER_DELETE and fetches; returns false for any other request.
 * Takes msg if it returns true. */
bool references_serve(struct tenrec_torch_member *m, tenrec_peer from, struct tenrec_msg *msg);

/* An answer to a creation that has failed here in the meantime, so that the owner's value is
 * deleted. */
void references_late(struct tenrec_torch_member *m, tenrec_peer from, const struct tenrec_msg *msg);

/* Writes a request of that type with these ids. */
tenrec_status references_message(int32_t type, const struct rref_id *id, size_t n,
                                 struct tenrec_msg **ret, tenrec_error *err);

#endif
