/* SPDX-License-Identifier: Apache-2.0 */
/* wait.c - threads that wait for futures.
 *
 * A thread that waits for the answer of a call polls for the agent: it reads and
 * delivers until its own future is done, so a synchronous call costs no thread switch at the
 * caller. If no agent can be polled, the thread sleeps. */
#include "core/base/clock.h"
#include "rpc/call/call.h"
#include "rpc/call/calls.h"
#include "rpc/future/future.h"
#include "rpc/future/thread_state.h"
#include "rpc/future/worker.h"

#include <stdlib.h>

enum { OWN_FUTURE_MS = 60000 }; /* TENREC_TIMEOUT_DEFAULT of a future without a call */

/* Waits until `w` is woken or `until`; polls for the call of `f` if the agent can. Returns true if
 * `w` was woken. */
static bool wait_polling(struct tenrec_future *f, struct waiter *w, uint64_t until)
{
    struct tenrec_wait wait = { .size = sizeof wait,
                                .wake_fd = w->fd,
                                .deadline_ns = until == CLOCK_NEVER ? 0 : until,
                                .done = (const uint32_t *)&w->woken };
    const struct chain_port *port = f->call.worker->calls->port;
    struct waiter *outer = thread_state.waiter;
    tenrec_status st = TENREC_OK;

    do {
        thread_state.waiter = w;
        st = port->poll(port->poller, f->call.to, &wait);
        thread_state.waiter = outer;
        if (waiter_woken(w))
            return true;
    } while (st == TENREC_OK && !clock_passed(until));
    return waiter_sleep(w, until);
}

/* Waits until `w` is woken, the call's deadline (which then fails the call) or `until`. */
static void wait_inside(struct tenrec_future *f, struct waiter *w, uint64_t until)
{
    uint64_t own = f->call.deadline_ns, first = own < until ? own : until;
    bool woken = w->fd >= 0 ? wait_polling(f, w, first) : waiter_sleep(w, first);

    if (!woken && clock_passed(own)) {
        call_expire_one(f->call.worker, f);
        waiter_sleep(w, until); /* or another thread completes the call */
    }
}

void wait_for_call(struct tenrec_future *f, struct future_node *node)
{
    struct waiter *w = node->waiter;

    if (!w->by_self) /* else the send has completed the call */
        wait_inside(f, w, CLOCK_NEVER);
    /* Another thread that woke this one may still read the node. */
    if (!w->by_self)
        future_unwatch(f, node);
}

/* Adds the waiter, and enters the worker of a pending call, which cannot stop meanwhile. Returns
 * false if `f` is done, or is never done, as its worker belongs to the parent of this process. */
static bool wait_watch(struct tenrec_future *f, struct future_node *node, bool *ret_inside,
                       bool *ret_orphan)
{
    bool pending;

    *ret_inside = false;
    spinlock_lock(&f->lock);
    pending = atomic_load(&f->state) == FUTURE_PENDING;
    *ret_orphan = pending && f->call.worker && !worker_is_own(f->call.worker);
    pending &= !*ret_orphan;
    if (pending) {
        node->next = f->waiters;
        f->waiters = node;
        if (f->call.worker)
            *ret_inside = worker_enter(f->call.worker, NULL) == TENREC_OK;
    }
    spinlock_unlock(&f->lock);
    return pending;
}

static tenrec_status wait_pending(struct tenrec_future *f, uint64_t until, tenrec_error *err)
{
    struct future_node node;
    struct waiter w;
    bool inside, orphan;

    waiter_init(&w, f->call.worker != NULL);
    node.waiter = &w;
    if (wait_watch(f, &node, &inside, &orphan)) {
        if (inside)
            wait_inside(f, &w, until);
        else
            waiter_sleep(&w, until);
        future_unwatch(f, &node);
        if (inside)
            worker_leave(f->call.worker);
    }
    waiter_finish(&w);
    return orphan ? worker_refuse_child(err) : TENREC_OK;
}

static tenrec_status may_wait(int64_t ms, tenrec_error *err)
{
    if (ms < 0)
        return tenrec_fail(err, TENREC_EINVAL, "a limit of %lld ms: it may not be negative",
                           (long long)ms);
    if (thread_state.no_block > 0)
        return tenrec_fail(err, TENREC_EWOULDBLOCK,
                           "an inline function or a callback may not wait: register the function "
                           "for the pool, or chain a callback");
    return TENREC_OK;
}

static uint64_t limit_of(const struct tenrec_future *f, int64_t ms)
{
    if (ms == TENREC_TIMEOUT_DEFAULT)
        return f->call.worker ? CLOCK_NEVER : clock_deadline_ms(OWN_FUTURE_MS);
    return ms == TENREC_TIMEOUT_NONE ? CLOCK_NEVER : clock_deadline_ms((uint64_t)ms);
}

static tenrec_status wait_until(struct tenrec_future *f, uint64_t until, tenrec_error *err)
{
    struct pool *pool = thread_state.pool;
    tenrec_status st = TENREC_OK;

    if (!tenrec_future_done(f)) {
        if (pool)
            pool_block_begin(pool);
        st = wait_pending(f, until, err);
        if (pool)
            pool_block_end(pool);
    }
    if (st != TENREC_OK)
        return st;
    if (!tenrec_future_done(f))
        return tenrec_fail(err, TENREC_ETIMEDOUT, "the future is not done yet");
    return future_result(f, err);
}

tenrec_status tenrec_future_wait(struct tenrec_future *f, int64_t ms, tenrec_error *err)
{
    tenrec_status st;

    if (ms >= 0 && tenrec_future_done(f))
        return future_result(f, err);
    st = may_wait(ms, err);
    return st == TENREC_OK ? wait_until(f, limit_of(f, ms), err) : st;
}

tenrec_status tenrec_future_wait_all(struct tenrec_future *const *f, size_t n, int64_t ms,
                                     tenrec_error *err)
{
    uint64_t until =
        ms <= 0 || ms == TENREC_TIMEOUT_NONE ? CLOCK_NEVER : clock_deadline_ms((uint64_t)ms);
    tenrec_status first = TENREC_OK, st = may_wait(ms, err);
    size_t left = 0;

    if (st != TENREC_OK)
        return st;
    for (size_t i = 0; i < n; i++) {
        (void)wait_until(f[i], ms == TENREC_TIMEOUT_DEFAULT ? limit_of(f[i], ms) : until, NULL);
        left += !tenrec_future_done(f[i]);
    }
    if (left > 0)
        return tenrec_fail(err, TENREC_ETIMEDOUT, "%zu of %zu futures are not done yet", left, n);
    for (size_t i = 0; i < n && first == TENREC_OK; i++)
        first = future_result(f[i], err);
    return first;
}

/* A single waiter on all futures. The agents' threads keep reading. */
tenrec_status tenrec_future_wait_any(struct tenrec_future *const *f, size_t n, int64_t ms,
                                     size_t *ret_index, tenrec_error *err)
{
    struct pool *pool = thread_state.pool;
    struct future_node few[16], *node = few;
    uint64_t until = ms == TENREC_TIMEOUT_NONE
                         ? CLOCK_NEVER
                         : clock_deadline_ms(ms ? (uint64_t)ms : OWN_FUTURE_MS);
    tenrec_status st = may_wait(ms, err);
    size_t watched = 0, done;
    struct waiter w;

    *ret_index = 0;
    if (st != TENREC_OK)
        return st;
    if (n == 0)
        return tenrec_fail(err, TENREC_EINVAL, "waits for one of no futures");
    if (n > sizeof few / sizeof few[0] && !(node = calloc(n, sizeof *node)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory to wait for %zu futures", n);
    waiter_init(&w, false);
    for (done = n; watched < n; watched++) {
        node[watched].waiter = &w;
        if (!future_watch(f[watched], &node[watched])) {
            done = watched;
            break;
        }
    }
    if (done == n) {
        if (pool)
            pool_block_begin(pool);
        waiter_sleep(&w, until);
        if (pool)
            pool_block_end(pool);
        for (done = 0; done < n && !tenrec_future_done(f[done]); done++)
            ;
    }
    for (size_t i = 0; i < watched; i++)
        future_unwatch(f[i], &node[i]);
    waiter_finish(&w);
    if (node != few)
        free(node);
    if (done == n)
        return tenrec_fail(err, TENREC_ETIMEDOUT, "none of %zu futures is done yet", n);
    *ret_index = done;
    return TENREC_OK;
}

tenrec_status tenrec_scope_end(int64_t ms, tenrec_error *err)
{
    struct future_scope *s = future_scope_close();
    tenrec_status st;

    if (!s)
        return tenrec_fail(err, TENREC_EINVAL, "no scope is open on this thread");
    st = tenrec_future_wait_all(s->future, s->n, ms, err);
    future_scope_drop(s);
    return st;
}
