/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/rref/rref_table.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/fail.h"
#include "core/base/memory.h"
#include "core/tensor/device.h"
#include "rpc/future/worker.h"

/* Replaces an error that could not be stored. */
static tenrec_error no_memory = { .code = TENREC_ENOMEM,
                                  .worker = -1,
                                  .text = "no memory for the error" };

const tenrec_error rref_shut_down = { .code = TENREC_ECANCELED,
                                      .worker = -1,
                                      .text = "the worker was shut down" };

static const tenrec_error too_late = { .code = TENREC_ETIMEDOUT,
                                       .worker = -1,
                                       .text = "the referenced value was not made in time" };

/* ---- acts --------------------------------------------------------------------- */

void rref_act_dead(struct rref_acts *acts, struct tenrec_rref *r)
{
    r->next = acts->dead;
    acts->dead = r;
}

/* ---- the context ---------------------------------------------------------------- */

static tenrec_status names_init(struct rref_context *ctx, const struct rref_setup *s)
{
    ctx->names = arena_new(&ctx->arena, s->room, sizeof *ctx->names);
    ctx->gone = arena_new(&ctx->arena, s->room, sizeof *ctx->gone);
    ctx->fetches = arena_new(&ctx->arena, s->room, sizeof *ctx->fetches);
    if (!ctx->names || !ctx->gone || !ctx->fetches)
        return TENREC_ENOMEM;
    ctx->n_names = s->room;
    for (size_t i = 0; i < s->n; i++)
        if (!(ctx->names[s->member[i].id] = arena_text(&ctx->arena, s->member[i].name)))
            return TENREC_ENOMEM;
    return TENREC_OK;
}

tenrec_status rref_context_set_name(struct rref_context *ctx, tenrec_peer id, const char *name,
                                    tenrec_error *err)
{
    tenrec_status st = TENREC_OK;
    const char *copy;

    pthread_mutex_lock(&ctx->lock);
    ctx->gone[id] = false;
    /* Usual: a member that rejoins keeps its name. */
    if (!ctx->names[id] || strcmp(ctx->names[id], name) != 0) {
        copy = arena_text(&ctx->arena, name);
        if (copy)
            ctx->names[id] = copy;
        else
            st = tenrec_fail(err, TENREC_ENOMEM, "no memory for the name of '%s'", name);
    }
    pthread_mutex_unlock(&ctx->lock);
    return st;
}

tenrec_status rref_context_new(const struct rref_setup *s, struct rref_context **ret,
                               tenrec_error *err)
{
    struct rref_context *ctx = memory_new(1, sizeof *ctx);

    if (!ctx || names_init(ctx, s) != TENREC_OK) {
        if (ctx)
            arena_finish(&ctx->arena);
        free(ctx);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the references of a worker");
    }
    atomic_init(&ctx->refs, 1);
    pthread_mutex_init(&ctx->lock, NULL);
    clock_cond_init(&ctx->changed);
    ctx->open = true;
    ctx->worker = s->worker;
    ctx->send = s->send;
    ctx->sender = s->sender;
    ctx->me = s->me;
    ctx->gap_ms = s->gap_ms;
    ctx->next_local = (int64_t)((s->session & 0x3fffff) << RREF_SESSION_SHIFT);
    *ret = ctx;
    return TENREC_OK;
}

void rref_context_drop(struct rref_context *ctx)
{
    if (!ctx || atomic_fetch_sub(&ctx->refs, 1) != 1)
        return;
    rref_tombs_finish(&ctx->tombs);
    arena_finish(&ctx->arena);
    pthread_cond_destroy(&ctx->changed);
    pthread_mutex_destroy(&ctx->lock);
    free(ctx);
}

tenrec_status rref_context_enter(struct rref_context *ctx, struct tenrec_worker **ret,
                                 tenrec_error *err)
{
    tenrec_status st;

    pthread_mutex_lock(&ctx->lock);
    if (ctx->worker)
        st = worker_enter(*ret = ctx->worker, err);
    else if (ctx->open)
        st = tenrec_fail(err, TENREC_EUNSUPPORTED,
                         "the remote reference is of torch's group: tenrec/torch.h has its "
                         "functions");
    else
        st = tenrec_fail(err, TENREC_ESHUTDOWN,
                         "the worker of this remote reference has been shut down");
    pthread_mutex_unlock(&ctx->lock);
    return st;
}

const char *rref_context_name(const struct rref_context *ctx, tenrec_peer id)
{
    return id >= 0 && (size_t)id < ctx->n_names && ctx->names[id] ? ctx->names[id] : "";
}

struct rref_counts rref_context_count(struct rref_context *ctx)
{
    struct rref_counts n = { .num_forks = 0 };

    pthread_mutex_lock(&ctx->lock);
    for (const struct rref_owner *o = ctx->owners; o; o = o->hh.next) {
        n.num_owner_rrefs += o->forks.n > 0;
        n.num_pending_owners += !o->done && !o->making && o->ref.waiters;
    }
    for (const struct rref_user *u = ctx->users; u; u = u->hh.next) {
        n.num_pending_users += u->state == USER_PENDING;
        n.num_confirmed_users += u->state == USER_CONFIRMED && !u->deleted;
    }
    n.num_pending_children = HASH_COUNT(ctx->children);
    n.num_forks = ctx->n_forks;
    n.num_pending_futures = ctx->n_jobs;
    n.num_tombstones = ctx->tombs.n;
    pthread_mutex_unlock(&ctx->lock);
    return n;
}

/* ---- references -------------------------------------------------------------------- */

struct rref_id rref_new_id(struct rref_context *ctx)
{
    return (struct rref_id){ ctx->me, ctx->next_local++ };
}

void rref_init(struct tenrec_rref *r, struct rref_context *ctx, struct rref_id id,
               tenrec_peer owner, bool is_owner)
{
    static const struct handle_ops ops = { tenrec_rref_share, tenrec_rref_drop };

    atomic_fetch_add(&ctx->refs, 1);
    r->handle.ops = &ops;
    r->ctx = ctx;
    r->id = id;
    r->owner = owner;
    r->is_owner = is_owner;
    r->last_waiter = &r->waiters;
}

void rref_free(struct tenrec_rref *r)
{
    struct rref_owner *o = rref_owner_of(r);

    if (o) {
        tenrec_value_drop(o->value);
        streams_drop(o->streams);
        rref_forks_finish(&o->forks);
    }
    if (r->error != &no_memory)
        free(r->error);
    free(r->names);
    tenrec_future_drop(r->creation);
    rref_context_drop(r->ctx);
    free(r);
}

void rref_set_error(struct tenrec_rref *r, const tenrec_error *why)
{
    if (r->error)
        return;
    r->error = memory_new(1, sizeof *r->error);
    if (r->error)
        *r->error = *why;
    else
        r->error = &no_memory;
}

tenrec_status rref_usable(struct tenrec_rref *r, tenrec_error *err)
{
    const struct rref_user *u = rref_user_of(r);
    tenrec_status st = TENREC_OK;
    char text[TENREC_RREF_TEXT_MAX];

    pthread_mutex_lock(&r->ctx->lock);
    if (r->error && (u || rref_owner_of(r)->failed))
        st = fail_with(err, r->error);
    else if (u && u->state == USER_DELETED)
        st = tenrec_fail(err, TENREC_ENOTFOUND, "%s has been deleted here: it can only be dropped",
                         tenrec_rref_text(r, text, sizeof text));
    pthread_mutex_unlock(&r->ctx->lock);
    return st;
}

struct tenrec_rref *tenrec_rref_share(struct tenrec_rref *r)
{
    pthread_mutex_lock(&r->ctx->lock);
    r->handles++;
    pthread_mutex_unlock(&r->ctx->lock);
    return r;
}

void rref_settle(struct tenrec_rref *r, struct rref_acts *acts)
{
    if (r->is_owner)
        rref_owner_settle(rref_owner_of(r), acts);
    else
        rref_user_settle(rref_user_of(r), acts);
}

void rref_release(struct tenrec_rref *r, struct rref_acts *acts)
{
    struct rref_context *ctx = r->ctx;

    pthread_mutex_lock(&ctx->lock);
    r->handles--;
    rref_settle(r, acts);
    pthread_mutex_unlock(&ctx->lock);
}

const char *tenrec_rref_text(const struct tenrec_rref *r, char *buf, size_t len)
{
    snprintf(buf, len, "RRef(created_on=%" PRId64 ", local_id=%" PRId64 ") of '%s'", r->id.on,
             r->id.local, rref_context_name(r->ctx, r->owner));
    return buf;
}

/* ---- waiting ----------------------------------------------------------------------------- */

/* Returns true if there is nothing to wait for. */
static bool is_ready(struct tenrec_rref *r)
{
    const struct rref_owner *o = rref_owner_of(r);

    return o ? o->done : rref_user_of(r)->state != USER_PENDING;
}

static void unlink_late(struct rref_waiter *w)
{
    if (!w->late_at)
        return;
    *w->late_at = w->late_next;
    if (w->late_next)
        w->late_next->late_at = w->late_at;
    w->late_at = NULL;
}

tenrec_status rref_fetch_begin(struct rref_context *ctx, tenrec_peer from, tenrec_error *err)
{
    if (atomic_fetch_add(&ctx->fetches[from], 1) < RREF_FETCHES)
        return TENREC_OK;
    rref_fetch_end(ctx, from);
    return tenrec_fail(err, TENREC_EAGAIN, "%u fetches of worker %d already wait for values here",
                       RREF_FETCHES, (int)from);
}

void rref_fetch_end(struct rref_context *ctx, tenrec_peer from)
{
    atomic_fetch_sub(&ctx->fetches[from], 1);
}

bool rref_wait(struct tenrec_rref *r, struct rref_waiter *w)
{
    struct rref_context *ctx = r->ctx;
    bool ready;

    w->ref = r;
    w->next = NULL;
    w->late_at = NULL;
    pthread_mutex_lock(&ctx->lock);
    ready = !ctx->open || is_ready(r);
    w->why = is_ready(r) ? r->error : &rref_shut_down;
    if (!ready) {
        *r->last_waiter = w;
        r->last_waiter = &w->next;
        if (w->deadline_ns != CLOCK_NEVER) {
            w->late_next = ctx->late;
            w->late_at = &ctx->late;
            if (ctx->late)
                ctx->late->late_at = &w->late_next;
            ctx->late = w;
        }
    }
    pthread_mutex_unlock(&ctx->lock);
    return ready;
}

static void act_ready(struct rref_acts *acts, struct rref_waiter *w, const tenrec_error *why)
{
    unlink_late(w);
    w->why = why;
    w->next = NULL;
    *(acts->last_ready ? acts->last_ready : &acts->ready) = w;
    acts->last_ready = &w->next;
}

void rref_ready(struct tenrec_rref *r, const tenrec_error *why, struct rref_acts *acts)
{
    struct rref_waiter *w, *next;

    for (w = r->waiters; w; w = next) {
        next = w->next;
        act_ready(acts, w, why);
    }
    r->waiters = NULL;
    r->last_waiter = &r->waiters;
}

void rref_end_wait(struct rref_waiter *w, const tenrec_error *why, struct rref_acts *acts)
{
    struct tenrec_rref *r = w->ref;
    struct rref_waiter **at;

    for (at = &r->waiters; *at != w; at = &(*at)->next)
        ;
    *at = w->next;
    if (r->last_waiter == &w->next)
        r->last_waiter = at;
    act_ready(acts, w, why);
}

uint64_t rref_expire(struct rref_context *ctx, uint64_t now_ns, struct rref_acts *acts)
{
    uint64_t next_ns = CLOCK_NEVER;
    struct rref_waiter *w, *next;

    pthread_mutex_lock(&ctx->lock);
    for (w = ctx->late; w; w = next) {
        next = w->late_next;
        if (w->deadline_ns <= now_ns)
            rref_end_wait(w, &too_late, acts);
        else if (w->deadline_ns < next_ns)
            next_ns = w->deadline_ns;
    }
    pthread_mutex_unlock(&ctx->lock);
    return next_ns;
}

/* ---- control messages ------------------------------------------------------------------------ */

enum { TRIES = 6 }; /* the first and 5 retries */

void rref_job_start(struct rref_job *job, struct rref_context *ctx, struct tenrec_rref *ref,
                    int32_t type, tenrec_peer to, struct rref_id id, struct rref_id fork,
                    struct rref_acts *acts)
{
    *job = (struct rref_job){ .ctx = ctx,
                              .ref = ref,
                              .id = id,
                              .fork = fork,
                              .type = type,
                              .to = to,
                              .most = TRIES,
                              .active = true };
    atomic_fetch_add(&ctx->refs, 1);
    ctx->n_jobs++;
    if (ref)
        ref->jobs++;
    *(acts->last_job ? acts->last_job : &acts->jobs) = job;
    acts->last_job = &job->next;
}

void rref_job_expedite(struct rref_job *job)
{
    struct rref_context *ctx = job->ctx;
    struct rref_job **at = &ctx->postponed;

    atomic_store(&job->most, 1);
    while (*at && *at != job)
        at = &(*at)->next;
    if (!*at)
        return; /* in flight: it ends with its answer */
    *at = job->next;
    job->due_ns = 0;
    job->next = ctx->postponed;
    ctx->postponed = job;
}

static void fork_request_done(struct rref_user *u, const tenrec_error *why, struct rref_acts *acts)
{
    struct rref_context *ctx = u->ref.ctx;

    if (u->state == USER_PENDING) {
        u->state = why ? USER_FAILED : USER_CONFIRMED;
        if (why)
            rref_set_error(&u->ref, why);
        rref_ready(&u->ref, u->ref.error, acts);
    }
    /* Also after a failure: the parent need not wait any more. */
    if (ctx->open)
        rref_job_start(&u->accept, ctx, &u->ref, TENREC_MSG_RREF_CHILD_ACCEPT, u->parent, u->ref.id,
                       u->fork, acts);
}

void rref_job_done(struct rref_job *job, const tenrec_error *why, struct rref_acts *acts)
{
    struct rref_context *ctx = job->ctx;
    struct tenrec_rref *r = job->ref;

    pthread_mutex_lock(&ctx->lock);
    job->active = false;
    ctx->n_jobs--;
    if (r) {
        r->jobs--;
        if (job->type == TENREC_MSG_RREF_FORK_REQUEST)
            fork_request_done(rref_user_of(r), why, acts);
        rref_settle(r, acts);
    }
    pthread_cond_broadcast(&ctx->changed);
    pthread_mutex_unlock(&ctx->lock);
    if (!r)
        free(job);
    rref_context_drop(ctx);
}
