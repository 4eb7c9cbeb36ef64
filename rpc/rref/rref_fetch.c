/* SPDX-License-Identifier: Apache-2.0 */
/* rref_fetch.c - fetches of referenced values: a copy from the owner, or the local value. */
#include <tenrec/message.h>
#include <tenrec/rref.h>

#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/tensor/device.h"
#include "rpc/call/calls.h"
#include "rpc/future/future.h"
#include "rpc/future/thread_state.h"
#include "rpc/future/worker.h"
#include "rpc/rref/rref.h"
#include "rpc/rref/rref_context.h"
#include "rpc/value/value.h"

/* ---- at the owner ------------------------------------------------------------ */

/* Completes a future once a local value is made; holds the reference. */
struct local_fetch {
    struct rref_waiter waiter;    /* first */
    struct tenrec_future *future; /* shared */
    struct tenrec_tensor *into;   /* shared; may be NULL */
    bool copy;
};

static struct tenrec_value *first_tensor(struct tenrec_value *v)
{
    struct tenrec_value *found = NULL;

    if (v->type == TENREC_VALUE_TENSOR)
        return v;
    for (uint64_t i = 0; i < v->n && !found; i++) {
        if (v->type == TENREC_VALUE_ARRAY)
            found = first_tensor((struct tenrec_value *)(uintptr_t)&v->u.array[i]);
        else if (v->type == TENREC_VALUE_MAP)
            found = first_tensor((struct tenrec_value *)(uintptr_t)&v->u.map[i].value);
        else
            break;
    }
    return found;
}

/* For local values; an agent receives into the tensor itself. */
static tenrec_status copy_into(struct tenrec_tensor *into, struct tenrec_value *v,
                               struct streams *ready, tenrec_error *err)
{
    struct tenrec_value *t = first_tensor(v);
    const struct tenrec_tensor_desc *to = tenrec_tensor_desc(into), *from;

    if (!t)
        return TENREC_OK;
    from = tenrec_tensor_desc(t->u.tensor);
    if (from->ndim != to->ndim || memcmp(&from->dtype, &to->dtype, sizeof to->dtype) != 0 ||
        memcmp(from->shape, to->shape, from->ndim * sizeof *from->shape) != 0)
        return tenrec_fail(err, TENREC_EINVAL,
                           "the tensor has another dtype or shape than 'into' (to_here)");
    if (!recv_alloc_is_plain(t->u.tensor) || from->device.kind != to->device.kind)
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "the tensor is not contiguous, or 'into' is on another kind of device");
    if (from->device.kind == TENREC_CPU)
        memmove(tenrec_tensor_data(into), tenrec_tensor_data(t->u.tensor),
                (size_t)tenrec_tensor_bytes(t->u.tensor));
    else if (device_tensor_copy(t->u.tensor, into, ready, err) != TENREC_OK)
        return err->code;
    tenrec_tensor_drop(t->u.tensor);
    t->u.tensor = tenrec_tensor_share(into);
    return TENREC_OK;
}

static void local_fetch_done(struct rref_waiter *w, const tenrec_error *why)
{
    struct local_fetch *l = (struct local_fetch *)(void *)w;
    struct streams *streams = why ? NULL : streams_share(rref_owner_of(w->ref)->streams);
    struct tenrec_value *copy = NULL;
    tenrec_error err;
    tenrec_status st = TENREC_OK;

    if (!why && l->copy)
        st = tenrec_value_copy(rref_owner_of(w->ref)->value, &copy, &err);
    if (copy && l->into)
        st = copy_into(l->into, copy, streams, &err);
    if (st != TENREC_OK) {
        tenrec_value_drop(copy);
        why = &err;
    }
    if (why) { /* may belong to the reference */
        err = *why;
        why = &err;
    }
    /* Before the future is completed: its waiter may check for leaks. */
    tenrec_rref_drop(w->ref);
    if (why) {
        future_complete_error(l->future, why);
        streams_drop(streams);
    } else {
        future_complete_ready(l->future, copy, streams);
    }
    tenrec_future_drop(l->future);
    tenrec_tensor_drop(l->into);
    free(l);
}

/* Makes a future of a local value; with `copy` its result is a copy, else nil. */
static tenrec_status rref_fetch_local(struct tenrec_rref *r, bool copy, struct tenrec_tensor *into,
                                      uint64_t deadline_ns, struct tenrec_future **ret,
                                      tenrec_error *err)
{
    struct local_fetch *l = memory_new(1, sizeof *l);
    struct tenrec_future *f = l ? future_make() : NULL;

    if (!f) {
        free(l);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory to wait for a value");
    }
    *l = (struct local_fetch){
        .waiter = { .deadline_ns = deadline_ns, .from = -1, .ready = local_fetch_done },
        .future = tenrec_future_share(f),
        .into = into ? tenrec_tensor_share(into) : NULL,
        .copy = copy
    };
    if (rref_wait(tenrec_rref_share(r), &l->waiter))
        local_fetch_done(&l->waiter, l->waiter.why);
    else
        rrefs_arm(r->ctx, deadline_ns);
    *ret = f;
    return TENREC_OK;
}

/* ---- at a user ------------------------------------------------------------------ */

/* Holds the reference during the fetch. If the creation fails first, the fetch fails with it. */
struct fetching {
    struct call_hook hook;     /* first; drops one of the two shares */
    struct rref_waiter waiter; /* of the creation; drops the other */
    struct tenrec_worker *w;
    struct tenrec_rref *ref;
    struct tenrec_future *future; /* shared; set before the waiter waits */
    atomic_uint shares;
};

static void fetching_drop(struct fetching *f)
{
    if (atomic_fetch_sub(&f->shares, 1) != 1)
        return;
    tenrec_future_drop(f->future);
    tenrec_rref_drop(f->ref);
    free(f);
}

static void rref_fetch_fetched(struct call_hook *h, struct tenrec_worker *w,
                               const tenrec_error *why)
{
    (void)w, (void)why;
    fetching_drop((struct fetching *)(void *)h);
}

static void creation_ended(struct rref_waiter *waiter, const tenrec_error *why)
{
    struct fetching *f =
        (struct fetching *)(void *)((char *)waiter - offsetof(struct fetching, waiter));

    if (why && worker_enter(f->w, NULL) == TENREC_OK) {
        call_fail_one(f->w, f->future, why);
        worker_leave(f->w);
    }
    fetching_drop(f);
}

static tenrec_status rref_fetch_send(struct tenrec_worker *w, struct fetching *f,
                                     struct call_spec *spec, struct tenrec_future **ret,
                                     tenrec_error *err)
{
    struct tenrec_rref *r = f->ref;
    const struct rref_user *u = rref_user_of(r);
    struct rref_fork named = { r->id, u->fork, r->owner, w->self.id };
    struct tenrec_msg *msg;
    tenrec_status st = rref_linked_out(w, r->owner, &named, err);

    if (st == TENREC_OK) {
        const int64_t number[] = { named.id.on, named.id.local, named.fork.on, named.fork.local,
                                   spec->timeout_ms == TENREC_TIMEOUT_NONE ? 0 : spec->timeout_ms };
        st = rref_numbers_write(TENREC_MSG_RREF_FETCH_CALL, number, 5, &msg, err);
    }
    if (st != TENREC_OK)
        return st;
    msg->key_len = (uint32_t)msg->payload_len;
    spec->to = r->owner;
    spec->hook = &f->hook;
    return call_send(w, spec, msg, ret, err);
}

static tenrec_status rref_fetch_fetch(struct tenrec_worker *w, struct tenrec_rref *r,
                                      struct call_spec *spec, struct tenrec_future **ret,
                                      tenrec_error *err)
{
    struct fetching *f = memory_new(1, sizeof *f);
    tenrec_status st;

    if (!f)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a fetch");
    *f = (struct fetching){
        .hook = { .done = rref_fetch_fetched },
        .waiter = { .deadline_ns = CLOCK_NEVER, .from = -1, .ready = creation_ended },
        .w = w,
        .ref = tenrec_rref_share(r),
        .shares = 2
    };
    st = rref_fetch_send(w, f, spec, ret, err);
    if (st != TENREC_OK) {
        atomic_store(&f->shares, 1);
        fetching_drop(f);
        return st;
    }
    f->future = tenrec_future_share(*ret);
    if (rref_wait(r, &f->waiter))
        creation_ended(&f->waiter, f->waiter.why);
    return TENREC_OK;
}

/* ---- both ------------------------------------------------------------------------- */

/* op       as in call_spec
 * waits    the thread waits for the future next */
static tenrec_status rref_fetch_start(struct tenrec_rref *r, const char *op,
                                      const struct tenrec_call_options *o, bool waits,
                                      bool want_value, struct tenrec_future **ret,
                                      tenrec_error *err)
{
    struct call_spec spec = {
        .function = "to_here", .op = op, .want_value = want_value, .polled = waits
    };
    struct tenrec_tensor *into;
    struct tenrec_worker *w;
    tenrec_status st = o ? call_check_options(o, TENREC_WAIT_NEXT, err) : TENREC_OK;

    if (st == TENREC_OK)
        st = rref_usable(r, err);
    if (st == TENREC_OK)
        st = rref_context_enter(r->ctx, &w, err);
    if (st != TENREC_OK)
        return st;
    into = o ? o->into : NULL;
    st = call_begin_into(into, &spec.into, err);
    if (st != TENREC_OK) {
        worker_leave(w);
        return st;
    }
    st = call_begin_now(w, &spec, o ? o->timeout_ms : TENREC_TIMEOUT_DEFAULT, err);
    if (st == TENREC_OK)
        st = r->is_owner ? rref_fetch_local(r, want_value, spec.into, spec.deadline_ns, ret, err)
                         : rref_fetch_fetch(w, r, &spec, ret, err);
    call_end_into(into, spec.into);
    worker_leave(w);
    return st;
}

tenrec_status tenrec_rref_to_here_async(struct tenrec_rref *r,
                                        const struct tenrec_call_options *options,
                                        struct tenrec_future **ret, tenrec_error *err)
{
    *ret = NULL;
    return rref_fetch_start(r, "to_here_async", options,
                            options && (options->flags & TENREC_WAIT_NEXT), true, ret, err);
}

static tenrec_status may_wait(const char *op, tenrec_error *err)
{
    if (thread_state.no_block == 0)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EWOULDBLOCK,
                       "%s: an inline function or a callback may not wait for a value", op);
}

tenrec_status tenrec_rref_to_here(struct tenrec_rref *r, const struct tenrec_call_options *options,
                                  struct tenrec_value **ret, tenrec_error *err)
{
    struct tenrec_future *f;
    tenrec_status st = may_wait("to_here", err);

    if (ret)
        *ret = NULL;
    if (st == TENREC_OK)
        st = rref_fetch_start(r, "to_here", options, true, ret != NULL, &f, err);
    if (st != TENREC_OK)
        return st;
    st = tenrec_future_wait(f, TENREC_TIMEOUT_NONE, err);
    if (st == TENREC_OK && ret)
        st = future_take_value(f, ret, err);
    tenrec_future_drop(f);
    return st;
}

tenrec_status tenrec_rref_local_value(struct tenrec_rref *r, int64_t ms,
                                      const struct tenrec_value **ret, tenrec_error *err)
{
    struct rref_owner *o = rref_owner_of(r);
    struct tenrec_worker *w;
    struct tenrec_future *f;
    char text[TENREC_RREF_TEXT_MAX];
    uint64_t deadline_ns;
    tenrec_status st;

    *ret = NULL;
    if (!o)
        return tenrec_fail(err, TENREC_EINVAL, "%s: local_value is for its owner; use to_here here",
                           tenrec_rref_text(r, text, sizeof text));
    pthread_mutex_lock(&r->ctx->lock);
    *ret = o->done && !r->error ? o->value : NULL;
    pthread_mutex_unlock(&r->ctx->lock);
    if (*ret)
        return value_take_on(*ret, o->streams, NULL, err);
    st = may_wait("local_value", err);
    if (st == TENREC_OK)
        st = rref_context_enter(r->ctx, &w, err);
    if (st != TENREC_OK)
        return st;
    st = call_deadline(w, &ms, &deadline_ns, err);
    if (st == TENREC_OK)
        st = rref_fetch_local(r, false, NULL, deadline_ns, &f, err);
    worker_leave(w);
    if (st != TENREC_OK)
        return st;
    st = tenrec_future_wait(f, TENREC_TIMEOUT_NONE, err);
    if (st == TENREC_OK)
        st = value_take_on(o->value, o->streams, NULL, err);
    if (st == TENREC_OK)
        *ret = o->value;
    tenrec_future_drop(f);
    return st;
}
