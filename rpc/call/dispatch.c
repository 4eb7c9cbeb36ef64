/* SPDX-License-Identifier: Apache-2.0 */
/* dispatch.c - the callee's side: messages that arrive, and the functions that serve requests. No
 * lock is held while a function runs. */
#include "rpc/call/dispatch.h"

#include "core/base/clock.h"
#include "core/base/forks.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/probe.h"
#include "core/base/threads.h"
#include "core/tensor/message.h"
#include "core/tensor/stream.h"
#include "rpc/call/answer.h"
#include "rpc/call/calls.h"
#include "rpc/call/guard.h"
#include "rpc/call/observe.h"
#include "rpc/call/parcel.h"
#include "rpc/future/enter.h"
#include "rpc/future/pool.h"
#include "rpc/future/thread_state.h"
#include "rpc/value/trace_thread.h"

#include <assert.h>
#include <stdlib.h>

#define READ_BY_LOOP_MAX (64u << 10) /* bytes of a payload; a larger one is read on the pool */

/* ---- ending -------------------------------------------------------------- */

static void call_free(struct tenrec_call *c)
{
    if (__builtin_expect(c->refs != NULL, 0))
        c->worker->calls->served_refs->end(c);
    codec_call_finish(&c->in);
    if (c->reply)
        c->reply->release(c->reply);
    if (c->request)
        c->request->release(c->request);
    if (__builtin_expect(c->streams != NULL, 0))
        streams_drop(c->streams);
    if (c->on_stack)
        return;
    active_calls_remove(&c->worker->calls->active_calls,
                        c); /* from now on the worker may be freed */
    free(c);
}

/* Returns the message that answers a call, or NULL if out of memory. */
static struct tenrec_msg *call_answer(struct tenrec_call *c, struct tenrec_msg *reply,
                                      const tenrec_error *why)
{
    struct tenrec_msg *msg = NULL;
    tenrec_error told;

    if (c->refs && c->worker->calls->served_refs->made(c, why, &msg))
        return msg;
    if (!why && reply)
        return reply;
    if (reply)
        reply->release(reply);
    if (!why) {
        codec_write_value(NULL, TENREC_MSG_RET, &msg, NULL);
        return msg;
    }
    told = *why;
    if (!c->refused)
        codec_mark_callee(&told);
    peers_blame(&c->worker->peers, c->worker->self.id, &told);
    codec_write_error(&told, c->cbor, &msg, NULL);
    return msg;
}

/* A graceful shutdown waits until as many one-way calls have ended as the members have sent;
 * callers outside the group do not count theirs. */
static void count_one_way(struct tenrec_worker *w, tenrec_peer from)
{
    if (from >= 0)
        atomic_fetch_add(&w->calls->counts.one_way_ended, 1);
}

/* Sends the answer of a function that has returned or finished; ends the call. */
static void call_end(struct tenrec_call *c, const tenrec_error *why)
{
    struct tenrec_worker *w = c->worker;
    struct tenrec_route route = c->request->route;
    const int64_t id = c->request->id;
    struct tenrec_msg *reply = c->reply;
    const tenrec_status status = why ? why->code : TENREC_OK; /* `why` may be in c->refs */
    /* The chain lives during a delivery; a later answer must enter the worker. */
    const bool repeated = c->refs && c->repeated;
    const bool wanted = !c->one_way && !repeated;
    const bool entered = !c->on_stack && wanted && worker_enter(w, NULL) == TENREC_OK;
    const bool answers = entered || (c->on_stack && wanted);

    c->reply = NULL;
    if (answers && (c->refs || why || !reply))
        reply = call_answer(c, reply, why);
    if (answers && reply && reply->n_tensors > 0)
        reply = active_call_place(c, reply);
    if (!answers && why && c->one_way)
        log_line(TENREC_LOG_WARN, w->self.name, "one-way call of '%s' failed: %s",
                 c->function->name, why->text);
    if (__builtin_expect(c->observers != 0, 0))
        observe_served(c, &reply, status);
    if (why && c->parcel) {
        parcel_end(w, c->parcel, PARCEL_REFUSED);
        c->parcel = NULL;
    }
    if (__builtin_expect(c->refs != NULL, 0)) {
        /* Before the answer is sent, so a caller that checks for leaks on receipt finds none. */
        c->worker->calls->served_refs->end(c);
        codec_call_finish(&c->in);
    }
    /* A caller that is no member is charged for its request and for the answer. */
    if (__builtin_expect(c->from < 0, 0)) {
        codec_call_finish(&c->in);
        c->request->release(c->request);
        c->request = NULL;
    }
    if (answers) {
        answer_send(w, c->from, id, &route, reply, c->parcel);
    } else {
        parcel_end(w, c->parcel, PARCEL_REFUSED);
        if (reply)
            reply->release(reply);
    }
    if (entered)
        worker_leave(w);
    PROBE5(serve__end, w->self.name, c->from, c->function->name, c->key.id, status);
    if (c->one_way)
        count_one_way(w, c->from);
    atomic_fetch_add_explicit(&w->calls->counts.served, 1, memory_order_relaxed);
    call_free(c);
}

/* ---- running -------------------------------------------------------------- */

static void call_run(struct tenrec_call *c)
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
    if (__builtin_expect(streams != NULL, 0))
        thread_streams = streams_share(streams);
    st = __builtin_expect(c->observers != 0 || c->in.traced, 0) ? observe_run(c, c->observers, &err)
                                                                : f->fn(c, f->arg, &err);
    forks_check(forks, "a function");
    trace_thread.traced = false; /* also if the function has left a context behind */
    if (__builtin_expect(streams != NULL, 0)) {
        thread_streams = outer;
        streams_drop(streams);
    }
    if (__builtin_expect(thread_state.scope != NULL, 0))
        future_scope_abandon(f->name);
    if (st != TENREC_OK) {
        if (err.code == TENREC_OK && strcmp(tenrec_status_name(st), "?") == 0)
            tenrec_fail(&err, st, "'%s' returned %d, which is no status", f->name, (int)st);
        else if (err.code == TENREC_OK)
            tenrec_fail(&err, st, "%s", tenrec_status_text(st));
        err.code = st; /* the text may be of an inner failure with another status */
        call_end(c, &err);
    } else if (!(f->flags & TENREC_LATER)) {
        call_end(c, NULL);
    }
}

static void dispatch_refuse(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg,
                            bool cbor, const tenrec_error *why)
{
    observe_note(w, NOTE_REFUSED, from, msg->id, why->code, "");
    w->calls->parcels->forget(w, from, msg);
    if (msg->type != TENREC_MSG_ONE_WAY_CALL) {
        answer_error(w, from, msg->id, &msg->route, cbor, why);
    } else {
        log_line(TENREC_LOG_WARN, w->self.name, "one-way call refused: %s", why->text);
        count_one_way(w, from);
    }
    msg->release(msg);
}

/* Refuses a call whose start was read. */
static void dispatch_refuse_call(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg,
                                 const struct codec_head *head, const tenrec_error *why)
{
    if (msg->type == TENREC_MSG_REMOTE_CALL)
        w->calls->served_refs->refused(w, from, msg, &head->creation, why);
    else
        dispatch_refuse(w, from, msg, true, why);
}

/* Ends a call whose arguments were not read, or that was not taken. Inside the worker. */
static void call_abandon(struct tenrec_call *c, const tenrec_error *why)
{
    struct codec_head head = { .function = NULL };
    struct tenrec_msg *msg = c->request;

    if (c->observers)
        observe_served(c, &(struct tenrec_msg *){ NULL }, why->code);
    codec_call_finish(&c->in);
    codec_read_head(msg, &head, NULL); /* for the second time: cannot fail */
    c->request = NULL;
    dispatch_refuse_call(c->worker, c->from, msg, &head, why);
    call_free(c);
}

/* Answers a call whose function was not started. */
static void call_refuse(struct tenrec_call *c, const tenrec_error *why)
{
    struct tenrec_worker *w = c->worker;

    if (!c->unread) {
        c->refused = true;
        call_end(c, why);
        return;
    }
    atomic_fetch_add_explicit(&w->calls->counts.served, 1, memory_order_relaxed);
    if (worker_enter(w, NULL) == TENREC_OK) {
        call_abandon(c, why);
        worker_leave(w);
    } else {
        call_free(c);
    }
}

/* Returns true, with the reason, if no thread is left for the call, or no caller waits for the
 * answer any more. The answer of a one-way call is never awaited, nor given up. */
static bool call_is_given_up(const struct tenrec_call *c, tenrec_error *why)
{
    if (__builtin_expect(c->task.refused, 0)) {
        pool_refusal(c->worker->calls->pool, c->function->name, why);
        return true;
    }
    if (c->one_way || __builtin_expect(!tenrec_call_canceled(c), 1))
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

static void run_task(struct pool_task *t)
{
    struct tenrec_call *c = (struct tenrec_call *)t;
    tenrec_error why;

    if (call_is_given_up(c, &why))
        call_refuse(c, &why);
    else
        call_run(c);
}

/* ---- stopping ------------------------------------------------------------- */

static bool dispatch_stopped(const struct tenrec_worker *w)
{
    return __builtin_expect(atomic_load_explicit(&w->calls->closed, memory_order_relaxed), 0);
}

static void call_refuse_stopped(struct tenrec_call *c)
{
    tenrec_error why;

    tenrec_fail(&why, TENREC_ESHUTDOWN, "the worker shuts down: '%s' was not started",
                c->function->name);
    call_refuse(c, &why);
}

void dispatch_stop(struct tenrec_worker *w)
{
    struct pool_task *t, *next;

    atomic_store(&w->calls->closed, true);
    for (t = w->calls->pool ? pool_stop(w->calls->pool) : NULL; t; t = next) {
        next = t->next;
        call_refuse_stopped((struct tenrec_call *)t);
    }
}

void dispatch_resume(struct tenrec_worker *w)
{
    if (w->calls->pool)
        pool_resume(w->calls->pool);
    atomic_store(&w->calls->closed, false);
}

/* ---- starting ------------------------------------------------------------- */

static void run_inline(struct tenrec_call *c)
{
    struct future_scope *scope = thread_lend();

    call_run(c);
    thread_back(scope);
}

/* Fills what is known before the arguments are. Takes the request. The call of an inline function
 * without references is on the stack: it ends before the delivery of its request. */
static void call_fill(struct tenrec_call *c, struct tenrec_worker *w, const struct function *f,
                      tenrec_peer from, struct tenrec_msg *msg, bool on_stack)
{
    c->refs = NULL;
    c->parcel = NULL;
    c->on_stack = on_stack;
    c->unread = false;
    c->refused = false;
    c->repeated = false;
    c->arrived_ns = observe_is_on(w) ? clock_fast_ns() : 0;
    c->began_ns = 0;
    atomic_init(&c->thread, 0);
    atomic_init(&c->run_ns, 0);
    c->told_stuck = false;
    c->task.next = NULL;
    c->worker = w;
    c->request = msg;
    c->function = f;
    c->reply = NULL;
    c->streams = NULL;
    if (__builtin_expect(w->calls->devices != NULL, 0))
        active_call_streams(c);
    c->from = from;
    c->key = (struct active_calls_key){ msg->route.pipe, msg->route.generation, msg->id };
    c->one_way = msg->type == TENREC_MSG_ONE_WAY_CALL;
    c->awaited = msg->type == TENREC_MSG_CALL;
    c->cbor = true;
    c->listed = false;
    atomic_init(&c->canceled, false);
    c->deadline_ns = 0;
    c->observers = 0;
    c->span = NULL;
    c->traced = NULL;
}

/* Fills the rest, from what stands behind the arguments. `since_ns`: the arrival of a call that was
 * read later; 0: now. */
static void call_limit(struct tenrec_call *c, uint64_t since_ns)
{
    /* An inline function runs when the request arrives: it reads the clock only if it asks for the
     * time left. */
    if (c->in.remaining_ms == TENREC_TIMEOUT_NONE)
        c->deadline_ns = CLOCK_NEVER;
    else if (since_ns)
        c->deadline_ns = clock_later_ms(since_ns, (uint64_t)c->in.remaining_ms);
    else if (!c->on_stack)
        c->deadline_ns = clock_deadline_about_ms((uint64_t)c->in.remaining_ms);
    if (__builtin_expect(c->in.spans_max > 0 || c->arrived_ns != 0, 0))
        observe_arrived(c);
}

static void dispatch_queue(struct tenrec_call *c, void (*fn)(struct pool_task *t))
{
    tenrec_error why;
    tenrec_status st = TENREC_OK;

    c->task.fn = fn;
    c->task.bytes = tenrec_msg_bytes(c->request);
    if (__builtin_expect(c->in.heap != NULL, 0))
        c->task.bytes += c->in.heap_size;
    if (!(c->function->flags & TENREC_INLINE))
        st = pool_run(c->worker->calls->pool, &c->task);
    else if (dispatch_stopped(c->worker))
        st = TENREC_ESHUTDOWN;
    else
        run_inline(c);
    if (st == TENREC_ESHUTDOWN) {
        call_refuse_stopped(c);
    } else if (st == TENREC_EAGAIN) {
        pool_refusal(c->worker->calls->pool, c->function->name, &why);
        call_refuse(c, &why);
    } else if (st != TENREC_OK) {
        tenrec_fail(&why, TENREC_EOS, "cannot start a thread for '%s'", c->function->name);
        call_refuse(c, &why);
    }
}

void dispatch_start(struct tenrec_call *c, const tenrec_error *why)
{
    if (why)
        call_refuse(c, why);
    else
        dispatch_queue(c, run_task);
}

/* Reads the arguments. `since_ns` as in call_limit. */
static tenrec_status call_read(struct tenrec_call *c, const struct codec_head *head,
                               uint64_t since_ns, tenrec_error *err)
{
    const bool creates = c->request->type == TENREC_MSG_REMOTE_CALL;
    tenrec_status st = codec_read_args(c->request, head, &c->in, err);

    if (st != TENREC_OK)
        return st;
    call_limit(c, since_ns);
    /* Then there is more to do than to read the arguments before it starts. */
    if ((c->in.refers || creates) && !(c->refs = c->worker->calls->served_refs->make()))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a call");
    return TENREC_OK;
}

/* On a thread of the pool: reads the arguments of a large call, and runs it. */
static void read_task(struct pool_task *t)
{
    struct tenrec_call *c = (struct tenrec_call *)t;
    struct codec_head head;
    tenrec_error why;

    if (call_is_given_up(c, &why) || codec_read_head(c->request, &head, &why) != TENREC_OK ||
        call_read(c, &head, c->queued_ns, &why) != TENREC_OK) {
        call_refuse(c, &why);
        return;
    }
    c->unread = false;
    if (c->refs)
        c->worker->calls->served_refs->begin(c);
    else
        run_task(t);
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
        dispatch_refuse_call(w, from, msg, head, &why);
        return;
    }
    call_fill(c, w, f, from, msg, false);
    c->unread = msg->payload_len > READ_BY_LOOP_MAX && !(f->flags & TENREC_INLINE);
    if (c->unread)
        c->queued_ns = clock_now_ns();
    if ((!c->unread && call_read(c, head, 0, &why) != TENREC_OK) ||
        active_calls_add(&w->calls->active_calls, c, &why) != TENREC_OK) {
        call_abandon(c, &why);
        return;
    }
    atomic_fetch_add_explicit(&w->calls->counts.taken, 1, memory_order_relaxed);
    if (c->refs)
        w->calls->served_refs->begin(c);
    else
        dispatch_queue(c, c->unread ? read_task : run_task);
}

/* Reads the arguments once, where the call will live. Only for an inline function with references
 * in its arguments are they read again. */
static void dispatch_serve(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg)
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
    if (__builtin_expect(w->calls->functions.rules != NULL, 0) &&
        guard_call(w, from, msg, f, &head, &why) != TENREC_OK) {
        dispatch_refuse_call(w, from, msg, &head, &why);
        return;
    }
    if (__builtin_expect(!f, 0)) {
        functions_none(&w->calls->functions, w->self.name, head.function, head.function_len, &why);
        dispatch_refuse_call(w, from, msg, &head, &why);
        return;
    }
    /* Only a call of an inline function may end before the delivery of its request does: its
     * arguments are read on the stack. */
    if (f->flags != TENREC_INLINE || msg->type == TENREC_MSG_REMOTE_CALL || dispatch_stopped(w)) {
        serve_later(w, f, &head, from, msg);
        return;
    }
    if (codec_read_args(msg, &head, &c.in, &why) != TENREC_OK) {
        dispatch_refuse(w, from, msg, true, &why);
        return;
    }
    if (!c.in.refers) {
        call_fill(&c, w, f, from, msg, true);
        call_limit(&c, 0);
        atomic_fetch_add_explicit(&w->calls->counts.taken, 1, memory_order_relaxed);
        run_inline(&c);
        return;
    }
    codec_call_finish(&c.in);
    serve_later(w, f, &head, from, msg);
}

/* ---- messages ------------------------------------------------------------- */

void dispatch_handle(struct dispatch *d, int32_t type, dispatch_fn *fn)
{
    assert(d->n < DISPATCH_HANDLERS_MAX);
    d->handler[d->n++] = (struct dispatch_handler){ type, fn };
}

static dispatch_fn *dispatch_handler_of(const struct dispatch *d, int32_t type)
{
    for (unsigned i = 0; i < d->n; i++)
        if (d->handler[i].type == type)
            return d->handler[i].fn;
    return NULL;
}

static void dispatch_unsupported(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg)
{
    tenrec_error why;

    tenrec_fail(&why, TENREC_EUNSUPPORTED, "message type 0x%x is not supported here",
                (unsigned)msg->type);
    dispatch_refuse(w, from, msg, codec_is_cbor(msg), &why);
}

/* Neither a call nor an answer to one. */
static void dispatch_other(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg)
{
    dispatch_fn *fn = dispatch_handler_of(&w->calls->dispatch, msg->type);
    tenrec_error why;

    if (w->calls->functions.rules && guard_message(w, from, msg, &why) != TENREC_OK) {
        dispatch_refuse(w, from, msg, codec_is_cbor(msg), &why);
        return;
    }
    if (!fn)
        fn = msg->type & TENREC_MSG_RESPONSE_BIT ? call_answered : dispatch_unsupported;
    fn(w, from, msg);
}

void worker_deliver(void *arg, tenrec_peer from, struct tenrec_msg *msg)
{
    const struct tenrec_worker *outer = thread_state.delivers;
    const bool traced = trace_thread.traced; /* the trace is of other calls */
    struct tenrec_worker *w = arg;

    trace_thread.traced = false;
    PROBE3(message__received, msg->type, from, msg->payload_len);
    thread_state.delivers = w;
    switch (msg->type) {
    case TENREC_MSG_CALL:
    case TENREC_MSG_ONE_WAY_CALL:
    case TENREC_MSG_REMOTE_CALL:
        dispatch_serve(w, from, msg);
        break;
    case TENREC_MSG_RET:
    case TENREC_MSG_EXCEPTION:
        call_answered(w, from, msg);
        break;
    case TENREC_MSG_CANCEL:
        active_calls_cancel(
            &w->calls->active_calls,
            &(struct active_calls_key){ msg->route.pipe, msg->route.generation, msg->id });
        msg->release(msg);
        break;
    default:
        dispatch_other(w, from, msg);
    }
    thread_state.delivers = outer;
    trace_thread.traced = traced;
}

void tenrec_call_finish(struct tenrec_call *c, const tenrec_error *why)
{
    if (worker_is_own(c->worker))
        call_end(c, why);
}
