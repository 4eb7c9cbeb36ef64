/* SPDX-License-Identifier: Apache-2.0 */
/* rref_user.c - the user's side: references to values of other workers, and their forks in flight.
 */
#include "rpc/rref/rref_table.h"

#include <stdlib.h>

#include "core/base/memory.h"

static struct rref_user *user_new(struct rref_context *ctx, const struct rref_fork *f)
{
    struct rref_user *u = memory_new(1, sizeof *u);

    if (!u)
        return NULL;
    rref_init(&u->ref, ctx, f->id, f->owner, false);
    u->fork = f->fork;
    u->parent = f->parent;
    HASH_ADD(hh, ctx->users, fork, sizeof u->fork, u);
    if (hash_has(u)) {
        u->ref.handles = 1;
        return u;
    }
    rref_free(&u->ref);
    return NULL;
}

tenrec_status rref_user_new(struct rref_context *ctx, tenrec_peer owner, struct rref_user **ret,
                            tenrec_error *err)
{
    struct rref_fork f = { .owner = owner, .parent = owner };
    tenrec_status st = TENREC_OK;

    pthread_mutex_lock(&ctx->lock);
    f.id = rref_new_id(ctx);
    f.fork = rref_new_id(ctx);
    if (!ctx->open)
        st = tenrec_fail(err, TENREC_ESHUTDOWN, "the worker has been shut down");
    else if (!(*ret = user_new(ctx, &f)))
        st = rref_no_memory(err);
    pthread_mutex_unlock(&ctx->lock);
    return st;
}

void rref_user_settle(struct rref_user *u, struct rref_acts *acts)
{
    struct rref_context *ctx = u->ref.ctx;
    const bool needed = u->ref.handles > 0 || u->children > 0;

    if (u->state != USER_PENDING)
        pthread_cond_broadcast(&ctx->changed);
    if ((needed && u->state != USER_DELETED) || u->state == USER_PENDING || u->job.active)
        return;
    if (!u->deleted && ctx->open) {
        u->deleted = true;
        rref_job_start(&u->job, ctx, &u->ref, TENREC_MSG_RREF_USER_DELETE, u->ref.owner, u->ref.id,
                       u->fork, acts);
        /* A lost owner has most likely released us. */
        if (u->owner_lost)
            u->job.most = 1;
        return;
    }
    if (needed || u->ref.jobs > 0)
        return;
    HASH_DEL(ctx->users, u);
    rref_act_dead(acts, &u->ref);
}

static void creation_failed(struct tenrec_rref *r, const tenrec_error *why, struct rref_acts *acts)
{
    struct rref_owner *o = rref_owner_of(r);
    tenrec_error reported = *why;

    tenrec_error_prefix(&reported,
                        "RRef creation by remote() on '%s' failed, the value may not exist there",
                        rref_context_name(r->ctx, r->owner));
    if (!o) {
        rref_user_of(r)->state = USER_FAILED;
    } else {
        o->done = o->failed = true;
        if (rref_forks_remove(&o->forks, r->id, r->ctx->me))
            r->ctx->n_forks--;
    }
    rref_set_error(r, &reported);
    rref_ready(r, r->error, acts);
}

void rref_created(struct tenrec_rref *r, const tenrec_error *why, struct rref_acts *acts)
{
    struct rref_context *ctx = r->ctx;
    struct rref_user *u = rref_user_of(r);

    pthread_mutex_lock(&ctx->lock);
    if (u ? u->state == USER_PENDING : !rref_owner_of(r)->done) {
        if (why) {
            creation_failed(r, why, acts);
        } else if (u) {
            u->state = USER_CONFIRMED;
            rref_ready(r, NULL, acts);
        }
    }
    r->handles--; /* of the creation */
    rref_settle(r, acts);
    pthread_mutex_unlock(&ctx->lock);
}

/* ---- outgoing forks --------------------------------------------------------------- */

static tenrec_status add_child(struct rref_user *u, struct rref_id fork, tenrec_peer to,
                               tenrec_error *err)
{
    struct rref_context *ctx = u->ref.ctx;
    struct rref_child *c = memory_new(1, sizeof *c);

    if (!c)
        return rref_no_memory(err);
    *c = (struct rref_child){ .fork = fork, .parent = u, .to = to };
    HASH_ADD(hh, ctx->children, fork, sizeof c->fork, c);
    if (!hash_has(c)) {
        free(c);
        return rref_no_memory(err);
    }
    u->children++;
    return TENREC_OK;
}

tenrec_status rref_fork_for(struct tenrec_rref *r, tenrec_peer to, struct rref_fork *ret,
                            tenrec_error *err)
{
    struct rref_context *ctx = r->ctx;
    struct rref_user *u = rref_user_of(r);
    tenrec_status st = rref_usable(r, err);

    if (st != TENREC_OK)
        return st;
    pthread_mutex_lock(&ctx->lock);
    *ret = (struct rref_fork){ r->id, rref_new_id(ctx), r->owner, ctx->me };
    if (!ctx->open) {
        st = tenrec_fail(err, TENREC_ESHUTDOWN, "the worker has been shut down");
    } else if (rref_is_gone(ctx, to)) {
        st = tenrec_fail(err, TENREC_EPEER_UNKNOWN, "worker '%s' has left the group",
                         rref_context_name(ctx, to));
    } else if (u && u->state == USER_DELETED) {
        st = tenrec_fail(err, TENREC_ENOTFOUND, "the remote reference has been deleted here");
    } else if (u) {
        st = add_child(u, ret->fork, to, err);
    } else if (!rref_owner_add_fork(rref_owner_of(r), ret->fork, to)) {
        st = rref_no_memory(err);
    }
    pthread_mutex_unlock(&ctx->lock);
    return st;
}

void rref_child_end(struct rref_context *ctx, struct rref_child *c, struct rref_acts *acts)
{
    struct rref_user *parent = c->parent;

    HASH_DEL(ctx->children, c);
    free(c);
    parent->children--;
    rref_user_settle(parent, acts);
    pthread_cond_broadcast(&ctx->changed);
}

void rref_child_arrived(struct rref_context *ctx, struct rref_id fork, tenrec_peer from,
                        struct rref_acts *acts)
{
    struct rref_child *c;

    pthread_mutex_lock(&ctx->lock);
    HASH_FIND(hh, ctx->children, &fork, sizeof fork, c);
    if (c && (from < 0 || from == c->to))
        rref_child_end(ctx, c, acts);
    pthread_mutex_unlock(&ctx->lock);
}

void rref_unfork(struct rref_context *ctx, struct rref_id id, struct rref_id fork,
                 struct rref_acts *acts)
{
    struct rref_owner *o;
    tenrec_peer holder;

    pthread_mutex_lock(&ctx->lock);
    o = rref_owner_get(ctx, id);
    holder = o ? rref_forks_holder(&o->forks, fork) : -1;
    if (o && rref_owner_remove_fork(o, fork, -1, acts))
        rref_tombs_add(&ctx->tombs, id, fork, holder, RREF_TOMB_DELETED);
    pthread_mutex_unlock(&ctx->lock);
    rref_child_arrived(ctx, fork, -1, acts);
}

/* ---- incoming forks -------------------------------------------------------------------- */

static tenrec_status check_fork(const struct rref_context *ctx, const struct rref_fork *f,
                                tenrec_error *err)
{
    if (f->owner >= 0 && (size_t)f->owner < ctx->n_names && f->parent >= 0 &&
        (size_t)f->parent < ctx->n_names)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EPROTOCOL,
                       "remote reference of worker %d from worker %d: ids are below %zu", f->owner,
                       f->parent, ctx->n_names);
}

/* A fork that returns to its owner is not counted; in flight it kept its parent. */
static tenrec_status arrive_at_owner(struct rref_context *ctx, const struct rref_fork *f,
                                     struct rref_job *accept, struct tenrec_rref **ret,
                                     struct rref_acts *acts, tenrec_error *err)
{
    struct rref_owner *o = NULL;
    tenrec_status st = rref_find(ctx, f->id, f->fork, f->parent, &o, err);

    if (st != TENREC_OK)
        return st;
    pthread_mutex_lock(&ctx->lock);
    if (accept)
        rref_job_start(accept, ctx, NULL, TENREC_MSG_RREF_CHILD_ACCEPT, f->parent, f->id, f->fork,
                       acts);
    else
        rref_owner_remove_fork(o, f->fork, -1, acts);
    pthread_mutex_unlock(&ctx->lock);
    *ret = &o->ref;
    return TENREC_OK;
}

static void fork_request(struct rref_user *u, const struct rref_fork *f, struct rref_acts *acts)
{
    rref_job_start(&u->job, u->ref.ctx, &u->ref, TENREC_MSG_RREF_FORK_REQUEST, f->owner, f->id,
                   f->fork, acts);
    u->job.ask.from = f->parent;
    u->job.ask.version = f->version;
}

static tenrec_status arrive_at_user(struct rref_context *ctx, const struct rref_fork *f,
                                    struct tenrec_rref **ret, struct rref_acts *acts,
                                    tenrec_error *err)
{
    struct rref_user *u;

    if (!ctx->open || ctx->flushed)
        return tenrec_fail(err, TENREC_ESHUTDOWN, "the worker has been shut down");
    HASH_FIND(hh, ctx->users, &f->fork, sizeof f->fork, u);
    if (u && (u->deleted || !rref_id_equal(u->ref.id, f->id)))
        return tenrec_fail(err, TENREC_ENOTFOUND, "the remote reference has been deleted");
    if (u) { /* a duplicate message */
        u->ref.handles++;
        *ret = &u->ref;
        return TENREC_OK;
    }
    u = user_new(ctx, f);
    if (!u)
        return rref_no_memory(err);
    if (f->parent == f->owner)
        u->state = USER_CONFIRMED; /* counted by the owner before it was sent */
    else
        fork_request(u, f, acts);
    *ret = &u->ref;
    return TENREC_OK;
}

tenrec_status rref_arrive(struct rref_context *ctx, const struct rref_fork *f,
                          struct tenrec_rref **ret, struct rref_acts *acts, tenrec_error *err)
{
    struct rref_job *accept = NULL;
    tenrec_status st = check_fork(ctx, f, err);

    if (st != TENREC_OK)
        return st;
    if (f->owner != ctx->me) {
        pthread_mutex_lock(&ctx->lock);
        st = arrive_at_user(ctx, f, ret, acts, err);
        pthread_mutex_unlock(&ctx->lock);
        return st;
    }
    if (f->parent != ctx->me && !(accept = memory_new(1, sizeof *accept)))
        return rref_no_memory(err);
    st = arrive_at_owner(ctx, f, accept, ret, acts, err);
    if (st != TENREC_OK)
        free(accept);
    return st;
}

void rref_refuse(struct rref_context *ctx, const struct rref_fork *f, struct rref_acts *acts)
{
    const bool from_owner = f->parent == f->owner;
    struct rref_user *u;
    struct rref_job *job;

    if (check_fork(ctx, f, NULL) != TENREC_OK)
        return;
    if (from_owner && f->owner == ctx->me) {
        rref_unfork(ctx, f->id, f->fork, acts);
        return;
    }
    job = memory_new(1, sizeof *job);
    if (!job)
        return; /* the sender keeps the fork until either worker leaves */
    pthread_mutex_lock(&ctx->lock);
    /* A known fork: the message is a duplicate, and was accepted before. */
    HASH_FIND(hh, ctx->users, &f->fork, sizeof f->fork, u);
    if (ctx->open && !u)
        rref_job_start(job, ctx, NULL,
                       from_owner ? TENREC_MSG_RREF_USER_DELETE : TENREC_MSG_RREF_CHILD_ACCEPT,
                       f->parent, f->id, f->fork, acts);
    else
        free(job);
    pthread_mutex_unlock(&ctx->lock);
}

/* ---- lost ------------------------------------------------------------------------------------ */

void rref_user_lose(struct rref_user *u, const tenrec_error *why, struct rref_acts *acts)
{
    u->owner_lost = true;
    if (u->job.active)
        rref_job_expedite(&u->job);
    if (u->state == USER_DELETED)
        return;
    rref_set_error(&u->ref, why);
    if (u->state == USER_PENDING || u->state == USER_CONFIRMED) {
        u->state = USER_FAILED;
        rref_ready(&u->ref, u->ref.error, acts);
    }
    rref_user_settle(u, acts);
}
