/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h - the life of a worker: how it is made, joins its group and leaves. */
#ifndef TENREC_WORKER_WORKER_H
#define TENREC_WORKER_WORKER_H

#include "rpc/monitor/monitor.h"

struct chain_identity;
struct security;
struct tenrec_chain_options;
struct tenrec_config;
struct functions;

/* tenrec_worker_new with a table of services. `config` is borrowed during the call, `options`
 * (those of a chain with this configuration) are taken always. */
tenrec_status worker_new(const struct tenrec_config *config, struct tenrec_chain_options *options,
                         const struct service *const *services, struct tenrec_worker **ret,
                         tenrec_error *err);

/* The demands of the configuration, with the secret; borrowed from the worker. */
const struct security *worker_security(const struct tenrec_worker *w);

/* set.c: adds the function "tenrec.set", by which an operator changes a running worker. errors:
 * ENOMEM */
tenrec_status set_serve(struct functions *f, tenrec_error *err);

/* ---- worker_group.c: the steps of a start, in this order --------------------------------------
 */

/* A member finds its group and joins it; a visitor only calls it. */
struct group_entry {
    const struct tenrec_chain_options *options; /* of the worker's chain; borrowed */
    bool visits;
    const char *store; /* of a visit; NULL: that of the configuration */
    uint64_t until_ns;
};

/* Finds the group; our id and name are known then. */
tenrec_status group_find(struct tenrec_worker *w, const struct group_entry *e, tenrec_error *err);
/* For the chain of this worker, without a guard. */
struct chain_identity group_identity(const struct tenrec_worker *w);
/* Joins with the address of the chain, and fills the peers. */
tenrec_status group_enter(struct tenrec_worker *w, const struct group_entry *e, tenrec_error *err);
/* After any of these; uses the loop when it serves the store, until then. */
void group_leave(struct tenrec_worker *w, uint64_t until_ns);

/* ---- termination.c: a graceful shutdown ------------------------------------------------------ */

/* The limit of a shutdown with the argument `ms`. TENREC_TIMEOUT_DEFAULT is the timeout of calls,
 * or a minute if calls have none. */
int64_t shutdown_limit_ms(const struct tenrec_worker *w, int64_t ms);

/* From now on a wait for a member of a static group fails when that member is dead. */
void termination_watch_disconnects(struct tenrec_worker *w);

/* Leaves the group together with the other members of a static group; a visitor, and a member of a
 * dynamic group, leave alone: once no call of this worker is outstanding, none runs here, its
 * references are released and the others know that it has left.
 *
 * errors: ETIMEDOUT (names what is outstanding, or the missing), EPEER_LOST, and the store's */
tenrec_status worker_part(struct tenrec_worker *w, uint64_t deadline_ns, tenrec_error *err);

/* How many references to values of other workers there are, forks in flight included. */
int64_t rrefs_of_others(struct tenrec_worker *w);

/* Releases all references without the other members; with `orphans` also forks in flight. The
 * messages count as outstanding calls until the owners have acknowledged them. */
void rrefs_release(struct tenrec_worker *w, bool orphans);

#endif
