/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h - the state of a worker that the rooms share. Each field names its owner and lock. */
#ifndef TENREC_FUTURE_WORKER_H
#define TENREC_FUTURE_WORKER_H

#include "core/backend/chain.h"
#include "core/base/forks.h"
#include "rpc/future/contact.h"
#include "rpc/future/peers.h"
#include "rpc/value/object.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <tenrec/group.h>
#include <tenrec/message.h>
#include <tenrec/observe.h>

struct ask;
struct config_settings;
struct devices;
struct dispatch;
struct functions;
struct gathers;
struct disconnects;
struct membership;
struct parcel_ops;
struct pending;
struct pool;
struct loop;
struct loop_timer;
struct active_calls;
struct served_refs_ops;
struct worker_config;
struct service;
struct span_hooks;
struct call_watch;
struct trace_sink;
struct housekeeping;
struct userloop;
struct monitor;

enum worker_state { WORKER_NEW, WORKER_STARTING, WORKER_RUNNING, WORKER_STOPPING, WORKER_DOWN };

enum { WORKER_WATCHERS = 3 };

/* The services of a worker, in the order in which they start (rpc/call/service.h). */
enum worker_service {
    SERVICE_METRICS,
    SERVICE_RECORDER,
    SERVICE_PROFILER,
    SERVICE_RREF,
    SERVICE_MEMBER,
    SERVICES,
};

/* Statistics; relaxed, exact when the worker is idle. */
struct worker_counts {
    _Atomic uint64_t finished;      /* requests that waited for an answer, completed */
    _Atomic uint64_t one_way;       /* of those, one-way, handed to the wire */
    _Atomic uint64_t one_way_ended; /* one-way requests of members, ended here */
    _Atomic uint64_t timeouts;
    _Atomic uint64_t late_replies;  /* answers to calls already completed */
    _Atomic uint64_t stray_replies; /* answers of a peer that was not called */
    _Atomic uint64_t refused;       /* requests of callers that may not send them */
    _Atomic uint64_t taken;         /* requests whose function was started or queued */
    _Atomic uint64_t served;        /* of those, answered */
    _Atomic uint64_t jobs;          /* control messages begun, without their retries */
    _Atomic uint64_t jobs_ended;
};

/* Set by the program. */
struct rref_options {
    tenrec_rrefs_released_fn *released;
    void *arg;
    bool leak_check;
};

struct tenrec_worker {
    _Atomic uint32_t state; /* enum worker_state */
    uint32_t forks; /* forks_seen of the process that made it: a child of it lacks its threads */
    _Atomic uint32_t inside;         /* threads that use the chain right now, and a bit for stop */
    _Atomic uint32_t leaving;        /* the whole group shuts down: lost peers are expected */
    atomic_bool closed;              /* no function starts any more (dispatch_stop) */
    pthread_mutex_t lock;            /* guards the rest of this block, init and shutdown */
    pthread_cond_t changed;          /* all_left, a call finished; monotonic */
    bool all_left;                   /* the last thread inside has left since stop began */
    struct disconnects *disconnects; /* owns */
    struct contacts contacts;
    struct tenrec_allocator allocator; /* size 0: none */
    struct tenrec_member_callbacks member_callbacks;

    struct worker_config *config;           /* from the config; owns */
    const struct config_settings *settings; /* borrowed from config */
    struct membership *membership; /* the group in its store; owns; between init and shutdown */
    struct peers peers;            /* filled by init, emptied by drop */
    struct monitor *monitor;       /* owns; NULL in a static group */
    _Atomic int64_t view_version;  /* that messages of ours tell; 0 in a static group */
    bool (*view_wait)(struct tenrec_worker *w, struct ask *a); /* monitor.h; set by membership */
    struct tenrec_worker_info self;                            /* name borrowed from peers */
    struct loop *loop;
    struct loop_timer *deadlines;
    struct housekeeping *housekeeping; /* lends the loop to memory that all workers share */
    struct chain *chain;
    const struct chain_port *port; /* of the chain; for each call */
    struct pool *pool;
    struct devices *devices; /* owns; NULL: no member names a device */
    _Atomic int64_t timeout_ms;

    struct pending *pending; /* like the next three, in one allocation with the worker */
    struct active_calls *active_calls;
    struct functions *functions;
    struct dispatch *dispatch;
    const struct parcel_ops *parcels;          /* set by rref */
    const struct served_refs_ops *served_refs; /* set by rref */
    struct gathers *gathers;                   /* owns */
    struct userloop *userloop;                 /* also in that allocation */
    const struct span_hooks *spans;            /* set by observe */
    _Atomic uint32_t watched;                  /* a bit for each watcher that is on: watch.h */
    const struct call_watch *watch[WORKER_WATCHERS]; /* set by the rooms of the watchers */
    struct trace_sink *traces;    /* owns; NULL: spans are not exported (WATCH_TRACES is off) */
    _Atomic uint64_t trace_below; /* which new traces are sampled: trace_context_root */
    uint32_t start;               /* number of this start of a worker in the process, from 1 */
    struct worker_counts counts;

    const struct service *const *services; /* the table; each row's state is in: */
    void *service[SERVICES];               /* in the allocation of the worker */

    struct object_types object_types;
    struct rref_context *rrefs;       /* of this session; shares */
    struct rref_options rref_options; /* guarded by lock */
};

/* Returns true if the running worker is no member of the group that it calls. */
static inline bool worker_visits(const struct tenrec_worker *w)
{
    return w->self.id == TENREC_ANONYMOUS;
}

/* Returns true if this process made the worker, or started it last; a child of its is another. */
static inline bool worker_is_own(const struct tenrec_worker *w)
{
    return __builtin_expect(w->forks == forks_seen, 1);
}

/* errors: ESHUTDOWN */
tenrec_status worker_refuse_child(tenrec_error *err);

/* A chain_user function; disconnect.h has the others. */
void worker_deliver(void *arg, tenrec_peer from, struct tenrec_msg *msg);

#endif
