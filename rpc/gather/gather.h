/* SPDX-License-Identifier: Apache-2.0 */
/* gather.h - barrier and all_gather over a set of workers, by RPC.
 *
 * The workers of the set form a tree, of which the first is the root. Each sends its parent a
 * GATHER request once its children have sent theirs; the root answers all once the last has
 * arrived. When the first limit expires, the worker that misses a child fails the gather, and names
 * it: for those below it, and by a request for its parent, and so for all. */
#ifndef TENREC_GATHER_GATHER_H
#define TENREC_GATHER_GATHER_H

#include <pthread.h>
#include <tenrec/agent.h>
#include <tenrec/rpc.h>

#include "rpc/call/service.h"
#include "rpc/gather/gather_set.h"

struct gathers {
    pthread_mutex_t lock; /* guards all */
    struct gather_set *sets;
    struct gather *open;
    size_t n_open;
    size_t degree;              /* of the trees */
    struct participants *whole; /* owns a share; the whole group, as it was last needed */
};

extern const struct service gather_service;

static inline struct gathers *gathers_of(const struct tenrec_worker *w)
{
    return w->service[SERVICE_GATHER];
}

/* A GATHER request has arrived. Takes msg. */
void gather_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg);

/* Fails the gathers whose limit has expired. On the loop's thread. */
void gather_expire(struct tenrec_worker *w);

/* Fails the gathers that wait for `peer`, whose connection broke. */
void gather_lost(struct tenrec_worker *w, tenrec_peer peer, const tenrec_error *why);

/* Forgets the sets with a worker that has left. */
void gather_forget(struct tenrec_worker *w, tenrec_peer id);

/* Fails all gathers that this worker leads. */
void gather_fail_all(struct tenrec_worker *w, const tenrec_error *why);

#endif
