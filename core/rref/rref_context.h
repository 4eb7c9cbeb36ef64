/* SPDX-License-Identifier: Apache-2.0 */
/* rref_context.h - what a worker knows of references, in one session.
 *
 * A state machine: each function takes the context's lock, changes what it has
 * to, and puts what follows from it into `acts`: control messages to send,
 * waiters that are ready, memory to free. Nothing here sends, calls the program
 * or waits; rref_acts_run does, without the lock. docs/architecture.md has the
 * states and messages. */
#ifndef TENREC_RREF_RREF_CONTEXT_H
#define TENREC_RREF_RREF_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <tenrec/rref.h>

#include "base/hash.h"
#include "call/call.h"
#include "rref/rref_counts.h"
#include "rref/rref_forks.h"
#include "tensor/handle.h"

struct loop_timer;
struct rref_context;
struct rref_old_name;
struct streams;

/* A control message that is repeated until it is acknowledged. */
struct rref_job {
    struct call_hook hook; /* first */
    struct rref_job *next;
    struct rref_context *ctx; /* shared while it runs */
    struct tenrec_rref *ref;  /* whose it is; NULL: nobody's, freed when done */
    struct rref_id id, fork;
    int32_t type; /* of the message */
    tenrec_peer to;
    uint32_t tries;        /* made ... */
    _Atomic uint32_t most; /* ... and allowed; 1 when who gets it is lost */
    uint64_t due_ns;       /* of the next one */
    bool active;
};

/* Waits until a value is there, or a reference is confirmed. Whoever waits
 * holds the reference. */
struct rref_waiter {
    struct rref_waiter *next; /* of the reference; later of acts */
    struct rref_waiter *late_next, **late_at;
    uint64_t deadline_ns; /* CLOCK_NEVER: none */
    tenrec_peer from;     /* for whom; its loss ends the wait. -1: nobody's */
    struct tenrec_rref *ref;
    /* No lock held. why: NULL, or what is wrong; borrowed during the call */
    void (*ready)(struct rref_waiter *waiter, const tenrec_error *why);
    const tenrec_error *why; /* the reference's, or static */
};

/* What the owner's side and the user's side have in common; the handle that
 * programs see. */
struct tenrec_rref {
    struct handle handle;     /* first */
    struct rref_context *ctx; /* shared */
    struct rref_id id;
    tenrec_peer owner;
    bool is_owner;
    unsigned handles; /* the program's, those in values, of calls under way */
    unsigned jobs;    /* that run */
    struct rref_waiter *waiters, **last_waiter;
    tenrec_error *error;            /* owns, or static; why it is of no use */
    struct tenrec_future *creation; /* shared; of tenrec_remote */
    const char *file;               /* where it was made; NULL: not known */
    int line;
    struct tenrec_rref *next; /* of acts */
};

/* A value here. */
struct rref_owner {
    struct tenrec_rref ref;     /* first */
    struct tenrec_value *value; /* owns; set once, under the lock */
    struct streams *streams;    /* shared; on which it is ready, set before; NULL: always */
    struct rref_forks forks;
    bool done;         /* value or error is set */
    bool making;       /* its function runs, or is about to */
    bool failed;       /* was to be made by a call to ourselves, which failed */
    bool creator_lost; /* nobody will delete the fork of who had it made */
    bool shared;       /* had a fork once */
    tenrec_peer creator;
    UT_hash_handle hh; /* in owners, by ref.id */
};

enum rref_user_state {
    USER_PENDING,   /* the owner does not know it yet */
    USER_CONFIRMED, /* it does */
    USER_FAILED,    /* see ref.error */
    USER_DELETED,   /* let go of although the program still has it */
};

/* A reference here to a value elsewhere. */
struct rref_user {
    struct tenrec_rref ref; /* first */
    struct rref_id fork;
    tenrec_peer parent;
    enum rref_user_state state;
    unsigned children; /* forks of it that have not arrived */
    bool deleted;      /* the owner was told, or needs not be */
    bool owner_lost;
    struct rref_job job;    /* fork request, and later user delete */
    struct rref_job accept; /* child accept */
    UT_hash_handle hh;      /* in users, by fork */
};

/* A fork under way; holds its parent. */
struct rref_child {
    struct rref_id fork;
    struct rref_user *parent;
    tenrec_peer to;
    UT_hash_handle hh;
};

struct rref_context {
    atomic_uint refs;
    pthread_mutex_t lock;         /* guards all that follows, and all references */
    pthread_cond_t changed;       /* something ended; monotonic */
    struct tenrec_worker *worker; /* NULL once closed */
    bool flushed;                 /* what arrives is refused */
    tenrec_peer me;
    char **names;         /* owns; by id; NULL: no worker had it yet */
    atomic_uint *fetches; /* owns; by id: of values that are not there yet */
    bool *gone;           /* owns; by id; no member any more: what it asked for late is not kept */
    size_t n_names;
    struct rref_old_name *old_names; /* owns: of those whose ids others have now */
    int64_t next_local;
    uint32_t gap_ms; /* before the first repetition of a control message */
    struct rref_owner *owners;
    struct rref_user *users;
    struct rref_child *children;
    struct rref_tombs tombs;
    size_t n_forks, n_jobs;
    struct rref_job *resting; /* until the next try, by due_ns */
    struct rref_waiter *late; /* waiters with a deadline */
    struct loop_timer *timer; /* of these two; owns. NULL in unit tests */
};

/* What follows from a change, in order. */
struct rref_acts {
    struct rref_job *jobs, **last_job;
    struct rref_waiter *ready, **last_ready;
    struct tenrec_rref *dead; /* to free: nobody has them */
};

struct rref_setup {
    struct tenrec_worker *worker;
    const struct tenrec_member *member; /* n; their names are copied */
    size_t n;
    size_t room; /* ids are 0 to room - 1 */
    tenrec_peer me;
    uint64_t session;
    uint32_t gap_ms;
};

/* ---- the context ---------------------------------------------------------------- */

tenrec_status rref_context_new(const struct rref_setup *s, struct rref_context **ret,
                               tenrec_error *err);
void rref_context_drop(struct rref_context *ctx);

/* Ends the session: waiters fail, jobs and what nobody has goes. References
 * that somebody has stay as they are and are of no use. */
void rref_context_close(struct rref_context *ctx, struct rref_acts *acts);

/* The worker, entered (worker_enter). errors: ESHUTDOWN */
tenrec_status rref_context_enter(struct rref_context *ctx, struct tenrec_worker **ret,
                                 tenrec_error *err);

struct rref_counts rref_context_count(struct rref_context *ctx);
/* Member `id` is called so from now on. errors: ENOMEM */
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

/* ---- what follows ------------------------------------------------------------------ */

void rref_acts_init(struct rref_acts *a);

/* Sends, tells and frees; in rref_control.c. No lock held. */
void rref_acts_run(struct rref_acts *a);

/* The first reference of an acts list is freed with this. */
void rref_free(struct tenrec_rref *r);

/* A control message is done: acknowledged, or given up for `why`. */
void rref_job_done(struct rref_job *job, const tenrec_error *why, struct rref_acts *acts);

/* ---- handles ------------------------------------------------------------------------ */

/* errors of use: what the reference failed with, ENOTFOUND when let go of */
tenrec_status rref_usable(struct tenrec_rref *r, tenrec_error *err);
void rref_let_go(struct tenrec_rref *r, struct rref_acts *acts);

/* True: ready at once, w->why says how (`ready` is not called). Else it will
 * be called. */
bool rref_wait(struct tenrec_rref *r, struct rref_waiter *w);

/* A fetch of member `from` begins to wait: at most RREF_FETCHES of each do. errors: EAGAIN */
#define RREF_FETCHES 65536u
tenrec_status rref_fetch_begin(struct rref_context *ctx, tenrec_peer from, tenrec_error *err);
void rref_fetch_end(struct rref_context *ctx, tenrec_peer from);

/* Ends waits whose deadline has passed; the next deadline, or CLOCK_NEVER. */
uint64_t rref_expire(struct rref_context *ctx, uint64_t now_ns, struct rref_acts *acts);

/* ---- the owner's side ---------------------------------------------------------------- */

/* A value of our own (taken always). */
tenrec_status rref_local(struct rref_context *ctx, struct tenrec_value *value,
                         struct tenrec_rref **ret, tenrec_error *err);

/* A value that a call to ourselves will make; with a fork of its own id until
 * rref_made. */
tenrec_status rref_self(struct rref_context *ctx, struct tenrec_rref **ret, tenrec_error *err);

enum rref_making {
    RREF_MAKE,      /* do; *ret is held for it */
    RREF_REPEATED,  /* somebody does already, or has: the message came twice */
    RREF_DELETED,   /* the reference was deleted before it came */
    RREF_NO_MEMORY, /* */
};

/* `from` wants a value made; its reference is `fork`. */
enum rref_making rref_begin_making(struct rref_context *ctx, struct rref_id id, struct rref_id fork,
                                   tenrec_peer from, struct rref_owner **ret);

/* The value is made (taken always), or `why` it is not; lets go of `o`. */
void rref_made(struct rref_owner *o, struct rref_id fork, tenrec_peer from,
               struct tenrec_value *value, const tenrec_error *why, struct rref_acts *acts);

/* The value `id`, which `from` asks for by its reference `fork`; held. The value may not be
 * there yet. errors: ENOTFOUND, EPROTOCOL (another worker holds `fork`), ENOMEM, EAGAIN */
tenrec_status rref_find(struct rref_context *ctx, struct rref_id id, struct rref_id fork,
                        tenrec_peer from, struct rref_owner **ret, tenrec_error *err);

/* Control messages that came. errors: as above */
tenrec_status rref_fork_requested(struct rref_context *ctx, struct rref_id id, struct rref_id fork,
                                  tenrec_peer from, tenrec_error *err);
void rref_user_deleted(struct rref_context *ctx, struct rref_id id, struct rref_id fork,
                       tenrec_peer from, struct rref_acts *acts);

/* ---- the user's side ------------------------------------------------------------------- */

/* A reference to what `owner` is about to make. */
tenrec_status rref_user_new(struct rref_context *ctx, tenrec_peer owner, struct rref_user **ret,
                            tenrec_error *err);

/* The creation ended; of a user, or of an owner made by rref_self. */
void rref_created(struct tenrec_rref *r, const tenrec_error *why, struct rref_acts *acts);

/* Makes a reference for `to`, to be sent there. errors: as rref_usable, ENOMEM */
tenrec_status rref_fork_for(struct tenrec_rref *r, tenrec_peer to, struct rref_fork *ret,
                            tenrec_error *err);

/* It arrived there (its owner knows it), or will never arrive.
 *
 * from     the worker that says so, and is believed only of a fork that went there; -1: we do */
void rref_child_arrived(struct rref_context *ctx, struct rref_id fork, tenrec_peer from,
                        struct rref_acts *acts);
void rref_unfork(struct rref_context *ctx, struct rref_id id, struct rref_id fork,
                 struct rref_acts *acts);

/* One came from `f->parent`; *ret is held. errors: ENOTFOUND, EPROTOCOL, ENOMEM */
tenrec_status rref_arrive(struct rref_context *ctx, const struct rref_fork *f,
                          struct tenrec_rref **ret, struct rref_acts *acts, tenrec_error *err);

/* One came that nobody wants: tells those who wait for a word of it. */
void rref_refuse(struct rref_context *ctx, const struct rref_fork *f, struct rref_acts *acts);

/* ---- ends --------------------------------------------------------------------------------- */

struct rref_released {
    size_t forks; /* that the lost worker held of ours */
    size_t freed; /* values that nobody refers to any more */
    size_t jobs;  /* control messages to it that it has not acknowledged */
};

/* `peer` has left the group, until rref_context_set_name: it gets no forks any more. To be
 * followed by rref_peer_lost. */
void rref_peer_gone(struct rref_context *ctx, tenrec_peer peer);
struct rref_released rref_peer_lost(struct rref_context *ctx, tenrec_peer peer,
                                    const tenrec_error *why, struct rref_acts *acts);

/* Lets go of all users; with `orphans` also of forks that have not arrived. */
void rref_delete_users(struct rref_context *ctx, bool orphans, struct rref_acts *acts);

/* Waits until no reference is pending / until nobody refers to our values and
 * no control message is under way. errors: ETIMEDOUT, naming one */
tenrec_status rref_wait_settled(struct rref_context *ctx, uint64_t until_ns, tenrec_error *err);
tenrec_status rref_wait_released(struct rref_context *ctx, uint64_t until_ns, tenrec_error *err);

/* Calls `tell` for each reference that is left: of others to ours, and ours
 * that were not dropped. Returns how many. */
size_t rref_leaks(struct rref_context *ctx, void (*tell)(void *arg, const char *text), void *arg);

/* "RRef(created_on=0, local_id=7) of 'worker1'". */
const char *rref_text(const struct tenrec_rref *r, char *buf, size_t len);

#endif
