/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h - the life of a worker: how it is made, joins its group, loses members and leaves; and
 * the state of the service. */
#ifndef TENREC_WORKER_WORKER_H
#define TENREC_WORKER_WORKER_H

#include "rpc/call/service.h"
#include "rpc/worker/gather.h"

struct chain_identity;
struct loss;
struct membership;
struct monitor;
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

extern const struct service member_service;

/* Peers whose connection broke. There is one connection per direction: ours to the peer, on which
 * our calls wait for answers, and the peer's to us. When its process exits both break, and the
 * program's callback is called once. */
struct disconnects {
    tenrec_peer_lost_fn *fn; /* may be NULL */
    void *arg;
    struct loss *last; /* the latest reported of each peer, by id; owns */
    size_t n;
};

/* The state of the service. */
struct worker_group {
    struct membership *membership; /* the group in its store; owns; between init and shutdown */
    struct monitor *monitor;       /* owns; NULL in a static group */
    struct gathers gathers;
    /* Guarded by the worker's lock. */
    struct disconnects disconnects;
    struct tenrec_member_callbacks callbacks;
};

static inline struct worker_group *group_of(const struct tenrec_worker *w)
{
    return w->service[SERVICE_MEMBER];
}

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

/* ---- disconnect.c -------------------------------------------------------------------------- */

/* Forgets all losses, for a group of `n`. errors: ENOMEM */
tenrec_status disconnects_reset(struct disconnects *l, size_t n, tenrec_error *err);
void disconnects_finish(struct disconnects *l);
/* Forgets the loss of `peer`: its id has a new holder. */
void disconnects_forget(struct tenrec_worker *w, tenrec_peer peer);

/* Functions of the chain's user. */
void worker_peer_lost(void *worker, tenrec_peer peer, const tenrec_error *why);
void worker_caller_lost(void *worker, tenrec_peer peer, const tenrec_error *why);
bool worker_needs(void *worker, tenrec_peer peer);

/* A member of a static group has died for good (peers.h): fails the gathers that wait for it and,
 * unless `why` is NULL, abandons its references. */
void worker_peer_refused(struct tenrec_worker *w, tenrec_peer peer, const tenrec_error *why);

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
