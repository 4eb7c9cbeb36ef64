/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h - the state of a worker that the rooms share. Each field names its owner and lock. */
#ifndef TENREC_FUTURE_WORKER_H
#define TENREC_FUTURE_WORKER_H

#include "core/backend/backend.h"
#include "core/base/fail.h"
#include "core/base/forks.h"
#include "rpc/future/peers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <tenrec/group.h>
#include <tenrec/message.h>
#include <tenrec/observe.h>

struct calls;
struct future_callback;
struct config_settings;
struct loop;
struct service;

enum worker_state { WORKER_NEW, WORKER_STARTING, WORKER_RUNNING, WORKER_STOPPING, WORKER_DOWN };

/* The services of a worker, in the order in which they start (rpc/call/service.h). */
enum worker_service {
    SERVICE_METRICS,
    SERVICE_RECORDER,
    SERVICE_PROFILER,
    SERVICE_RREF,
    SERVICE_REGION,
    SERVICE_WEIGHTS,
    SERVICE_MEMBER,
    SERVICE_GATHER,
    SERVICE_LINK,
    SERVICES,
};

/* The queue of callbacks for the program's own event loop. */
struct userloop {
    pthread_mutex_t lock; /* guards first, last */
    struct future_callback *first, **last;
    atomic_int fd; /* -1: callbacks run on our threads */
};

struct tenrec_worker {
    _Atomic uint32_t state; /* enum worker_state */
    uint32_t forks; /* forks_seen of the process that made it: a child of it lacks its threads */
    _Atomic uint32_t inside;  /* threads that use the chain right now, and a bit for stop */
    _Atomic uint32_t leaving; /* the whole group shuts down: lost peers are expected */
    uint32_t start;           /* number of this start of a worker in the process, from 1 */
    pthread_mutex_t lock;     /* guards init, shutdown, and what the program sets */
    pthread_cond_t changed;   /* all_left, a call finished; monotonic */
    bool all_left;            /* the last thread inside has left since stop began */

    struct tenrec_worker_info self; /* name borrowed from peers */
    struct peers peers;             /* filled by init, emptied by drop */
    struct contacts contacts;
    struct userloop userloop;

    const struct config_settings *settings; /* borrowed */
    struct loop *loop;
    struct chain *chain;
    struct calls *calls;                   /* rpc/call/calls.h; in one allocation with the worker */
    const struct service *const *services; /* the table; each row's state is in: */
    void *service[SERVICES];               /* in that allocation, too */
};

/* Returns true if the running worker is no member of the group that it calls. */
static inline bool worker_visits(const struct tenrec_worker *w)
{
    return w->self.id == TENREC_ANONYMOUS;
}

/* Returns true if this process made the worker, or started it last; a child of its is another. */
static inline bool worker_is_own(const struct tenrec_worker *w)
{
    return likely(w->forks == forks_seen);
}

/* errors: ESHUTDOWN */
tenrec_status worker_refuse_child(tenrec_error *err);

/* A chain_user function; rpc/monitor has the others. */
void worker_deliver(void *arg, tenrec_peer from, struct tenrec_msg *msg);

/* ---- userloop.c ------------------------------------------------------------------------------ */

void userloop_init(struct userloop *u);
void userloop_finish(struct userloop *u); /* runs the queued callbacks */

/* These two use the userloop of `w`. push takes the list first..*last. */
bool userloop_wanted(struct tenrec_worker *w);
void userloop_push(struct tenrec_worker *w, struct future_callback *first,
                   struct future_callback **last);

/* ---- enter.c: counts the threads that use a worker's chain, so that shutdown can wait for them -
 */

/* Around each use of the chain by a thread that does not belong to the chain. The thread that
 * enters also leaves, and within the same delivery of a message if it entered within one.
 *
 * errors   ESHUTDOWN: the worker does not run, and was not entered */
tenrec_status worker_enter(struct tenrec_worker *w, tenrec_error *err);
void worker_leave(struct tenrec_worker *w);

/* Waits for the threads that entered while the worker ran. worker.state already refuses others. */
void worker_wait_until_left(struct tenrec_worker *w);

#endif
