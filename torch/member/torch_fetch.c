/* SPDX-License-Identifier: Apache-2.0 */

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/config/config.h"
#include "torch/member/member.h"
#include "torch/member/references.h"

#include <stdlib.h>
#include <tenrec/message.h>

/* A fetch that waits. */
struct torch_fetch {
    struct rref_waiter waiter; /* first; holds the reference */
    struct tenrec_torch_member *member;
    struct tenrec_msg *msg; /* owns */
};

/* (tensors..., pickle of the value), or to TorchScript (value) */
static tenrec_status fetch_write(struct torch_fetch *f, struct tenrec_msg **ret, tenrec_error *err)
{
    const struct tenrec_value *v = rref_owner_of(f->waiter.ref)->value;
    const bool script = f->msg->type == TENREC_MSG_SCRIPT_RREF_FETCH_CALL;
    struct outgoing refs = { .ctx = f->member->refs, .to = f->waiter.from };
    struct pickler p = { .jit = true, .refs = &refs }, inner = { .jit = false, .refs = &refs };
    tenrec_status st;

    pickler_begin(&p);
    pickler_op(&p, '(');
    if (script) {
        pickler_value(&p, v);
    } else {
        pickler_begin(&inner);
        pickler_value(&inner, v);
        pickler_end(&inner);
        pickler_nest(&p, &inner);
    }
    pickler_op(&p, 't');
    pickler_end(&p);
    st = pickler_message(&p, script ? TENREC_MSG_SCRIPT_RREF_FETCH_RET : TENREC_MSG_RREF_FETCH_RET,
                         ret, err);
    if (st == TENREC_OK)
        outgoing_finish(&refs);
    else
        outgoing_undo(&refs);
    return st;
}

static void fetch_ready(struct rref_waiter *w, const tenrec_error *why)
{
    struct torch_fetch *f = (struct torch_fetch *)(void *)w;
    struct tenrec_msg *answer = NULL;
    tenrec_error err;

    if (!why && fetch_write(f, &answer, &err) != TENREC_OK)
        why = &err;
    if (why)
        torch_requests_fail(f->member, w->from, f->msg, why);
    else
        torch_requests_answer(f->member, w->from, f->msg, answer);
    rref_fetch_end(w->ref->ctx, w->from);
    tenrec_rref_drop(w->ref);
    f->msg->release(f->msg);
    free(f);
}

/* A value that no worker has begun to make may never be. */
static uint64_t fetch_deadline(const struct tenrec_torch_member *m, struct tenrec_rref *r)
{
    bool making;

    pthread_mutex_lock(&r->ctx->lock);
    making = rref_owner_of(r)->making;
    pthread_mutex_unlock(&r->ctx->lock);
    return making ? CLOCK_NEVER : clock_deadline_ms(m->settings->rpc_timeout_ms);
}

tenrec_status torch_fetch_serve(struct tenrec_torch_member *m, tenrec_peer from,
                                struct tenrec_msg *msg, struct rref_id id, tenrec_error *err)
{
    struct torch_fetch *f = memory_new(1, sizeof *f);
    struct rref_owner *o;
    uint64_t deadline_ns;
    tenrec_status st = f ? rref_fetch_begin(m->refs, from, err)
                         : tenrec_fail(err, TENREC_ENOMEM, "no memory for a fetch");

    if (st == TENREC_OK) {
        /* torch's fetch does not name the fork. */
        st = rref_find(m->refs, id, RREF_ALL_FORKS, from, &o, err);
        if (st != TENREC_OK)
            rref_fetch_end(m->refs, from);
    }
    if (st != TENREC_OK) {
        free(f);
        return st;
    }
    deadline_ns = fetch_deadline(m, &o->ref);
    *f = (struct torch_fetch){
        .waiter = { .deadline_ns = deadline_ns, .from = from, .ready = fetch_ready },
        .member = m,
        .msg = msg
    };
    if (rref_wait(&o->ref, &f->waiter))
        fetch_ready(&f->waiter, f->waiter.why);
    else if (deadline_ns != CLOCK_NEVER)
        tenrec_chain_wake_at(m->chain, deadline_ns);
    return TENREC_OK;
}
