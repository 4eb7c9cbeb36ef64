/* SPDX-License-Identifier: Apache-2.0 */
/* rref_owner.c - the owner's side: values, and the forks of each. */
#include "rpc/rref/rref_table.h"

#include <stdlib.h>

#include "core/base/memory.h"

/* Limit of values, as a peer that requests values that are never made must not fill our memory. */
enum { OWNERS_MAX = 1 << 22 };

struct rref_owner *rref_owner_get(struct rref_context *ctx, struct rref_id id)
{
    struct rref_owner *o = NULL;

    HASH_FIND(hh, ctx->owners, &id, sizeof id, o);
    return o;
}

static struct rref_owner *owner_new(struct rref_context *ctx, struct rref_id id)
{
    struct rref_owner *o = memory_new(1, sizeof *o);

    if (!o)
        return NULL;
    rref_init(&o->ref, ctx, id, ctx->me, true);
    o->creator = -1;
    HASH_ADD(hh, ctx->owners, ref.id, sizeof o->ref.id, o);
    if (hash_has(o))
        return o;
    rref_free(&o->ref);
    return NULL;
}

bool rref_owner_add_fork(struct rref_owner *o, struct rref_id fork, tenrec_peer holder)
{
    size_t before = o->forks.n;

    if (rref_is_gone(o->ref.ctx, holder))
        return true;
    if (!rref_forks_add(&o->forks, fork, holder))
        return false;
    o->ref.ctx->n_forks += o->forks.n - before;
    o->shared = true;
    o->lost = false;
    return true;
}

bool rref_owner_remove_fork(struct rref_owner *o, struct rref_id fork, tenrec_peer holder,
                            struct rref_acts *acts)
{
    if (!rref_forks_remove(&o->forks, fork, holder))
        return false;
    o->ref.ctx->n_forks--;
    rref_owner_settle(o, acts);
    return true;
}

void rref_owner_settle(struct rref_owner *o, struct rref_acts *acts)
{
    struct rref_context *ctx = o->ref.ctx;

    if (o->forks.n == 0)
        pthread_cond_broadcast(&ctx->changed);
    if (o->forks.n > 0 || o->ref.handles > 0 || o->ref.jobs > 0)
        return;
    /* A late request gets ENOTFOUND, and does not wait. */
    if (o->shared && o->done)
        rref_tombs_add(&ctx->tombs, o->ref.id, RREF_ALL_FORKS, -1,
                       o->lost ? RREF_TOMB_LOST : RREF_TOMB_DELETED);
    HASH_DEL(ctx->owners, o);
    rref_act_dead(acts, &o->ref);
}

/* ---- values made here ------------------------------------------------------------- */

static tenrec_status rref_owner_closed(tenrec_error *err)
{
    return tenrec_fail(err, TENREC_ESHUTDOWN, "the worker has been shut down");
}

tenrec_status rref_no_memory(tenrec_error *err)
{
    return tenrec_fail(err, TENREC_ENOMEM, "no memory for a remote reference");
}

tenrec_status rref_local(struct rref_context *ctx, struct tenrec_value *value,
                         struct tenrec_rref **ret, tenrec_error *err)
{
    struct rref_owner *o = NULL;
    tenrec_status st = TENREC_OK;

    pthread_mutex_lock(&ctx->lock);
    if (!ctx->open)
        st = rref_owner_closed(err);
    else if (!(o = owner_new(ctx, rref_new_id(ctx))))
        st = rref_no_memory(err);
    if (o && !value && !rref_owner_add_fork(o, o->ref.id, ctx->me)) {
        HASH_DEL(ctx->owners, o);
        rref_free(&o->ref);
        st = rref_no_memory(err);
    }
    if (st == TENREC_OK) {
        o->ref.handles = 1;
        o->value = value;
        o->done = value != NULL;
        *ret = &o->ref;
    }
    pthread_mutex_unlock(&ctx->lock);
    if (st != TENREC_OK)
        tenrec_value_drop(value);
    return st;
}

/* ---- made for others ---------------------------------------------------------------- */

/* Finds the value, or adds an entry for a value to be made. */
static struct rref_owner *get_or_await(struct rref_context *ctx, struct rref_id id)
{
    struct rref_owner *o = rref_owner_get(ctx, id);

    if (o || HASH_COUNT(ctx->owners) >= OWNERS_MAX)
        return o;
    return owner_new(ctx, id);
}

tenrec_status rref_begin_making(struct rref_context *ctx, struct rref_id id, struct rref_id fork,
                                tenrec_peer from, struct rref_owner **ret, tenrec_error *err)
{
    struct rref_owner *o = NULL;
    tenrec_status st = TENREC_OK;

    pthread_mutex_lock(&ctx->lock);
    if (!ctx->open || ctx->flushed || rref_tombs_find(&ctx->tombs, id, fork, from) ||
        rref_tombs_find(&ctx->tombs, id, RREF_ALL_FORKS, -1)) {
        st = tenrec_fail(err, TENREC_ECANCELED,
                         "the reference was deleted before its value was made");
    } else if (!(o = get_or_await(ctx, id))) {
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory to keep a value");
    } else if (o->done || o->making) {
        st = tenrec_fail(err, TENREC_EEXIST, "the value is made, or being made");
    } else {
        o->making = true;
        o->creator = from;
        o->creator_lost = rref_is_gone(ctx, from);
        o->ref.handles++;
        *ret = o;
    }
    pthread_mutex_unlock(&ctx->lock);
    return st;
}

/* Adds the creator's fork, unless the creator is lost or has deleted it. */
static void add_creators_fork(struct rref_owner *o, struct rref_id fork, tenrec_peer from)
{
    struct rref_context *ctx = o->ref.ctx;
    tenrec_error why;

    if (rref_id_equal(fork, o->ref.id) || o->creator_lost || !ctx->open ||
        rref_tombs_find(&ctx->tombs, o->ref.id, fork, from))
        return;
    if (rref_owner_add_fork(o, fork, from))
        return;
    tenrec_fail(&why, TENREC_ENOMEM, "no memory to keep the value");
    rref_set_error(&o->ref, &why);
    o->shared = true; /* a later request gets ENOTFOUND */
}

void rref_made(struct rref_owner *o, struct rref_id fork, tenrec_peer from,
               struct tenrec_value *value, const tenrec_error *why, struct rref_acts *acts)
{
    struct rref_context *ctx = o->ref.ctx;

    pthread_mutex_lock(&ctx->lock);
    o->making = false;
    if (!o->done) { /* else the call to this worker has failed before */
        add_creators_fork(o, fork, from);
        if (why)
            rref_set_error(&o->ref, why);
        o->value = value;
        value = NULL;
        o->done = true;
        rref_ready(&o->ref, o->ref.error, acts);
    }
    if (rref_id_equal(fork, o->ref.id) && rref_forks_remove(&o->forks, fork, ctx->me))
        ctx->n_forks--;
    o->ref.handles--;
    rref_owner_settle(o, acts);
    pthread_mutex_unlock(&ctx->lock);
    tenrec_value_drop(value);
}

/* ---- requests ---------------------------------------------------------------------------- */

static tenrec_status rref_owner_gone(const struct rref_context *ctx, enum rref_tomb_reason why,
                                     tenrec_error *err)
{
    return tenrec_fail(
        err, TENREC_ENOTFOUND, "'%s' has freed the value: %s", rref_context_name(ctx, ctx->me),
        why == RREF_TOMB_LOST ? "the connection to the holder of its last reference broke"
                              : "the reference to it was deleted");
}

static tenrec_status rref_owner_await(struct rref_context *ctx, struct rref_id id,
                                      struct rref_id fork, tenrec_peer from,
                                      struct rref_owner **ret, tenrec_error *err)
{
    struct rref_owner *o = rref_owner_get(ctx, id);
    const tenrec_peer holder = o ? rref_forks_holder(&o->forks, fork) : -1;
    enum rref_tomb_reason why = rref_tombs_find(&ctx->tombs, id, fork, from);

    if (!ctx->open || ctx->flushed)
        return rref_owner_closed(err);
    if (why == RREF_TOMB_NONE && !o)
        why = rref_tombs_find(&ctx->tombs, id, RREF_ALL_FORKS, -1);
    if (why != RREF_TOMB_NONE)
        return rref_owner_gone(ctx, why, err);
    if (holder >= 0 && holder != from)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "'%s' uses a reference of '%s': each worker must use its own",
                           rref_context_name(ctx, from), rref_context_name(ctx, holder));
    if (!o && HASH_COUNT(ctx->owners) >= OWNERS_MAX)
        return tenrec_fail(err, TENREC_EAGAIN, "'%s' already keeps %d values for others",
                           rref_context_name(ctx, ctx->me), OWNERS_MAX);
    if (!o)
        o = get_or_await(ctx, id);
    if (!o)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory to keep a value");
    *ret = o;
    return TENREC_OK;
}

tenrec_status rref_find(struct rref_context *ctx, struct rref_id id, struct rref_id fork,
                        tenrec_peer from, struct rref_owner **ret, tenrec_error *err)
{
    tenrec_status st;

    pthread_mutex_lock(&ctx->lock);
    st = rref_owner_await(ctx, id, fork, from, ret, err);
    if (st == TENREC_OK)
        (*ret)->ref.handles++;
    pthread_mutex_unlock(&ctx->lock);
    return st;
}

tenrec_status rref_fork_requested(struct rref_context *ctx, struct rref_id id, struct rref_id fork,
                                  tenrec_peer from, tenrec_error *err)
{
    struct rref_acts acts = { 0 };
    struct rref_owner *o = NULL;
    tenrec_status st;

    pthread_mutex_lock(&ctx->lock);
    st = rref_owner_await(ctx, id, fork, from, &o, err);
    if (st == TENREC_OK && !rref_owner_add_fork(o, fork, from))
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory to count a reference");
    if (o)
        rref_owner_settle(o, &acts);
    pthread_mutex_unlock(&ctx->lock);
    rref_acts_run(&acts);
    return st;
}

void rref_user_deleted(struct rref_context *ctx, struct rref_id id, struct rref_id fork,
                       tenrec_peer from, struct rref_acts *acts)
{
    struct rref_owner *o = NULL;

    pthread_mutex_lock(&ctx->lock);
    o = rref_owner_get(ctx, id);
    rref_tombs_add(&ctx->tombs, id, fork, from, RREF_TOMB_DELETED);
    if (o)
        rref_owner_remove_fork(o, fork, from, acts);
    pthread_mutex_unlock(&ctx->lock);
}

/* ---- lost ------------------------------------------------------------------------------------ */

static const tenrec_error asker_lost = { .code = TENREC_EPEER_LOST,
                                         .worker = -1,
                                         .text = "the worker that requested the value is lost" };

struct rref_released rref_owner_lose(struct rref_owner *o, tenrec_peer peer, struct rref_acts *acts)
{
    struct rref_released n = { .forks = rref_forks_remove_of(&o->forks, peer) };
    struct rref_waiter *w, *next;

    o->ref.ctx->n_forks -= n.forks;
    if (o->making && o->creator == peer)
        o->creator_lost = true;
    for (w = o->ref.waiters; w; w = next) {
        next = w->next;
        if (w->from == peer)
            rref_end_wait(w, &asker_lost, acts);
    }
    n.freed = n.forks > 0 && o->forks.n == 0;
    o->lost = o->lost || n.freed;
    rref_owner_settle(o, acts);
    return n;
}
