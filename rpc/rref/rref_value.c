/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/rref/rref.h"

#include <stddef.h>
#include <stdlib.h>

#include "core/base/memory.h"
#include "rpc/call/call.h"
#include "rpc/call/calls.h"
#include "rpc/future/thread_state.h"
#include "rpc/future/worker.h"
#include "rpc/rref/rref_context.h"
#include "rpc/value/value.h"
#include "rpc/value/value_block.h"

/* ---- outgoing ------------------------------------------------------------------- */

/* A reference in a message: a fork, or a reference that is held while the message is in flight. */
struct transfer_item {
    struct rref_id id, fork;
    struct tenrec_rref *held;
};

struct rref_transfer {
    struct call_hook hook; /* first */
    struct call_sent_hook sent_hook;
    struct rref_context *ctx; /* shared */
    bool one_way;
    bool unwritten;    /* set by the sent hook, read by the last of the two hooks */
    atomic_uint hooks; /* still to run; 0 if none was set */
    size_t n, room;
    struct transfer_item *item;
};

static void transfer_release(struct rref_transfer *t, enum transfer_outcome outcome)
{
    struct rref_acts acts = { 0 };

    for (size_t i = 0; i < t->n; i++) {
        if (t->item[i].held)
            rref_release(t->item[i].held, &acts);
        else if (outcome == TRANSFER_TAKEN)
            rref_child_arrived(t->ctx, t->item[i].fork, -1, &acts);
        else if (outcome == TRANSFER_REFUSED)
            rref_unfork(t->ctx, t->item[i].id, t->item[i].fork, &acts);
    }
    t->n = 0;
    rref_acts_run(&acts);
}

static void rref_transfer_end(struct rref_transfer *t, enum transfer_outcome outcome)
{
    transfer_release(t, outcome);
    rref_context_drop(t->ctx);
    free(t->item);
    free(t);
}

static enum transfer_outcome rref_outcome_of(const tenrec_error *why)
{
    if (!why || (why->flags & TENREC_ERROR_CALLEE))
        return TRANSFER_TAKEN;
    switch (why->code) {
    case TENREC_ETIMEDOUT:
    case TENREC_ECANCELED:
        return TRANSFER_UNSURE;
    default:
        return TRANSFER_REFUSED;
    }
}

/* A hook ran: the outcome of a call settles the transfer if it is certain, else the last hook does.
 */
static void transfer_hook_end(struct rref_transfer *t, enum transfer_outcome outcome)
{
    if (outcome != TRANSFER_UNSURE)
        transfer_release(t, outcome);
    if (atomic_fetch_sub(&t->hooks, 1) == 1)
        rref_transfer_end(t, t->unwritten ? TRANSFER_REFUSED : TRANSFER_UNSURE);
}

static void transfer_done(struct call_hook *h, struct tenrec_worker *w, const tenrec_error *why)
{
    struct rref_transfer *t = (struct rref_transfer *)(void *)h;

    (void)w;
    transfer_hook_end(t, t->one_way && !why ? TRANSFER_UNSURE : rref_outcome_of(why));
}

static void transfer_sent(struct call_sent_hook *h, const tenrec_error *why)
{
    struct rref_transfer *t =
        (struct rref_transfer *)(void *)((char *)h - offsetof(struct rref_transfer, sent_hook));

    t->unwritten = why != NULL;
    transfer_hook_end(t, TRANSFER_UNSURE);
}

static struct transfer_item *next_item(struct transfer_out *out, struct rref_context *ctx)
{
    struct rref_transfer *t = out->transfer;
    struct transfer_item *more;

    if (!t && (t = memory_new(1, sizeof *t))) {
        t->hook.done = transfer_done;
        t->sent_hook.sent = transfer_sent;
        t->ctx = ctx;
        atomic_fetch_add(&t->ctx->refs, 1);
        out->transfer = t;
    }
    more = t ? memory_grow(t->item, t->n, &t->room, sizeof *more) : NULL;
    if (!more)
        return NULL;
    t->item = more;
    return &more[t->n];
}

static tenrec_status rref_out_fork(struct codec_refs *refs, struct tenrec_rref *r, bool deref,
                                   struct rref_fork *ret, tenrec_error *err)
{
    struct transfer_out *out = (struct transfer_out *)(void *)refs;
    struct transfer_item *item;
    struct tenrec_worker *w;
    tenrec_status st = rref_context_enter(r->ctx, &w, err);

    if (st != TENREC_OK)
        return st;
    worker_leave(w);
    if (w != out->worker)
        return tenrec_fail(err, TENREC_EINVAL,
                           "the remote reference belongs to another worker of this process");
    if (out->to < 0)
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "remote references can be sent to members of the group only");
    item = next_item(out, r->ctx);
    if (!item)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory to send a remote reference");
    if (deref) {
        const struct rref_user *u = rref_user_of(r);
        st = rref_usable(r, err);
        *ret = (struct rref_fork){ r->id, u ? u->fork : r->id, r->owner, r->ctx->me };
    } else {
        st = rref_fork_for(r, out->to, ret, err);
        /* The receiver asks a third worker, which may not be in its view yet. */
        if (st == TENREC_OK && ret->owner != ret->parent && ret->owner != out->to)
            ret->version = atomic_load(&w->calls->view_version);
    }
    if (st != TENREC_OK)
        return st;
    *item = (struct transfer_item){ ret->id, ret->fork, deref ? tenrec_rref_share(r) : NULL };
    out->transfer->n++;
    return rref_linked_out(w, out->to, ret, err);
}

static void rref_transfer_follow(struct rref_transfer *t, struct call_spec *spec, bool one_way)
{
    t->one_way = one_way;
    atomic_store(&t->hooks, 2);
    t->hook.next = spec->hook;
    spec->hook = &t->hook;
    spec->sent_hook = &t->sent_hook;
}

/* ---- incoming ---------------------------------------------------------------------- */

struct incoming {
    struct tenrec_worker *w;
    tenrec_peer from;
    const struct tenrec_value *deref; /* the argument that may be a value of ours */
    bool refuse;                      /* resolve nothing, notify the senders of forks */
    struct rref_acts acts;
};

static tenrec_status resolve_values(struct incoming *t, struct tenrec_value *v, size_t n,
                                    tenrec_error *err);

static tenrec_status resolve_rref(struct incoming *t, struct tenrec_value *v,
                                  const struct rref_fork *f, tenrec_error *err)
{
    struct rref_context *ctx = rref_context_of(t->w);
    struct tenrec_rref *r = NULL;
    struct rref_owner *o;
    tenrec_status st;

    if (v->flags & CODEC_DEREF) {
        if (v != t->deref || t->from < 0)
            return tenrec_fail(
                err, TENREC_EPROTOCOL,
                "malformed message: a referenced value is only allowed as the first argument");
        st = rref_find(ctx, f->id, f->fork, t->from, &o, err);
        r = st == TENREC_OK ? &o->ref : NULL;
    } else if (f->parent != t->from || t->from < 0 || f->fork.on != t->from) {
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "a remote reference from worker %d names worker %d as its parent, and "
                           "has an id of worker %lld",
                           t->from, f->parent, (long long)f->fork.on);
    } else {
        st = rref_arrive(ctx, f, &r, &t->acts, err);
    }
    if (st != TENREC_OK)
        return st;
    v->flags &= CODEC_DEREF;
    v->u.rref = r;
    return TENREC_OK;
}

/* The encoded value is in the same block as `v`: frees only its contents. */
static tenrec_status resolve_object(struct incoming *t, struct tenrec_value *v, tenrec_error *err)
{
    struct tenrec_entry *entry = (struct tenrec_entry *)(uintptr_t)v->u.map;
    struct tenrec_object *o = NULL;
    tenrec_status st = resolve_values(t, &entry->value, 1, err);
    struct future_scope *scope;

    if (st != TENREC_OK || t->refuse)
        return st;
    scope = thread_lend();
    st = object_decode(&rrefs_of(t->w)->types, entry->key, &entry->value, &o, err);
    thread_back(scope);
    if (st != TENREC_OK)
        return st;
    values_finish(&entry->value, 1);
    v->flags = 0;
    v->u.object = o;
    return TENREC_OK;
}

static tenrec_status resolve_ref(struct incoming *t, struct tenrec_value *v, tenrec_error *err)
{
    struct rref_fork f;
    tenrec_status st;

    if (v->type == TENREC_VALUE_OBJECT)
        return resolve_object(t, v, err);
    f = *(const struct rref_fork *)v->u.bytes;
    if (v->flags & CODEC_DEREF)
        f.owner = f.parent = 0; /* not in the message */
    st = rref_linked_in(t->w, t->from, &f, err);
    if (st == TENREC_OK && !t->refuse)
        return resolve_rref(t, v, &f, err);
    if (st == TENREC_OK && !(v->flags & CODEC_DEREF) && f.parent == t->from)
        rref_refuse(rref_context_of(t->w), &f, &t->acts);
    return t->refuse ? TENREC_OK : st;
}

static tenrec_status resolve_values(struct incoming *t, struct tenrec_value *v, size_t n,
                                    tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (size_t i = 0; i < n && st == TENREC_OK; i++) {
        if (v[i].flags & CODEC_UNTAKEN)
            st = resolve_ref(t, &v[i], err);
        else if (v[i].type == TENREC_VALUE_ARRAY)
            st = resolve_values(t, (struct tenrec_value *)(uintptr_t)v[i].u.array, (size_t)v[i].n,
                                err);
        else if (v[i].type == TENREC_VALUE_MAP)
            for (uint64_t k = 0; k < v[i].n && st == TENREC_OK; k++)
                st = resolve_values(t, (struct tenrec_value *)(uintptr_t)&v[i].u.map[k].value, 1,
                                    err);
    }
    return st;
}

tenrec_status rrefs_take(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_value *v,
                         size_t n, bool deref, tenrec_error *err)
{
    struct tenrec_value *values = (struct tenrec_value *)(uintptr_t)v;
    struct incoming t = { .w = w, .from = from, .deref = deref ? v : NULL };
    tenrec_status st = resolve_values(&t, values, n, err);

    if (st != TENREC_OK) {
        t.refuse = true;
        resolve_values(&t, values, n, NULL);
    }
    rref_acts_run(&t.acts);
    return st;
}

void rrefs_forget(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_msg *msg)
{
    struct incoming t = { .w = w, .from = from, .refuse = true };
    struct tenrec_value *value = NULL, *args = NULL;
    bool refers = false;

    if (from < 0 || !codec_may_refer(msg))
        return;
    if (msg->type & TENREC_MSG_RESPONSE_BIT) {
        if (codec_read_value_refs(msg, &value, &refers, NULL) == TENREC_OK)
            resolve_values(&t, value, 1, NULL);
        tenrec_value_drop(value);
    } else {
        struct codec_call call;
        if (codec_read_call(msg, &call, NULL) == TENREC_OK) {
            args = (struct tenrec_value *)(uintptr_t)call.args;
            resolve_values(&t, args, call.n, NULL);
            codec_call_finish(&call);
        }
    }
    rref_acts_run(&t.acts);
}

const struct transfer_ops rref_transfers = {
    .fork = rref_out_fork,
    .end = rref_transfer_end,
    .follow = rref_transfer_follow,
    .take = rrefs_take,
    .forget = rrefs_forget,
};
