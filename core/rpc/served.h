/* SPDX-License-Identifier: Apache-2.0 */
/* served.h - the calls that this worker is answering: so that a cancel message
 * finds its call, and shutdown knows what still runs. */
#ifndef TENREC_RPC_SERVED_H
#define TENREC_RPC_SERVED_H

#include "base/hash.h"
#include "rpc/codec.h"
#include "rpc/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <tenrec/rpc.h>

struct function;
struct streams;

struct served_key {
    uint64_t pipe, generation;
    int64_t id;
};

struct tenrec_call {
    struct pool_task task; /* first: the pool hands it back */
    struct tenrec_worker *worker;
    struct tenrec_msg *request; /* owns */
    struct codec_call in;
    const struct function *function;
    struct tenrec_msg *reply; /* owns; NULL: nil */
    tenrec_peer from;
    struct served_key key;
    uint64_t deadline_ns;
    struct streams *streams;    /* shared; its function runs on; NULL: the thread's */
    struct span *span;          /* NULL: not recorded */
    struct rref_call *refs;     /* owns; NULL: it has to do with no reference */
    struct rref_parcel *parcel; /* what the reply brings; NULL: nothing */
    bool on_stack;              /* over before the delivery of its request is */
    bool refused;               /* its function was not started */
    bool one_way;
    bool awaited; /* neither one-way nor for a reference */
    bool cbor;    /* the caller reads our errors */
    atomic_bool canceled;
    bool listed; /* in served */
    UT_hash_handle hh;
};

struct served {
    pthread_mutex_t lock; /* guards the table */
    pthread_cond_t empty; /* monotonic */
    struct tenrec_call *calls;
};

void served_init(struct served *s);
void served_finish(struct served *s);

/* errors: ENOMEM */
tenrec_status served_add(struct served *s, struct tenrec_call *c, tenrec_error *err);
void served_remove(struct served *s, struct tenrec_call *c);
void served_cancel(struct served *s, const struct served_key *key);
/* All calls of this member whose answers it awaits. */
void served_cancel_from(struct served *s, tenrec_peer caller);

/* How many of them may be answered after their function has returned. */
size_t served_count_later(struct served *s);

/* Waits until none is left; names one that still runs. errors: ETIMEDOUT */
tenrec_status served_wait(struct served *s, uint64_t deadline_ns, tenrec_error *err);

#endif
