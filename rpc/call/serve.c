/* SPDX-License-Identifier: Apache-2.0 */
/* serve.c - served calls from their request to the return of their function. No lock is held while
 * a function runs. */
#include "rpc/call/calls.h"

#include "core/base/clock.h"
#include "core/base/fail.h"
#include "core/base/forks.h"
#include "core/base/memory.h"
#include "core/base/probe.h"
#include "core/base/threads.h"
#include "core/tensor/device.h"
#include "core/tensor/tensor.h"
#include "rpc/call/observe.h"
#include "rpc/future/pool.h"
#include "rpc/future/thread_state.h"
#include "rpc/future/worker.h"
#include "rpc/value/trace.h"

#include <stddef.h>
#include <stdlib.h>

#define READ_BY_LOOP_MAX (64u << 10) /* bytes of a payload; a larger one is read on the pool */

/* ---- running -------------------------------------------------------------- */

static void serve_run(struct tenrec_call *c)
{
    const struct function *f = c->function;
    struct streams *outer = thread_streams, *streams = c->streams;
    const uint32_t forks = forks_seen;
    tenrec_error err;
    tenrec_status st;

    /* Without clearing the long texts, as few calls fail. */
    err.code = TENREC_OK;
    err.worker = -1;
    err.os_errno = 0;
    err.flags = 0;
    err.worker_name[0] = err.text[0] = '\0';
    if (!c->on_stack) {
        atomic_store_explicit(&c->run_ns, clock_about_ns(), memory_order_relaxed);
        atomic_store_explicit(&c->thread, thread_id(), memory_order_relaxed);
    }
    PROBE4(serve__begin, c->worker->self.name, c->from, f->name, c->key.id);
    /* Shared: a call that is answered later may be freed before its function returns. */
    if (unlikely(streams != NULL))
        thread_streams = streams_share(streams);
    st = unlikely(c->observers != 0 || c->in.traced) ? observe_run(c, c->observers, &err)
                                                     : f->fn(c, f->arg, &err);
    forks_check(forks, "a function");
    trace_thread.traced = false; /* also if the function has left a context behind */
    if (unlikely(streams != NULL)) {
        thread_streams = outer;
        streams_drop(streams);
    }
    if (unlikely(thread_state.scope != NULL))
        future_scope_abandon(f->name);
    if (st != TENREC_OK) {
        if (err.code == TENREC_OK && strcmp(tenrec_status_name(st), "?") == 0)
            tenrec_fail(&err, st, "'%s' returned %d, which is no status", f->name, (int)st);
        else if (err.code == TENREC_OK)
            tenrec_fail(&err, st, "%s", tenrec_status_text(st));
        err.code = st; /* the text may be of an inner failure with another status */
        serve_end(c, &err);
    } else if (!(f->flags & TENREC_LATER)) {
        serve_end(c, NULL);
    }
}

/* Returns true, with the reason, if no thread is left for the call, or no caller waits for the
 * answer any more. The answer of a one-way call is never awaited, nor given up. */
static bool serve_is_given_up(const struct tenrec_call *c, tenrec_error *why)
{
    if (unlikely(c->task.refused)) {
        pool_refusal(c->worker->calls->pool, c->function->name, why);
        return true;
    }
    if (c->one_way || likely(!tenrec_call_canceled(c)))
        return false;
    /* If the caller's timer is late, this answer arrives before the caller gives up itself. */
    if (atomic_load(&c->canceled))
        tenrec_fail(why, TENREC_ECANCELED,
                    "'%s' was not started: its caller had given up before a thread was free",
                    c->function->name);
    else
        tenrec_fail(why, TENREC_ETIMEDOUT,
                    "'%s' was not started: its deadline had passed before a thread was free",
                    c->function->name);
    return true;
}

static void serve_task(struct pool_task *t)
{
    struct tenrec_call *c = (struct tenrec_call *)t;
    tenrec_error why;

    if (serve_is_given_up(c, &why))
        serve_refuse(c, &why);
    else
        serve_run(c);
}

/* ---- stopping ------------------------------------------------------------- */

static bool serve_stopped(const struct tenrec_worker *w)
{
    return unlikely(atomic_load_explicit(&w->calls->closed, memory_order_relaxed));
}

static void serve_refuse_stopped(struct tenrec_call *c)
{
    tenrec_error why;

    tenrec_fail(&why, TENREC_ESHUTDOWN, "the worker shuts down: '%s' was not started",
                c->function->name);
    serve_refuse(c, &why);
}

static void serve_refuse_queued(struct pool_task *t)
{
    struct pool_task *next;

    for (; t; t = next) {
        next = t->next;
        serve_refuse_stopped((struct tenrec_call *)t);
    }
}

void serve_stop(struct tenrec_worker *w)
{
    atomic_store(&w->calls->closed, true);
    if (w->calls->pool)
        serve_refuse_queued(pool_stop(w->calls->pool));
    serve_refuse_queued(functions_close(&w->calls->functions));
}

void serve_resume(struct tenrec_worker *w)
{
    if (w->calls->pool)
        pool_resume(w->calls->pool);
    functions_open(&w->calls->functions);
    atomic_store(&w->calls->closed, false);
}

/* ---- starting ------------------------------------------------------------- */

static void serve_inline(struct tenrec_call *c)
{
    struct future_scope *scope = thread_lend();

    serve_run(c);
    thread_back(scope);
}

/* Fills what is known before the arguments are: all but c->in. Takes the request. The call of an
 * inline function without references is on the stack: it ends before the delivery of its request.
 */
static void serve_fill(struct tenrec_call *c, struct tenrec_worker *w, const struct function *f,
                       tenrec_peer from, struct tenrec_msg *msg, bool on_stack)
{
    memset(c, 0, offsetof(struct tenrec_call, in));
    c->worker = w;
    c->request = msg;
    c->function = f;
    c->from = from;
    c->key = (struct active_calls_key){ msg->route.pipe, msg->route.generation, msg->id };
    c->on_stack = on_stack;
    c->one_way = msg->type == TENREC_MSG_ONE_WAY_CALL;
    c->awaited = msg->type == TENREC_MSG_CALL;
    c->cbor = true;
    if (observe_is_on(w))
        c->arrived_ns = clock_fast_ns();
    if (unlikely(w->calls->devices != NULL))
        active_call_streams(c);
}

/* Fills the remaining fields from the data behind the arguments. `since_ns`: the arrival of a call
 * that was read later; 0: now. */
static void serve_limit(struct tenrec_call *c, uint64_t since_ns)
{
    /* An inline function runs when the request arrives: it reads the clock only if it asks for the
     * time left. */
    if (c->in.remaining_ms == TENREC_TIMEOUT_NONE)
        c->deadline_ns = CLOCK_NEVER;
    else if (since_ns)
        c->deadline_ns = clock_later_ms(since_ns, (uint64_t)c->in.remaining_ms);
    else if (!c->on_stack)
        c->deadline_ns = clock_deadline_about_ms((uint64_t)c->in.remaining_ms);
    if (unlikely(c->in.spans_max > 0 || c->arrived_ns != 0))
        observe_arrived(c);
}

static void serve_queue(struct tenrec_call *c, void (*fn)(struct pool_task *t))
{
    tenrec_error why;
    tenrec_status st = TENREC_OK;

    c->task.fn = fn;
    c->task.bytes = tenrec_msg_bytes(c->request);
    if (unlikely(c->in.heap != NULL))
        c->task.bytes += c->in.heap_size;
    if (!(c->function->flags & TENREC_INLINE))
        st = pool_run(c->worker->calls->pool, &c->task);
    else if (serve_stopped(c->worker))
        st = TENREC_ESHUTDOWN;
    else
        serve_inline(c);
    if (st == TENREC_ESHUTDOWN) {
        serve_refuse_stopped(c);
    } else if (st == TENREC_EAGAIN) {
        pool_refusal(c->worker->calls->pool, c->function->name, &why);
        serve_refuse(c, &why);
    } else if (st != TENREC_OK) {
        tenrec_fail(&why, TENREC_EOS, "cannot start a thread for '%s'", c->function->name);
        serve_refuse(c, &why);
    }
}

void serve_start(struct tenrec_call *c, const tenrec_error *why)
{
    if (why)
        serve_refuse(c, why);
    else
        serve_queue(c, serve_task);
}

/* Reads the arguments. `since_ns` as in serve_limit. */
static tenrec_status serve_read(struct tenrec_call *c, const struct codec_head *head,
                                uint64_t since_ns, tenrec_error *err)
{
    const bool creates = c->request->type == TENREC_MSG_REMOTE_CALL;
    tenrec_status st = codec_read_args(c->request, head, &c->in, err);

    if (st != TENREC_OK)
        return st;
    serve_limit(c, since_ns);
    /* Then there is more to do than to read the arguments before it starts. */
    if ((c->in.refers || creates) && !(c->refs = c->worker->calls->served_refs->make()))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a call");
    return TENREC_OK;
}

/* On a thread of the pool: reads the arguments of a large call, and runs it. */
static void serve_read_task(struct pool_task *t)
{
    struct tenrec_call *c = (struct tenrec_call *)t;
    struct codec_head head;
    tenrec_error why;

    if (serve_is_given_up(c, &why) || codec_read_head(c->request, &head, &why) != TENREC_OK ||
        serve_read(c, &head, c->queued_ns, &why) != TENREC_OK) {
        serve_refuse(c, &why);
        return;
    }
    c->unread = false;
    if (c->refs)
        c->worker->calls->served_refs->begin(c);
    else
        serve_task(t);
}

/* Serves a call on the pool, or a call that may outlive its function. The loop, for which all peers
 * wait, does not read large arguments. */
static void serve_later(struct tenrec_worker *w, const struct function *f,
                        const struct codec_head *head, tenrec_peer from, struct tenrec_msg *msg)
{
    struct tenrec_call *c = memory_new(1, sizeof *c);
    tenrec_error why;

    if (!c) {
        tenrec_fail(&why, TENREC_ENOMEM, "no memory for a call");
        serve_refuse_request(w, from, msg, head, &why);
        return;
    }
    serve_fill(c, w, f, from, msg, false);
    c->unread = msg->payload_len > READ_BY_LOOP_MAX && !(f->flags & TENREC_INLINE);
    if (c->unread)
        c->queued_ns = clock_now_ns();
    if ((!c->unread && serve_read(c, head, 0, &why) != TENREC_OK) ||
        active_calls_add(&w->calls->active_calls, c, &why) != TENREC_OK) {
        serve_abandon(c, &why);
        return;
    }
    atomic_fetch_add_explicit(&w->calls->counts.taken, 1, memory_order_relaxed);
    if (c->refs)
        w->calls->served_refs->begin(c);
    else
        serve_queue(c, c->unread ? serve_read_task : serve_task);
}

/* Reads the arguments once, where the call will live. Only for an inline function with references
 * in its arguments are they read again. */
void serve_request(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg)
{
    const struct function *f;
    struct codec_head head;
    struct tenrec_call c;
    tenrec_error why;

    if (codec_read_head(msg, &head, &why) != TENREC_OK) {
        dispatch_refuse(w, from, msg, codec_is_cbor(msg), &why);
        return;
    }
    f = functions_find(&w->calls->functions, head.function, head.function_len);
    if (unlikely(w->calls->functions.rules != NULL) &&
        guard_call(w, from, msg, f, &head, &why) != TENREC_OK) {
        serve_refuse_request(w, from, msg, &head, &why);
        return;
    }
    if (unlikely(!f)) {
        functions_none(&w->calls->functions, w->self.name, head.function, head.function_len, &why);
        serve_refuse_request(w, from, msg, &head, &why);
        return;
    }
    /* Only a call of an inline function may end before the delivery of its request does: its
     * arguments are read on the stack. */
    if (f->flags != TENREC_INLINE || msg->type == TENREC_MSG_REMOTE_CALL || serve_stopped(w)) {
        serve_later(w, f, &head, from, msg);
        return;
    }
    if (codec_read_args(msg, &head, &c.in, &why) != TENREC_OK) {
        dispatch_refuse(w, from, msg, true, &why);
        return;
    }
    if (!c.in.refers) {
        serve_fill(&c, w, f, from, msg, true);
        serve_limit(&c, 0);
        atomic_fetch_add_explicit(&w->calls->counts.taken, 1, memory_order_relaxed);
        serve_inline(&c);
        return;
    }
    codec_call_finish(&c.in);
    serve_later(w, f, &head, from, msg);
}
