/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/future/future_inside.h"

#include "core/base/fail.h"
#include "core/base/forks.h"
#include "core/base/memory.h"
#include "rpc/future/thread_state.h"
#include "rpc/future/worker.h"

#include <stdlib.h>

void future_callback_drop(struct tenrec_future *f, struct future_callback *c)
{
    if (c != &f->own)
        free(c);
}

static void callback_call(struct tenrec_future *f, tenrec_future_fn *fn, void *arg)
{
    const uint32_t forks = forks_seen;

    if (unlikely(f->streams != NULL))
        future_run_on_streams(f, fn, arg);
    else
        fn(f, arg);
    forks_check(forks, "a callback");
}

/* Calls a callback on a thread that may not block meanwhile. */
static void callback_lend(struct tenrec_future *f, tenrec_future_fn *fn, void *arg)
{
    struct future_scope *scope = thread_lend();

    callback_call(f, fn, arg);
    thread_back(scope);
}

/* Runs a callback that was added, and drops it. */
static void callback_run_added(struct future_callback *c)
{
    struct tenrec_future *f = c->future;

    callback_lend(f, c->fn, c->arg);
    future_callback_drop(f, c);
    tenrec_future_drop(f);
}

/* Runs the outermost callback, then those that it has added, each followed by its own: the order
 * of a recursion, without its stack. */
static void callback_run(struct tenrec_future *f, tenrec_future_fn *fn, void *arg)
{
    struct future_callback *first = NULL, *c, *rest;

    thread_state.added = &first;
    callback_lend(f, fn, arg);
    while ((c = first)) {
        rest = c->next;
        first = NULL;
        thread_state.added = &first;
        callback_run_added(c);
        *thread_state.added = rest;
    }
    thread_state.added = NULL;
}

/* Adds a NULL-terminated list to that of the thread, in which a callback runs. */
static void callbacks_add(struct tenrec_future *f, struct future_callback *first)
{
    *thread_state.added = first;
    for (struct future_callback *c = first; c; c = c->next) {
        c->future = tenrec_future_share(f);
        thread_state.added = &c->next;
    }
}

static void callbacks_push(struct tenrec_future *f, struct future_callback *first)
{
    struct future_callback *c, *last = first;

    for (c = first; c; last = c, c = c->next)
        c->future = tenrec_future_share(f);
    userloop_push(f->call.worker, first, &last->next);
}

void future_callbacks_start(struct tenrec_future *f, struct future_callback *first)
{
    struct future_callback *c, *next;

    if (f->call.worker && userloop_wanted(f->call.worker)) {
        callbacks_push(f, first);
        return;
    }
    if (thread_state.added) {
        callbacks_add(f, first);
        return;
    }
    for (c = first; c; c = next) {
        next = c->next;
        callback_run(f, c->fn, c->arg);
        future_callback_drop(f, c);
    }
}

tenrec_status future_callback_now(struct tenrec_future *f, tenrec_future_fn *fn, void *arg,
                                  tenrec_error *err)
{
    struct future_callback *c;

    if (!thread_state.added) {
        callback_run(f, fn, arg);
        return TENREC_OK;
    }
    c = memory_new(1, sizeof *c);
    if (!c)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a callback");
    *c = (struct future_callback){ .fn = fn, .arg = arg };
    callbacks_add(f, c);
    return TENREC_OK;
}

size_t future_callbacks_run(struct future_callback *first)
{
    struct future_callback *c, *next;
    struct tenrec_future *f;
    size_t n = 0;

    for (c = first; c; c = next, n++) {
        next = c->next;
        f = c->future;
        callback_call(f, c->fn, c->arg);
        future_callback_drop(f, c);
        tenrec_future_drop(f);
    }
    return n;
}
