/* SPDX-License-Identifier: Apache-2.0 */
/* rref_id.h - names of referenced values, and of the references to them. */
#ifndef TENREC_VALUE_RREF_ID_H
#define TENREC_VALUE_RREF_ID_H

#include <stdbool.h>
#include <tenrec/types.h>

/* Unique in the group and over its sessions: the worker that made the id, and
 * the session and a counter of that worker. One counter serves both kinds. */
struct rref_id {
    int64_t on;
    int64_t local;
};

#define RREF_SESSION_SHIFT 40 /* the counter has the bits below */

static inline bool rref_id_equal(struct rref_id a, struct rref_id b)
{
    return a.on == b.on && a.local == b.local;
}

/* A reference in a message: a value of type RREF on the wire. */
struct rref_fork {
    struct rref_id id, fork;
    tenrec_peer owner, parent; /* the owner of the value, the sender of this fork */
    int64_t version; /* of the sender's view, which has a third worker as the owner; else 0 */
};

#endif
