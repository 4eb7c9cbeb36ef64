/* SPDX-License-Identifier: Apache-2.0 */
/* party.h - workers of one test process in a dynamic group, which join and leave. */
#ifndef TESTS_PARTY_H
#define TESTS_PARTY_H

#include "cluster.h"

/* Starts a store and a group of this test's own. The backend is that of
 * cluster_use. */
void party_begin(void);

/* A worker that has not joined. `rank`: the id it wishes for, -1: any. `name`: NULL
 * for worker{rank}. `extra` as in cluster_open. Heartbeats are quick. */
struct tenrec_worker *party_worker(int rank, const char *name, const char *const *extra,
                                   cluster_setup_fn *setup);

/* The same, and joins. */
struct tenrec_worker *party_join(int rank, const char *name, cluster_setup_fn *setup);

/* Shuts it down, which must go well, and drops it. */
void party_leave(struct tenrec_worker *w);

/* Simulates the death of the process: connections break, no port listens, and the worker has
 * not left. */
void party_die(struct tenrec_worker *w);
/* Frees the worker after party_die. */
void party_clear_away(struct tenrec_worker *w);

/* The store that they meet in; borrowed until the next party. */
struct tenrec_store *party_store(void);

tenrec_peer party_id(struct tenrec_worker *w);

/* Fails the test when there are not `n` members soon. */
void party_await(struct tenrec_worker *w, size_t n);

#endif
