/* SPDX-License-Identifier: Apache-2.0 */
/* rref_end.c - lost workers, release of all references, leaks, the end of a session. */
#include "rpc/rref/rref_table.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/base/clock.h"

#define LOOK_MAX 4096 /* references that are looked through for those of a worker */

/* ---- a lost worker ----------------------------------------------------------- */

void rref_peer_gone(struct rref_context *ctx, tenrec_peer peer)
{
    pthread_mutex_lock(&ctx->lock);
    ctx->gone[peer] = true;
    pthread_mutex_unlock(&ctx->lock);
}

struct rref_released rref_peer_lost(struct rref_context *ctx, tenrec_peer peer,
                                    const tenrec_error *why, struct rref_acts *acts)
{
    struct rref_released sum = { .forks = 0 }, n;
    struct rref_owner *o, *next_owner;
    struct rref_user *u, *next_user;
    struct rref_child *c, *next_child;

    pthread_mutex_lock(&ctx->lock);
    HASH_ITER(hh, ctx->children, c, next_child)
    {
        if (c->to == peer)
            rref_child_end(ctx, c, acts);
    }
    HASH_ITER(hh, ctx->owners, o, next_owner)
    {
        n = rref_owner_lose(o, peer, acts);
        sum.forks += n.forks;
        sum.freed += n.freed;
    }
    HASH_ITER(hh, ctx->users, u, next_user)
    {
        if (u->ref.owner != peer)
            continue;
        rref_user_lose(u, why, acts);
        sum.jobs += u->job.active;
    }
    pthread_mutex_unlock(&ctx->lock);
    return sum;
}

static bool forks_have(const struct rref_forks *f, tenrec_peer holder)
{
    const struct rref_forks_entry *e = f->table;

    while (e && e->holder != holder)
        e = e->hh.next;
    return e != NULL;
}

bool rref_context_needs(struct rref_context *ctx, tenrec_peer peer)
{
    bool needs;

    pthread_mutex_lock(&ctx->lock);
    needs = HASH_COUNT(ctx->owners) + HASH_COUNT(ctx->users) + HASH_COUNT(ctx->children) +
                ctx->n_forks >
            LOOK_MAX;
    for (const struct rref_child *c = ctx->children; c && !needs; c = c->hh.next)
        needs = c->to == peer;
    for (const struct rref_user *u = ctx->users; u && !needs; u = u->hh.next)
        needs = u->ref.owner == peer;
    for (const struct rref_owner *o = ctx->owners; o && !needs; o = o->hh.next)
        needs = (o->making && o->creator == peer) || forks_have(&o->forks, peer);
    pthread_mutex_unlock(&ctx->lock);
    return needs;
}

/* ---- release ----------------------------------------------------------------- */

void rref_delete_users(struct rref_context *ctx, bool orphans, struct rref_acts *acts)
{
    struct rref_child *c, *next_child;
    struct rref_user *u, *next_user;

    pthread_mutex_lock(&ctx->lock);
    ctx->flushed = ctx->flushed || orphans;
    if (orphans)
        HASH_ITER(hh, ctx->children, c, next_child)
        {
            rref_child_end(ctx, c, acts);
        }
    HASH_ITER(hh, ctx->users, u, next_user)
    {
        if (u->state == USER_PENDING)
            continue; /* in release_all after its deadline */
        u->state = USER_DELETED;
        rref_user_settle(u, acts);
    }
    pthread_mutex_unlock(&ctx->lock);
}

/* Names a pending reference. Returns false if there is none. Lock held. */
static bool rref_end_pending(struct rref_context *ctx, char *text, size_t len)
{
    char name[TENREC_RREF_TEXT_MAX];

    for (struct rref_user *u = ctx->users; u; u = u->hh.next)
        if (u->state == USER_PENDING) {
            snprintf(text, len, "%s has not been confirmed by its owner",
                     tenrec_rref_text(&u->ref, name, sizeof name));
            return true;
        }
    if (ctx->children)
        snprintf(text, len, "'%s' has not accepted %s", rref_context_name(ctx, ctx->children->to),
                 tenrec_rref_text(&ctx->children->parent->ref, name, sizeof name));
    return ctx->children != NULL;
}

/* Names a reference to a value of ours. Returns false if there is none, and no job. Lock held. */
static bool rref_end_referred(struct rref_context *ctx, char *text, size_t len)
{
    char name[TENREC_RREF_TEXT_MAX];

    for (struct rref_owner *o = ctx->owners; o && ctx->n_forks > 0; o = o->hh.next)
        if (o->forks.n > 0) {
            snprintf(text, len, "'%s' still refers to %s",
                     rref_context_name(ctx, o->forks.table->holder),
                     tenrec_rref_text(&o->ref, name, sizeof name));
            return true;
        }
    if (ctx->n_jobs > 0)
        snprintf(text, len, "%zu control messages are not acknowledged", ctx->n_jobs);
    return ctx->n_jobs > 0;
}

static tenrec_status wait_while(struct rref_context *ctx,
                                bool (*goes_on)(struct rref_context *, char *, size_t),
                                uint64_t until_ns, tenrec_error *err)
{
    char text[TENREC_RREF_TEXT_MAX + 160];
    bool left, timely = true;

    pthread_mutex_lock(&ctx->lock);
    while ((left = ctx->open && goes_on(ctx, text, sizeof text)) && timely)
        timely = clock_cond_wait(&ctx->changed, &ctx->lock, until_ns);
    pthread_mutex_unlock(&ctx->lock);
    return left ? tenrec_fail(err, TENREC_ETIMEDOUT, "%s", text) : TENREC_OK;
}

tenrec_status rref_wait_settled(struct rref_context *ctx, uint64_t until_ns, tenrec_error *err)
{
    return wait_while(ctx, rref_end_pending, until_ns, err);
}

tenrec_status rref_wait_released(struct rref_context *ctx, uint64_t until_ns, tenrec_error *err)
{
    return wait_while(ctx, rref_end_referred, until_ns, err);
}

/* ---- leaks ------------------------------------------------------------------------- */

struct leak_report {
    void (*report)(void *arg, const char *text);
    void *arg;
    size_t n;
};

static void report_fork(struct leak_report *leaks, const struct tenrec_rref *r,
                        const struct rref_forks_entry *e)
{
    char name[TENREC_RREF_TEXT_MAX], text[sizeof name + 256];

    snprintf(text, sizeof text, "'%s' still refers to %s with fork (%" PRId64 ", %" PRId64 ")",
             rref_context_name(r->ctx, e->holder), tenrec_rref_text(r, name, sizeof name),
             e->fork.on, e->fork.local);
    leaks->report(leaks->arg, text);
    leaks->n++;
}

static void report_handle(struct leak_report *leaks, const struct tenrec_rref *r)
{
    char name[TENREC_RREF_TEXT_MAX], text[sizeof name + 256];

    tenrec_rref_text(r, name, sizeof name);
    if (r->line > 0)
        snprintf(text, sizeof text, "%s, made at %s:%d, was not dropped", name, r->file, r->line);
    else
        snprintf(text, sizeof text, "%s%s%s was not dropped", name, r->file ? ", " : "",
                 r->file ? r->file : "");
    leaks->report(leaks->arg, text);
    leaks->n++;
}

size_t rref_leaks(struct rref_context *ctx, void (*report)(void *arg, const char *text), void *arg)
{
    struct leak_report leaks = { report, arg, 0 };

    pthread_mutex_lock(&ctx->lock);
    for (struct rref_owner *o = ctx->owners; o; o = o->hh.next) {
        for (const struct rref_forks_entry *e = o->forks.table; e; e = e->hh.next)
            report_fork(&leaks, &o->ref, e);
        if (o->ref.handles > (o->making ? 1U : 0U) && !o->ref.waiters)
            report_handle(&leaks, &o->ref);
    }
    for (struct rref_user *u = ctx->users; u; u = u->hh.next)
        if (u->ref.handles > 0)
            report_handle(&leaks, &u->ref);
    pthread_mutex_unlock(&ctx->lock);
    return leaks.n;
}

/* ---- the end of the session ---------------------------------------------------------- */

void rref_context_close(struct rref_context *ctx, struct rref_acts *acts)
{
    struct rref_child *c, *next_child;
    struct rref_owner *o, *next_owner;
    struct rref_user *u, *next_user;

    pthread_mutex_lock(&ctx->lock);
    ctx->open = false;
    ctx->worker = NULL;
    HASH_ITER(hh, ctx->children, c, next_child)
    {
        rref_child_end(ctx, c, acts);
    }
    HASH_ITER(hh, ctx->owners, o, next_owner)
    {
        ctx->n_forks -= o->forks.n;
        rref_forks_finish(&o->forks);
        rref_ready(&o->ref, &rref_shut_down, acts);
        rref_owner_settle(o, acts);
    }
    HASH_ITER(hh, ctx->users, u, next_user)
    {
        if (u->state == USER_PENDING) {
            u->state = USER_FAILED;
            rref_set_error(&u->ref, &rref_shut_down);
        }
        rref_ready(&u->ref, &rref_shut_down, acts);
        rref_user_settle(u, acts);
    }
    pthread_cond_broadcast(&ctx->changed);
    pthread_mutex_unlock(&ctx->lock);
}
