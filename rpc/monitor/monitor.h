/* SPDX-License-Identifier: Apache-2.0 */
/* monitor.h - a worker among the members of its group: notices those that join, leave and die. In a
 * static group only their connections tell. */
#ifndef TENREC_MONITOR_MONITOR_H
#define TENREC_MONITOR_MONITOR_H

#include "rpc/call/service.h"

#include <stdbool.h>
#include <stdint.h>
#include <tenrec/group.h>
#include <tenrec/message.h>

struct loss;
struct membership;
struct monitor;

/* Peers whose connection broke. There is one connection per direction: ours to the peer, on which
 * our calls wait for answers, and the peer's to us. When its process exits both break, and the
 * program's callback is called once. */
struct disconnects {
    tenrec_peer_lost_fn *fn; /* may be NULL */
    void *arg;
    struct loss *last; /* the latest reported of each peer, by id; owns; NULL before the first */
    size_t n;
};

extern const struct service member_service;

/* The state of the service. */
struct worker_group {
    struct membership *membership; /* the group in its store; owns; between init and shutdown */
    struct monitor *monitor;       /* owns; NULL in a static group */
    /* Guarded by the worker's lock. */
    struct disconnects disconnects;
    struct tenrec_member_callbacks callbacks;
};

static inline struct worker_group *group_of(const struct tenrec_worker *w)
{
    return w->service[SERVICE_MEMBER];
}

/* ---- monitor.c: the thread of a worker in a dynamic group, `tenrec-group`: it notices changes of
 * the members and applies the new views. Once the worker runs, only this thread uses the store ----
 */

/* Makes the monitor from the list of the membership; messages may arrive from here on. In a static
 * group there is none, and the functions below do nothing. errors: ENOMEM */
tenrec_status monitor_open(struct tenrec_worker *w, tenrec_error *err);

/* Starts the thread and waits until the others know this worker or time out. errors: EOS */
tenrec_status monitor_start(struct tenrec_worker *w, uint64_t deadline_ns, tenrec_error *err);

/* The two steps of leaving: afterwards no member begins a call to this worker / this worker is no
 * member, and all know. errors: ETIMEDOUT, and the store's */
void monitor_announce_leaving(struct tenrec_worker *w, uint64_t deadline_ns);
tenrec_status monitor_depart(struct tenrec_worker *w, uint64_t deadline_ns, tenrec_error *err);

/* Stops the thread; messages may still arrive. */
void monitor_stop(struct tenrec_worker *w);
void monitor_close(struct tenrec_worker *w); /* no message can arrive any more */

/* A connection to or from `peer` broke. Returns true if the monitor polls the member, which may be
 * alive. */
bool monitor_suspects(struct tenrec_worker *w, tenrec_peer peer);

/* Keeps `a` until our view has its version, or its deadline expires, or this worker is no member
 * any more. Returns false, and takes nothing, if that is so already. */
bool monitor_view_wait(struct tenrec_worker *w, struct ask *a);

/* A VIEW message, or an answer to one, has arrived. Both take msg. */
void monitor_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg);
void monitor_answered(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg);

/* ---- disconnect.c -------------------------------------------------------------------------- */

/* Forgets all losses, for a group of `n`. */
void disconnects_reset(struct disconnects *l, size_t n);
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

#endif
