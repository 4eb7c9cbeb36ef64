/* SPDX-License-Identifier: Apache-2.0 */
/* gather.h - barrier and all_gather over a set of workers, by RPC.
 *
 * The worker of the set with the smallest name leads. The others send it a
 * GATHER request; it answers all of them when the last has come, or fails all
 * of them, naming who is missing, when the first limit runs out. */
#ifndef TENREC_COLLECTIVE_GATHER_H
#define TENREC_COLLECTIVE_GATHER_H

#include <pthread.h>
#include <tenrec/agent.h>
#include <tenrec/rpc.h>

struct gather;
struct gather_set;

struct gathers {
    pthread_mutex_t lock; /* guards all */
    struct gather_set *sets;
    struct gather *open;
    size_t n_open;
};

struct gathers *gathers_new(void); /* NULL: no memory */
void gathers_drop(struct gathers *g);

/* Forgets the numbers of all sets: in a new life the others count from 0. */
void gathers_reset(struct gathers *g);

/* A GATHER request came: takes msg. */
void gather_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg);

/* Fails those whose limit has passed. On the loop's thread. */
void gather_expire(struct tenrec_worker *w);

/* Fails those that wait for `peer`: the connection to it broke. */
void gather_lost(struct tenrec_worker *w, tenrec_peer peer, const tenrec_error *why);

/* That life of a worker is over: forgets the sets that it was in. */
void gather_forget(struct tenrec_worker *w, const char *name, uint64_t incarnation);

/* Fails all that are open here. */
void gather_fail_all(struct tenrec_worker *w, const tenrec_error *why);

#endif
