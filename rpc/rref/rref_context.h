/* SPDX-License-Identifier: Apache-2.0 */
/* rref_context.h - the references of a worker in one session.
 *
 * A state machine: each function acquires the context's lock, changes state, and adds the effects
 * to `acts`: control messages to send, waiters that are ready, memory to free. No function here
 * sends, calls the program or waits; rref_acts_run does, without the lock.
 * docs/internals/references.md has the states and messages. */
#ifndef TENREC_RREF_RREF_CONTEXT_H
#define TENREC_RREF_RREF_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <tenrec/agent.h>
#include <tenrec/rref.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "rpc/call/call.h"
#include "rpc/call/service.h"
#include "rpc/rref/rref_forks.h"
#include "rpc/value/value.h"

struct loop_timer;
struct rref_context;
struct streams;

/* A control message that is retried until it is acknowledged. */
struct rref_job {
    struct call_hook hook; /* first */
    struct ask ask;        /* for the view that contains the recipient; version 0: no wait */
    struct rref_job *next;
    struct rref_context *ctx; /* shared while it runs */
    struct tenrec_rref *ref;  /* that embeds the job; NULL: the job is freed when done */
    struct rref_id id, fork;
    int32_t type; /* of the message */
    tenrec_peer to;
    uint32_t tries;        /* made ... */
    _Atomic uint32_t most; /* ... and allowed; 1 if the recipient is lost */
    uint64_t due_ns;       /* of the next try */
    bool active;
};

/* Waits until a value is made, or a reference is confirmed. The waiter holds the reference. */
struct rref_waiter {
    struct rref_waiter *next; /* of the reference; later of acts */
    struct rref_waiter *late_next, **late_at;
    uint64_t deadline_ns; /* CLOCK_NEVER: none */
    tenrec_peer from;     /* the requester, whose loss ends the wait; -1: this worker */
    struct tenrec_rref *ref;
    /* No lock held. why: NULL, or the error; borrowed during the call */
    void (*ready)(struct rref_waiter *waiter, const tenrec_error *why);
    const tenrec_error *why; /* the reference's, or static */
};

/* The common part of the owner's side and the user's side; the program's handle. */
struct tenrec_rref {
    struct handle handle;     /* first */
    struct rref_context *ctx; /* shared */
    struct rref_id id;
    tenrec_peer owner;
    bool is_owner;
    unsigned handles; /* of the program, of values, of calls in flight */
    unsigned jobs;    /* active */
    struct rref_waiter *waiters, **last_waiter;
    tenrec_error *error;            /* owns, or static; why the reference failed */
    struct tenrec_future *creation; /* shared; of tenrec_remote */
    const char *file;               /* that made it; NULL: unknown */
    int line;
    void *names; /* owns: free; of a value in torch's group, guarded by the lock; else NULL */
    struct tenrec_rref *next; /* of acts */
};

/* A value of this worker. */
struct rref_owner {
    struct tenrec_rref ref;     /* first */
    struct tenrec_value *value; /* owns; set once, under the lock */
    struct streams *streams; /* shared; the value is ready on these; set before it; may be NULL */
    struct rref_forks forks;
    bool done;         /* value or error is set */
    bool making;       /* its function runs, or is about to */
    bool failed;       /* its creation by this worker failed */
    bool creator_lost; /* no worker will delete the creator's fork */
    bool shared;       /* had a fork once */
    bool lost;         /* the last fork was lost with a connection */
    tenrec_peer creator;
    UT_hash_handle hh; /* in owners, by ref.id */
};

enum rref_user_state {
    USER_PENDING,   /* unknown to the owner */
    USER_CONFIRMED, /* known to the owner */
    USER_FAILED,    /* see ref.error */
    USER_DELETED,   /* released, while the program still holds the handle */
};

/* A reference of this worker to a value of another. */
struct rref_user {
    struct tenrec_rref ref; /* first */
    struct rref_id fork;
    tenrec_peer parent;
    enum rref_user_state state;
    unsigned children; /* forks in flight */
    bool deleted;      /* a user delete was begun, or is not needed */
    bool owner_lost;
    struct rref_job job;    /* fork request, and later user delete */
    struct rref_job accept; /* child accept */
    UT_hash_handle hh;      /* in users, by fork */
};

/* A fork in flight; holds its parent. */
struct rref_child {
    struct rref_id fork;
    struct rref_user *parent;
    tenrec_peer to;
    UT_hash_handle hh;
};

struct rref_context {
    atomic_uint refs;
    pthread_mutex_t lock;         /* guards the fields below, and all references */
    pthread_cond_t changed;       /* a reference or a job ended; monotonic */
    bool open;                    /* until the session ends */
    struct tenrec_worker *worker; /* NULL once closed, and in torch's group */
    bool flushed;                 /* refuses new forks and creations */
    void (*send)(struct rref_job *job);
    void *sender;
    tenrec_peer me;
    struct arena arena;   /* of the next three, and of former names, which error texts may use */
    const char **names;   /* by id; NULL: the id was never used */
    atomic_uint *fetches; /* by id: waiting for a value */
    bool *gone;           /* by id; the member has left: its late requests keep nothing */
    size_t n_names;
    int64_t next_local;
    uint32_t gap_ms; /* before the first retry of a control message */
    struct rref_owner *owners;
    struct rref_user *users;
    struct rref_child *children;
    struct rref_tombs tombs;
    size_t n_forks, n_jobs;
    struct rref_job *postponed; /* until the next try, by due_ns */
    struct rref_waiter *late;   /* waiters with a deadline */
    struct loop_timer *timer;   /* for these two; owns. NULL in unit tests */
};

/* Effects of a change, in order; none when zeroed. */
struct rref_acts {
    struct rref_job *jobs, **last_job; /* NULL: none */
    struct rref_waiter *ready, **last_ready;
    struct tenrec_rref *dead; /* to free */
};

/* Counts of references, for users and tests. */
struct rref_counts {
    size_t num_owner_rrefs;      /* local values with references */
    size_t num_forks;            /* references to these, at any worker */
    size_t num_pending_users;    /* local references, unknown to their owner */
    size_t num_confirmed_users;  /* ... known to their owner */
    size_t num_pending_children; /* references in flight to another worker */
    size_t num_pending_owners;   /* values requested and not made yet */
    size_t num_pending_futures;  /* control messages in flight or to be retried */
    size_t num_tombstones;       /* references remembered as deleted */
};

struct rref_setup {
    struct tenrec_worker *worker; /* NULL in torch's group */
    /* Sends a control message; no lock held. rref_job_done follows, at once or later. NULL: the
     * worker sends it. */
    void (*send)(struct rref_job *job);
    void *sender;                       /* for it: ctx->sender */
    const struct tenrec_member *member; /* n; their names are copied */
    size_t n;
    size_t room; /* ids are 0 to room - 1 */
    tenrec_peer me;
    uint64_t session;
    uint32_t gap_ms;
};

/* Ends what is in progress when the session closes. */
extern const tenrec_error rref_shut_down;

/* ---- the context ---------------------------------------------------------------- */

tenrec_status rref_context_new(const struct rref_setup *s, struct rref_context **ret,
                               tenrec_error *err);
void rref_context_drop(struct rref_context *ctx);

/* Closes the session: fails the waiters, frees references without a holder. Others stay until their
 * holders drop them, and fail every use. */
void rref_context_close(struct rref_context *ctx, struct rref_acts *acts);

/* Enters the worker (worker_enter). errors: ESHUTDOWN */
tenrec_status rref_context_enter(struct rref_context *ctx, struct tenrec_worker **ret,
                                 tenrec_error *err);

struct rref_counts rref_context_count(struct rref_context *ctx);
/* Renames member `id`, which has joined. errors: ENOMEM */
tenrec_status rref_context_set_name(struct rref_context *ctx, tenrec_peer id, const char *name,
                                    tenrec_error *err);
const char *rref_context_name(const struct rref_context *ctx, tenrec_peer id);

static inline struct rref_owner *rref_owner_of(struct tenrec_rref *r)
{
    return r->is_owner ? (struct rref_owner *)(void *)r : NULL;
}

static inline struct rref_user *rref_user_of(struct tenrec_rref *r)
{
    return r->is_owner ? NULL : (struct rref_user *)(void *)r;
}

/* ---- effects ----------------------------------------------------------------------- */

/* Sends the messages, calls the waiters, frees (rref_control.c). No lock held. */
void rref_acts_run(struct rref_acts *a);

/* Frees a reference of the list `dead`. */
void rref_free(struct tenrec_rref *r);

/* A control message was acknowledged, or abandoned for `why`. */
void rref_job_done(struct rref_job *job, const tenrec_error *why, struct rref_acts *acts);

/* ---- handles ------------------------------------------------------------------------ */

/* errors: the reference's own, ENOTFOUND (released) */
tenrec_status rref_usable(struct tenrec_rref *r, tenrec_error *err);
void rref_release(struct tenrec_rref *r, struct rref_acts *acts);

/* Returns true if the wait is over, with w->why; else `ready` will be called. */
bool rref_wait(struct tenrec_rref *r, struct rref_waiter *w);

/* A fetch of member `from` begins to wait, at most RREF_FETCHES per member. errors: EAGAIN */
#define RREF_FETCHES 65536u
tenrec_status rref_fetch_begin(struct rref_context *ctx, tenrec_peer from, tenrec_error *err);
void rref_fetch_end(struct rref_context *ctx, tenrec_peer from);

/* Ends waits whose deadline has expired. Returns the next deadline, or CLOCK_NEVER. */
uint64_t rref_expire(struct rref_context *ctx, uint64_t now_ns, struct rref_acts *acts);

/* ---- the owner's side ---------------------------------------------------------------- */

/* Makes a reference to a local value (taken always). NULL: to a value that a call to this worker
 * will make; with a fork of its own id until rref_made. */
tenrec_status rref_local(struct rref_context *ctx, struct tenrec_value *value,
                         struct tenrec_rref **ret, tenrec_error *err);

/* `from` creates a value; its reference is `fork`. *ret is held for the function, which the caller
 * runs. errors: EEXIST (a duplicate message: the value is made, or being made), ECANCELED (the
 * reference was deleted before the creation arrived), ENOMEM */
tenrec_status rref_begin_making(struct rref_context *ctx, struct rref_id id, struct rref_id fork,
                                tenrec_peer from, struct rref_owner **ret, tenrec_error *err);

/* Sets the value (taken always), or `why` it was not made. Releases `o`. */
void rref_made(struct rref_owner *o, struct rref_id fork, tenrec_peer from,
               struct tenrec_value *value, const tenrec_error *why, struct rref_acts *acts);

/* Finds the value `id`, which `from` requests by its reference `fork`; held. The value may not be
 * made yet. errors: ENOTFOUND, EPROTOCOL (another worker holds `fork`), ENOMEM, EAGAIN */
tenrec_status rref_find(struct rref_context *ctx, struct rref_id id, struct rref_id fork,
                        tenrec_peer from, struct rref_owner **ret, tenrec_error *err);

/* Control messages have arrived. errors: as above */
tenrec_status rref_fork_requested(struct rref_context *ctx, struct rref_id id, struct rref_id fork,
                                  tenrec_peer from, tenrec_error *err);
void rref_user_deleted(struct rref_context *ctx, struct rref_id id, struct rref_id fork,
                       tenrec_peer from, struct rref_acts *acts);

/* ---- the user's side ------------------------------------------------------------------- */

/* Makes a reference to a value that `owner` will make. */
tenrec_status rref_user_new(struct rref_context *ctx, tenrec_peer owner, struct rref_user **ret,
                            tenrec_error *err);

/* The creation of a user, or of an owner of this worker, ended. */
void rref_created(struct tenrec_rref *r, const tenrec_error *why, struct rref_acts *acts);

/* Makes a reference for `to`, to be sent there. errors: as rref_usable, ENOMEM */
tenrec_status rref_fork_for(struct tenrec_rref *r, tenrec_peer to, struct rref_fork *ret,
                            tenrec_error *err);

/* The fork has arrived (its owner has registered it), or never will.
 *
 * from     the sender of this message; ignored unless the fork was sent there. -1: this worker */
void rref_child_arrived(struct rref_context *ctx, struct rref_id fork, tenrec_peer from,
                        struct rref_acts *acts);
void rref_unfork(struct rref_context *ctx, struct rref_id id, struct rref_id fork,
                 struct rref_acts *acts);

/* A fork has arrived from `f->parent`; *ret is held. errors: ENOTFOUND, EPROTOCOL, ENOMEM */
tenrec_status rref_arrive(struct rref_context *ctx, const struct rref_fork *f,
                          struct tenrec_rref **ret, struct rref_acts *acts, tenrec_error *err);

/* Discards a fork that has arrived, and notifies the owner or the parent. */
void rref_refuse(struct rref_context *ctx, const struct rref_fork *f, struct rref_acts *acts);

/* ---- loss and shutdown --------------------------------------------------------------------- */

struct rref_released {
    size_t forks; /* of our values, held by the lost worker */
    size_t freed; /* values without a reference */
    size_t jobs;  /* control messages to the lost worker, not acknowledged */
};

/* `peer` has left the group: it gets no forks until rref_context_set_name. Followed by
 * rref_peer_lost. */
void rref_peer_gone(struct rref_context *ctx, tenrec_peer peer);
struct rref_released rref_peer_lost(struct rref_context *ctx, tenrec_peer peer,
                                    const tenrec_error *why, struct rref_acts *acts);

/* Whether that would find a reference; true also if they are too many to look through. */
bool rref_context_needs(struct rref_context *ctx, tenrec_peer peer);

/* Releases all users; with `orphans` also forks in flight. */
void rref_delete_users(struct rref_context *ctx, bool orphans, struct rref_acts *acts);

/* Wait until no reference is pending / until our values have no references and no control message
 * is active. errors: ETIMEDOUT, which names a reference */
tenrec_status rref_wait_settled(struct rref_context *ctx, uint64_t until_ns, tenrec_error *err);
tenrec_status rref_wait_released(struct rref_context *ctx, uint64_t until_ns, tenrec_error *err);

/* Calls `report` for each leak: references of others to our values, and our handles that were not
 * dropped. Returns the number of leaks. */
size_t rref_leaks(struct rref_context *ctx, void (*report)(void *arg, const char *text), void *arg);

/* ---- rref_linked.c: ids in messages to and from linked workers; nothing changes for others ----
 */

/* errors: EUNSUPPORTED (the reference is of a third worker) */
tenrec_status rref_linked_out(const struct tenrec_worker *w, tenrec_peer to, struct rref_fork *f,
                              tenrec_error *err);
/* errors: EPROTOCOL */
tenrec_status rref_linked_in(const struct tenrec_worker *w, tenrec_peer from, struct rref_fork *f,
                             tenrec_error *err);

#endif
