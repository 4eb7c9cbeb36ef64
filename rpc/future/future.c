/* SPDX-License-Identifier: Apache-2.0 */
/* future.c - completion of futures. call/wait.c has the waits. */
#include "rpc/future/future.h"

#include "core/base/clock.h"
#include "core/base/fail.h"
#include "core/base/forks.h"
#include "core/base/memory.h"
#include "core/base/recycle.h"
#include "core/base/threads.h"
#include "rpc/future/future_inside.h"
#include "rpc/future/thread_state.h"
#include "rpc/value/value.h"

#include <stdlib.h>
#include <string.h>

/* Replaces an error that could not be stored. */
static tenrec_error no_memory = { .code = TENREC_ENOMEM,
                                  .worker = -1,
                                  .text = "no memory for the error" };

struct tenrec_future *future_make(void)
{
    struct tenrec_future *f = recycle_pop(RECYCLE_FUTURES);

    if (!f && !(f = recycle_fetch(RECYCLE_FUTURES)) && !(f = memory_new(1, sizeof *f)))
        return NULL;
    /* Field by field, without a memset, as each call makes a future. */
    atomic_init(&f->refs, 1);
    atomic_init(&f->state, FUTURE_PENDING);
    f->waiters = NULL;
    f->callbacks = NULL;
    f->last_callback = &f->callbacks;
    f->own.fn = NULL;
    f->value = NULL;
    f->streams = NULL;
    f->devices = NULL;
    f->error = NULL;
    f->call.private = false;
    f->call.worker = NULL;
    f->call.seen.observers = 0;
    f->call.hook = NULL;
    return f;
}

struct tenrec_future *future_make_of(struct tenrec_worker *w, tenrec_peer to)
{
    struct tenrec_future *f = future_make();

    if (!f)
        return NULL;
    f->call.worker = w;
    f->call.id = 0;
    f->call.to = to;
    f->call.deadline_ns = CLOCK_NEVER; /* the calls have deadlines */
    return f;
}

tenrec_status tenrec_future_new(struct tenrec_future **ret, tenrec_error *err)
{
    struct tenrec_future *f = future_make();

    *ret = NULL;
    if (!f)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a future");
    *ret = f;
    return TENREC_OK;
}

struct tenrec_future *tenrec_future_share(struct tenrec_future *f)
{
    atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
    return f;
}

static void future_abandon(struct future_callback *c);

/* The last share was dropped. */
__attribute__((noinline)) static void finish_last(struct tenrec_future *f)
{
    struct future_callback *c, *next;

    for (c = f->callbacks; c; c = next) { /* the future was never completed */
        next = c->next;
        future_abandon(c);
        future_callback_drop(f, c);
    }
    if (f->value)
        tenrec_value_drop(f->value);
    if (unlikely(f->streams != NULL || f->devices != NULL))
        future_forget_devices(f);
    if (f->error != &no_memory)
        free(f->error);
    if (!recycle_push(RECYCLE_FUTURES, f))
        free(f);
}

void tenrec_future_drop(struct tenrec_future *f)
{
    if (!f)
        return;
    /* The holder of the only share needs no atomic decrement. */
    if (atomic_load_explicit(&f->refs, memory_order_acquire) == 1 ||
        atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) == 1)
        finish_last(f);
}

/* Sets the state and runs the callbacks. Lock held; releases it. */
static void future_finish(struct tenrec_future *f, enum future_state state)
{
    struct future_callback *callbacks = f->callbacks;

    f->callbacks = NULL;
    f->last_callback = &f->callbacks;
    atomic_store_explicit(&f->state, state, memory_order_release);
    for (struct future_node *n = f->waiters; n; n = n->next)
        waiter_wake(n->waiter);
    spinlock_unlock(&f->lock);
    if (callbacks)
        future_callbacks_start(f, callbacks);
}

bool future_complete_value(struct tenrec_future *f, struct tenrec_value *value)
{
    /* A synchronous caller has read its own answer: no other thread has the future. */
    if (f->call.private && thread_state.waiter == f->waiters->waiter) {
        f->value = value;
        atomic_store_explicit(&f->state, FUTURE_VALUE, memory_order_relaxed);
        waiter_wake(thread_state.waiter);
        return true;
    }
    return future_complete_ready(f, value, NULL);
}

bool future_complete_ready(struct tenrec_future *f, struct tenrec_value *value,
                           struct streams *streams)
{
    spinlock_lock(&f->lock);
    if (atomic_load_explicit(&f->state, memory_order_relaxed) != FUTURE_PENDING) {
        spinlock_unlock(&f->lock);
        tenrec_value_drop(value);
        if (streams)
            streams_drop(streams);
        return false;
    }
    f->value = value;
    if (unlikely(streams != NULL))
        f->streams = streams;
    future_finish(f, FUTURE_VALUE);
    return true;
}

bool future_complete_error(struct tenrec_future *f, const tenrec_error *why)
{
    tenrec_error *copy = memory_new(1, sizeof *copy);

    if (copy)
        *copy = *why;
    spinlock_lock(&f->lock);
    if (atomic_load_explicit(&f->state, memory_order_relaxed) != FUTURE_PENDING) {
        spinlock_unlock(&f->lock);
        free(copy);
        return false;
    }
    f->error = copy ? copy : &no_memory;
    future_finish(f, FUTURE_ERROR);
    return true;
}

tenrec_status tenrec_future_set_value(struct tenrec_future *f, const struct tenrec_value *value,
                                      tenrec_error *err)
{
    struct streams *streams = NULL;
    struct tenrec_value *copy = NULL;
    tenrec_status st;
    tenrec_error why;

    if (f->call.worker)
        return tenrec_fail(err, TENREC_EINVAL, "the future of a call cannot be set");
    if (future_hand_over(f, value, &streams, &why) != TENREC_OK) {
        future_complete_error(f, &why);
        return fail_with(err, &why);
    }
    st = value ? tenrec_value_copy(value, &copy, err) : TENREC_OK;
    if (st != TENREC_OK) {
        streams_drop(streams);
        return st;
    }
    if (!future_complete_ready(f, copy, streams))
        return tenrec_fail(err, TENREC_EEXIST, "the future is done already");
    return TENREC_OK;
}

tenrec_status tenrec_future_set_error(struct tenrec_future *f, const tenrec_error *why,
                                      tenrec_error *err)
{
    if (f->call.worker)
        return tenrec_fail(err, TENREC_EINVAL, "the future of a call cannot be set");
    if (why->code == TENREC_OK)
        return tenrec_fail(err, TENREC_EINVAL, "an error with the status OK");
    if (!future_complete_error(f, why))
        return tenrec_fail(err, TENREC_EEXIST, "the future is done already");
    return TENREC_OK;
}

bool tenrec_future_done(const struct tenrec_future *f)
{
    return atomic_load_explicit(&f->state, memory_order_acquire) != FUTURE_PENDING;
}

const struct tenrec_value *tenrec_future_value(const struct tenrec_future *f)
{
    static const struct tenrec_value nil;

    if (atomic_load_explicit(&f->state, memory_order_acquire) != FUTURE_VALUE)
        return NULL;
    return f->value ? f->value : &nil;
}

const tenrec_error *tenrec_future_error(const struct tenrec_future *f)
{
    if (atomic_load_explicit(&f->state, memory_order_acquire) != FUTURE_ERROR)
        return NULL;
    return f->error;
}

tenrec_status future_take_value(struct tenrec_future *f, struct tenrec_value **ret,
                                tenrec_error *err)
{
    static const struct tenrec_value nil;

    /* call_sent may still hold a share, but does not read the value. */
    if (!f->value)
        return tenrec_value_copy(&nil, ret, err);
    *ret = f->value;
    f->value = NULL;
    return TENREC_OK;
}

tenrec_status future_result(const struct tenrec_future *f, tenrec_error *err)
{
    const tenrec_error *why = f->error;

    if (!why)
        return likely(f->streams == NULL) ? TENREC_OK : value_take(f->value, f->streams, err);
    return fail_with(err, why);
}

tenrec_status tenrec_future_add_callback(struct tenrec_future *f, tenrec_future_fn *fn, void *arg,
                                         tenrec_error *err)
{
    struct future_callback *c = NULL;
    bool pending;

    if (!fn)
        return tenrec_fail(err, TENREC_EINVAL, "there is no callback to run");
    spinlock_lock(&f->lock);
    pending = atomic_load_explicit(&f->state, memory_order_relaxed) == FUTURE_PENDING;
    if (pending)
        c = f->own.fn ? memory_new(1, sizeof *c) : &f->own;
    if (c) {
        c->next = NULL;
        c->fn = fn;
        c->arg = arg;
        *f->last_callback = c;
        f->last_callback = &c->next;
    }
    spinlock_unlock(&f->lock);
    if (!pending)
        return future_callback_now(f, fn, arg, err);
    if (!c)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a callback");
    return TENREC_OK;
}

struct then {
    struct tenrec_future *result; /* shared */
    tenrec_then_fn *fn;
    void *arg;
};

static void run_then(struct tenrec_future *f, void *arg)
{
    struct then *t = arg;
    struct tenrec_value value = tenrec_value_nil(), *copy = NULL;
    struct streams *streams = NULL;
    tenrec_error err = { .code = TENREC_OK, .worker = -1 };
    const uint32_t forks = forks_seen;
    tenrec_status st = t->fn(f, t->arg, &value, &err);

    forks_check(forks, "a callback");
    if (st == TENREC_OK)
        st = future_hand_over(t->result, &value, &streams, &err);
    if (st == TENREC_OK)
        st = tenrec_value_copy(&value, &copy, &err);
    if (st == TENREC_OK) {
        future_complete_ready(t->result, copy, streams);
    } else {
        streams_drop(streams);
        if (err.code == TENREC_OK)
            tenrec_fail(&err, st, "%s", tenrec_status_text(st));
        future_complete_error(t->result, &err);
    }
    tenrec_future_drop(t->result);
    free(t);
}

/* The source was dropped before it was done: fails the future that depends on it. */
static void future_abandon(struct future_callback *c)
{
    struct then *t = c->arg;
    tenrec_error why;

    if (c->fn != run_then)
        return;
    tenrec_fail(&why, TENREC_ECANCELED, "the future before it was dropped and never done");
    future_complete_error(t->result, &why);
    tenrec_future_drop(t->result);
    free(t);
}

tenrec_status tenrec_future_then(struct tenrec_future *f, tenrec_then_fn *fn, void *arg,
                                 struct tenrec_future **ret, tenrec_error *err)
{
    struct tenrec_future *result;
    struct then *t;
    tenrec_status st;

    *ret = NULL;
    if (!fn)
        return tenrec_fail(err, TENREC_EINVAL, "there is no callback to run");
    result = future_make();
    t = memory_new(1, sizeof *t);
    if (!result || !t) {
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for a future");
        goto err_free;
    }
    *t = (struct then){ tenrec_future_share(result), fn, arg };
    if (unlikely(f->devices != NULL))
        future_inherit_devices(result, f);
    st = tenrec_future_add_callback(f, run_then, t, err);
    if (st != TENREC_OK) {
        tenrec_future_drop(result);
        goto err_free;
    }
    *ret = result;
    return TENREC_OK;

err_free:
    free(t);
    tenrec_future_drop(result);
    return st;
}

bool future_watch(struct tenrec_future *f, struct future_node *node)
{
    bool pending;

    spinlock_lock(&f->lock);
    pending = atomic_load_explicit(&f->state, memory_order_relaxed) == FUTURE_PENDING;
    if (pending) {
        node->next = f->waiters;
        f->waiters = node;
    }
    spinlock_unlock(&f->lock);
    return pending;
}

void future_unwatch(struct tenrec_future *f, struct future_node *node)
{
    struct future_node **at;

    spinlock_lock(&f->lock);
    for (at = &f->waiters; *at && *at != node; at = &(*at)->next)
        ;
    if (*at)
        *at = node->next;
    spinlock_unlock(&f->lock);
}
