/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/call/call.h"

#include "core/backend/backend.h"
#include "core/base/clock.h"
#include "core/base/fail.h"
#include "core/base/loop.h"
#include "core/base/probe.h"
#include "rpc/call/calls.h"
#include "rpc/call/observe.h"
#include "rpc/call/transfer.h"
#include "rpc/future/future.h"
#include "rpc/future/thread_state.h"
#include "rpc/future/worker.h"
#include "rpc/value/codec.h"
#include "rpc/value/value.h"

#include <stdlib.h>

/* Shares of the future of a call: of the caller, of the pending entry, of call_sent. */
#define CALL_SHARES 3

static tenrec_status call_limit(const struct tenrec_worker *w, int64_t ms, int64_t *ret,
                                tenrec_error *err)
{
    if (ms == TENREC_TIMEOUT_DEFAULT)
        ms = atomic_load_explicit(&w->calls->timeout_ms, memory_order_relaxed);
    if (ms < 0)
        return tenrec_fail(err, TENREC_EINVAL,
                           "timeout of %lld ms: it may not be negative (TENREC_TIMEOUT_NONE for "
                           "none)",
                           (long long)ms);
    *ret = ms;
    return TENREC_OK;
}

static uint64_t deadline_of(int64_t ms)
{
    return ms == TENREC_TIMEOUT_NONE ? CLOCK_NEVER : clock_deadline_about_ms((uint64_t)ms);
}

tenrec_status call_deadline(struct tenrec_worker *w, int64_t *timeout_ms, uint64_t *ret_ns,
                            tenrec_error *err)
{
    tenrec_status st = call_limit(w, *timeout_ms, timeout_ms, err);

    if (st == TENREC_OK)
        *ret_ns = deadline_of(*timeout_ms);
    return st;
}

tenrec_status call_begin_now(struct tenrec_worker *w, struct call_spec *spec, int64_t timeout_ms,
                             tenrec_error *err)
{
    tenrec_status st = call_limit(w, timeout_ms, &spec->timeout_ms, err);

    if (st != TENREC_OK)
        return st;
    /* One clock serves both. */
    spec->seen.begun_ns = observe_is_on(w) ? clock_fast_ns() : 0;
    if (!spec->seen.begun_ns)
        spec->deadline_ns = deadline_of(spec->timeout_ms);
    else if (spec->timeout_ms == TENREC_TIMEOUT_NONE)
        spec->deadline_ns = CLOCK_NEVER;
    else
        spec->deadline_ns =
            clock_later_ms(spec->seen.begun_ns + CLOCK_FAST_ERROR_NS, (uint64_t)spec->timeout_ms);
    return st;
}

/* ---- completing ----------------------------------------------------------- */

/* Counts a call that has ended, and wakes a shutdown that waits for outstanding calls. */
static void count_finished(struct tenrec_worker *w, _Atomic uint64_t *counter)
{
    atomic_fetch_add(counter, 1);
    if (atomic_load(&w->leaving)) {
        pthread_mutex_lock(&w->lock);
        pthread_cond_broadcast(&w->changed);
        pthread_mutex_unlock(&w->lock);
    }
}

void call_outstanding_begin(struct tenrec_worker *w)
{
    atomic_fetch_add(&w->calls->counts.jobs, 1);
}

void call_outstanding_end(struct tenrec_worker *w)
{
    count_finished(w, &w->calls->counts.jobs_ended);
}

static void run_hooks(struct tenrec_worker *w, struct call_hook *h, const tenrec_error *why)
{
    struct call_hook *next;

    for (; h; h = next) {
        next = h->next;
        h->done(h, w, why);
    }
}

static void call_complete(struct tenrec_future *f, struct tenrec_value *value,
                          const tenrec_error *why)
{
    struct tenrec_future *to = f->call.result;

    if (why) {
        future_complete_error(to ? to : f, why);
    } else if (likely(!to)) {
        future_complete_value(f, value);
    } else {
        future_complete_ready(to, value, f->streams);
        f->streams = NULL;
    }
    if (unlikely(to != NULL))
        tenrec_future_drop(to);
}

/* Completes the future of a removed entry, and drops the entry's shares. `answer`: taken; or NULL.
 */
static void call_finish_with(struct tenrec_worker *w, struct pending_entry *e,
                             struct tenrec_value *value, const tenrec_error *why,
                             struct tenrec_msg *answer)
{
    PROBE5(call__end, w->self.name, e->to, &e->future->call.function[0], e->future->call.id,
           why ? why->code : TENREC_OK);
    if (unlikely(e->future->call.hook != NULL))
        run_hooks(w, e->future->call.hook, why);
    if (unlikely(e->future->call.seen.observers != 0))
        observe_ended(w, &e->future->call, answer, why ? why->code : TENREC_OK);
    if (answer)
        answer->release(answer);
    call_complete(e->future, value, why);
    if (e->into)
        tenrec_tensor_drop(e->into);
    tenrec_future_drop(e->future);
    count_finished(w, &w->calls->counts.finished);
}

static void call_finish(struct tenrec_worker *w, struct pending_entry *e,
                        struct tenrec_value *value, const tenrec_error *why)
{
    call_finish_with(w, e, value, why, NULL);
}

static void fail_late(struct tenrec_worker *w, struct pending_entry *e)
{
    const char *name = peers_name(&w->peers, e->to);
    tenrec_error why;

    tenrec_fail(&why, TENREC_ETIMEDOUT, "no answer from '%s' to '%s' within its timeout of %lld ms",
                name, e->future->call.function, (long long)e->future->call.timeout_ms);
    peers_blame(&w->peers, e->to, &why);
    atomic_fetch_add_explicit(&w->calls->counts.timeouts, 1, memory_order_relaxed);
    observe_note(w, NOTE_TIMED_OUT, e->to, e->future->call.id, TENREC_ETIMEDOUT,
                 e->future->call.function);
    call_finish(w, e, NULL, &why);
}

void call_expire(struct tenrec_worker *w)
{
    uint64_t next = CLOCK_NEVER, now = clock_now_ns();
    struct pending_entry e;
    uint32_t at = 0;

    while (pending_take_late(&w->calls->pending, now, &at, &e, &next))
        fail_late(w, &e);
    if (next != CLOCK_NEVER)
        loop_timer_arm(w->calls->deadlines, next);
}

void call_expire_one(struct tenrec_worker *w, struct tenrec_future *f)
{
    struct pending_entry e;

    if (pending_take(&w->calls->pending, f->call.id, &e))
        fail_late(w, &e);
}

void call_fail_one(struct tenrec_worker *w, struct tenrec_future *f, const tenrec_error *why)
{
    struct pending_entry e;

    if (pending_take(&w->calls->pending, f->call.id, &e))
        call_finish(w, &e, NULL, why);
}

void call_fail_peer(struct tenrec_worker *w, tenrec_peer to, const tenrec_error *why)
{
    struct pending_entry e;
    uint32_t at = 0;

    while (pending_take_peer(&w->calls->pending, to, &at, &e)) {
        tenrec_error told = *why;
        if (e.to >= 0)
            peers_blame(&w->peers, e.to, &told);
        call_finish(w, &e, NULL, &told);
    }
}

struct call_search {
    tenrec_peer to;
    bool found;
};

static void call_search_one(void *arg, int64_t id, const struct pending_entry *e)
{
    struct call_search *s = arg;

    (void)id;
    s->found = s->found || e->to == s->to;
}

bool call_waits_for(struct tenrec_worker *w, tenrec_peer to)
{
    struct call_search s = { .to = to };

    pending_each(&w->calls->pending, call_search_one, &s);
    return s.found;
}

/* ---- sending -------------------------------------------------------------- */

/* The agent completed a request; `arg` is a share of the future. */
static void call_sent(void *arg, const tenrec_error *why)
{
    struct tenrec_future *f = arg;
    struct tenrec_worker *w = f->call.worker;
    struct pending_entry e;

    if (unlikely(f->call.sent_hook != NULL))
        f->call.sent_hook->sent(f->call.sent_hook, why);
    if (why && pending_take(&w->calls->pending, f->call.id, &e)) {
        tenrec_error told = *why;
        if (told.worker < 0)
            peers_blame(&w->peers, e.to, &told);
        call_finish(w, &e, NULL, &told);
    } else if (!why && f->call.one_way && pending_take(&w->calls->pending, f->call.id, &e)) {
        atomic_fetch_add_explicit(&w->calls->counts.one_way, 1, memory_order_relaxed);
        call_finish(w, &e, NULL, NULL);
    }
    tenrec_future_drop(f);
}

/* Just before it is sent. */
static void call_see(struct tenrec_future *f, struct call_spec *spec, const struct tenrec_msg *msg)
{
    if (spec->seen.span) {
        spec->seen.sent_bytes = observe_message_bytes(msg);
        spec->seen.sent_ns = clock_now_ns();
    }
    f->call.seen = spec->seen;
    atomic_init(&f->call.returned_ns, 0);
}

static struct tenrec_future *make_future(struct tenrec_worker *w, struct call_spec *spec,
                                         const struct tenrec_msg *msg)
{
    struct tenrec_future *f = future_make();
    const char *name;
    size_t n;

    if (!f)
        return NULL;
    f->call.worker = w;
    f->call.to = spec->to;
    f->call.deadline_ns = spec->deadline_ns;
    f->call.timeout_ms = spec->timeout_ms;
    f->call.one_way = msg->type == TENREC_MSG_ONE_WAY_CALL;
    f->call.want_value = spec->want_value;
    f->call.seen.observers = spec->seen.observers;
    f->call.seen.begun_ns = spec->seen.begun_ns;
    if (unlikely(spec->seen.observers != 0))
        call_see(f, spec, msg);
    f->call.hook = spec->hook;
    f->call.sent_hook = spec->sent_hook;
    f->call.result = spec->result;
    f->waiters = spec->node;
    f->call.private = spec->node != NULL;
    name = spec->function;
    n = strlen(name);
    if (unlikely(n >= sizeof f->call.function)) {
        name += n - (sizeof f->call.function - 1);
        n = sizeof f->call.function - 1;
    }
    memcpy(f->call.function, name, n);
    f->call.function[n] = '\0';
    return f;
}

tenrec_status call_send(struct tenrec_worker *w, struct call_spec *spec, struct tenrec_msg *msg,
                        struct tenrec_future **ret, tenrec_error *err)
{
    struct pending_entry e;
    struct tenrec_future *f;
    tenrec_status st = TENREC_ENOMEM;

    if (!spec->seen.observers && observe_is_on(w))
        observe_begin(w, spec);
    f = make_future(w, spec, msg);
    e = (struct pending_entry){ { f }, spec->into, spec->deadline_ns, spec->to };
    if (!f)
        goto err_msg;
    /* No other thread has the future yet, so the shares need no atomic increment. */
    atomic_init(&f->refs, CALL_SHARES);
    if (spec->into)
        tenrec_tensor_share(spec->into);
    st = pending_add(&w->calls->pending, &e, &f->call.id);
    if (st != TENREC_OK)
        goto err_future;
    /* A shutdown may have failed all pending calls before this entry was added. */
    if (atomic_load(&w->state) != WORKER_RUNNING &&
        pending_take(&w->calls->pending, f->call.id, &e)) {
        st = TENREC_ESHUTDOWN;
        count_finished(w, &w->calls->counts.finished);
        goto err_future;
    }
    if (spec->deadline_ns < atomic_load(&w->calls->deadlines->armed_ns))
        loop_timer_arm(w->calls->deadlines, spec->deadline_ns);
    msg->id = f->call.id;
    PROBE4(call__begin, w->self.name, spec->to, spec->function, msg->id);
    PROBE3(message__sent, msg->type, spec->to, msg->payload_len);
    msg->deadline_ns = spec->deadline_ns == CLOCK_NEVER ? 0 : spec->deadline_ns;
    if (spec->may_wait)
        msg->flags |= TENREC_MSG_MAY_WAIT;
    if (spec->polled)
        msg->flags |= TENREC_MSG_POLLED;
    w->calls->port->send(w->calls->port->sender, spec->to, msg,
                         (struct tenrec_done){ call_sent, f });
    if (unlikely(spec->seen.span != NULL))
        atomic_store(&f->call.returned_ns, clock_now_ns());
    *ret = f;
    return TENREC_OK;

err_future:
    tenrec_tensor_drop(spec->into);
    for (int i = 0; i < CALL_SHARES; i++)
        tenrec_future_drop(f);
err_msg:
    msg->release(msg);
    if (spec->seen.observers)
        observe_refused(w, spec, st);
    return tenrec_fail(err, st, "cannot call '%s': %s", spec->function, tenrec_status_text(st));
}

/* ---- answers -------------------------------------------------------------- */

static tenrec_status read_answer(struct tenrec_worker *w, tenrec_peer from, bool wanted,
                                 const struct tenrec_msg *msg, struct tenrec_value **ret,
                                 tenrec_error *err)
{
    bool refers = false;
    tenrec_status st = TENREC_OK;

    if (wanted)
        st = codec_read_value_refs(msg, ret, &refers, err);
    if (!wanted || st != TENREC_OK)
        w->calls->transfers->forget(w, from, msg);
    if (!refers)
        return st;
    st = w->calls->transfers->take(w, from, *ret, 1, false, err);
    if (st != TENREC_OK) {
        tenrec_value_drop(*ret);
        *ret = NULL;
    }
    return st;
}

/* Removes the spans of an answer, so that it ends after its value. */
static void cut_spans(struct tenrec_msg *msg)
{
    size_t at;

    if (codec_first_end(msg, &at))
        msg->payload_len = at;
}

/* Drops an answer whose call has ended, or was sent to another worker and still waits. */
static void answer_unwanted(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg)
{
    atomic_fetch_add_explicit(pending_has(&w->calls->pending, msg->id)
                                  ? &w->calls->counts.stray_replies
                                  : &w->calls->counts.late_replies,
                              1, memory_order_relaxed);
    observe_note(w, NOTE_LATE_ANSWER, from, msg->id, TENREC_OK, "");
    if (codec_may_refer(msg))
        cut_spans(msg);
    w->calls->transfers->forget(w, from, msg);
    msg->release(msg);
}

void call_answered(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg)
{
    const uint64_t len = msg->payload_len;
    struct tenrec_value *value = NULL;
    struct pending_entry e;
    tenrec_status st = TENREC_OK;
    tenrec_error why;

    if (!pending_take_from(&w->calls->pending, msg->id, from, &e)) {
        answer_unwanted(w, from, msg);
        return;
    }
    if (unlikely(e.future->call.seen.span != NULL))
        cut_spans(msg);
    if (msg->type == TENREC_MSG_EXCEPTION) {
        codec_read_error(msg, &why);
        st = why.code;
    } else if (!codec_is_nil(msg)) {
        st = read_answer(w, from, e.future->call.want_value, msg, &value, &why);
        if (st != TENREC_OK)
            tenrec_error_prefix(&why, "answer to '%s'", e.future->call.function);
        else if (msg->n_tensors > 0 && unlikely(devices_in(msg)))
            e.future->streams = value ? value_streams(value) : NULL;
    }
    if (st != TENREC_OK && why.worker < 0)
        peers_blame(&w->peers, e.to, &why);
    /* The callee has read the call, even if its answer cannot be read. */
    if (st != TENREC_OK && msg->type != TENREC_MSG_EXCEPTION) {
        run_hooks(w, e.future->call.hook, NULL);
        e.future->call.hook = NULL;
    }
    msg->payload_len = len;
    call_finish_with(w, &e, value, st == TENREC_OK ? NULL : &why, msg);
}

struct tenrec_tensor *call_into(struct tenrec_worker *w, tenrec_peer from,
                                const struct tenrec_msg *msg)
{
    struct pending_entry e;

    if (!(msg->type & TENREC_MSG_RESPONSE_BIT) ||
        !pending_peek_from(&w->calls->pending, msg->id, from, &e))
        return NULL;
    return e.into;
}

void call_fail(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_msg *msg,
               const tenrec_error *why)
{
    struct pending_entry e;

    if ((msg->type & TENREC_MSG_RESPONSE_BIT) &&
        pending_take_from(&w->calls->pending, msg->id, from, &e))
        call_finish(w, &e, NULL, why);
}

static void call_cancel(struct tenrec_worker *w, struct tenrec_future *f, const tenrec_error *why)
{
    struct pending_entry e;
    struct tenrec_msg *msg;

    if (f->call.id == 0)
        future_complete_error(f, why);
    if (f->call.id == 0 || !pending_take(&w->calls->pending, f->call.id, &e))
        return;
    if (!f->call.one_way && (msg = message_new(0, 0))) {
        msg->type = TENREC_MSG_CANCEL;
        msg->id = f->call.id;
        msg->flags = TENREC_MSG_CONTROL;
        chain_send(w->chain, e.to, msg, (struct tenrec_done){ NULL, NULL });
    }
    call_finish(w, &e, NULL, why);
}

void tenrec_future_cancel(struct tenrec_future *f)
{
    struct tenrec_worker *w = NULL;
    tenrec_error why;

    spinlock_lock(&f->lock);
    if (atomic_load(&f->state) == FUTURE_PENDING && f->call.worker &&
        worker_enter(f->call.worker, NULL) == TENREC_OK)
        w = f->call.worker;
    spinlock_unlock(&f->lock);
    tenrec_fail(&why, TENREC_ECANCELED, "canceled by the caller");
    if (!w) {
        if (!f->call.worker)
            future_complete_error(f, &why);
        return;
    }
    call_cancel(w, f, &why);
    worker_leave(w);
}
