/* SPDX-License-Identifier: Apache-2.0 */
/* serve_end.c - the ends of served calls: answers, and requests that are refused. */
#include "rpc/call/calls.h"

#include "core/base/fail.h"
#include "core/base/log.h"
#include "core/base/probe.h"
#include "core/tensor/device.h"
#include "rpc/call/observe.h"
#include "rpc/call/transfer.h"
#include "rpc/future/worker.h"

#include <stdlib.h>

static void serve_free(struct tenrec_call *c)
{
    if (unlikely(c->refs != NULL))
        c->worker->calls->served_refs->end(c);
    codec_call_finish(&c->in);
    if (c->reply)
        c->reply->release(c->reply);
    if (c->request)
        c->request->release(c->request);
    if (unlikely(c->streams != NULL))
        streams_drop(c->streams);
    if (c->on_stack)
        return;
    active_calls_remove(&c->worker->calls->active_calls,
                        c); /* from now on the worker may be freed */
    free(c);
}

/* Returns the message that answers a call, or NULL if out of memory. */
static struct tenrec_msg *serve_answer(struct tenrec_call *c, struct tenrec_msg *reply,
                                       const tenrec_error *why)
{
    struct tenrec_msg *msg = NULL;
    tenrec_error told;

    if (c->refs && c->worker->calls->served_refs->complete(c, why, &msg))
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
void serve_end(struct tenrec_call *c, const tenrec_error *why)
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
        reply = serve_answer(c, reply, why);
    if (answers && reply && reply->n_tensors > 0)
        reply = active_call_target(c, reply);
    if (!answers && why && c->one_way)
        log_line(TENREC_LOG_WARN, w->self.name, "one-way call of '%s' failed: %s",
                 c->function->name, why->text);
    if (unlikely(c->observers != 0))
        observe_served(c, &reply, status);
    if (why && c->transfer) {
        transfer_end(w, c->transfer, TRANSFER_REFUSED);
        c->transfer = NULL;
    }
    if (unlikely(c->refs != NULL)) {
        /* Before the answer is sent, so a caller that checks for leaks on receipt finds none. */
        c->worker->calls->served_refs->end(c);
        codec_call_finish(&c->in);
    }
    /* A caller that is no member is charged for its request and for the answer. */
    if (unlikely(c->from < 0)) {
        codec_call_finish(&c->in);
        c->request->release(c->request);
        c->request = NULL;
    }
    if (answers) {
        answer_send(w, c->from, id, &route, reply, c->transfer);
    } else {
        transfer_end(w, c->transfer, TRANSFER_REFUSED);
        if (reply)
            reply->release(reply);
    }
    if (entered)
        worker_leave(w);
    PROBE5(serve__end, w->self.name, c->from, c->function->name, c->key.id, status);
    if (c->one_way)
        count_one_way(w, c->from);
    atomic_fetch_add_explicit(&w->calls->counts.served, 1, memory_order_relaxed);
    serve_free(c);
}

/* ---- refusals ------------------------------------------------------------- */

void dispatch_refuse(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg, bool cbor,
                     const tenrec_error *why)
{
    observe_note(w, NOTE_REFUSED, from, msg->id, why->code, "");
    w->calls->transfers->forget(w, from, msg);
    if (msg->type != TENREC_MSG_ONE_WAY_CALL) {
        answer_error(w, from, msg->id, &msg->route, cbor, why);
    } else {
        log_line(TENREC_LOG_WARN, w->self.name, "one-way call refused: %s", why->text);
        count_one_way(w, from);
    }
    msg->release(msg);
}

/* Refuses a call whose start was read. */
void serve_refuse_request(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg,
                          const struct codec_head *head, const tenrec_error *why)
{
    if (msg->type == TENREC_MSG_REMOTE_CALL)
        w->calls->served_refs->refused(w, from, msg, &head->creation, why);
    else
        dispatch_refuse(w, from, msg, true, why);
}

/* Ends a call whose arguments were not read, or that was not taken. Inside the worker. */
void serve_abandon(struct tenrec_call *c, const tenrec_error *why)
{
    struct codec_head head = { .function = NULL };
    struct tenrec_msg *msg = c->request;

    if (c->observers)
        observe_served(c, &(struct tenrec_msg *){ NULL }, why->code);
    codec_call_finish(&c->in);
    codec_read_head(msg, &head, NULL); /* for the second time: cannot fail */
    c->request = NULL;
    serve_refuse_request(c->worker, c->from, msg, &head, why);
    serve_free(c);
}

/* Answers a call whose function was not started. */
void serve_refuse(struct tenrec_call *c, const tenrec_error *why)
{
    struct tenrec_worker *w = c->worker;

    if (!c->unread) {
        c->refused = true;
        serve_end(c, why);
        return;
    }
    atomic_fetch_add_explicit(&w->calls->counts.served, 1, memory_order_relaxed);
    if (worker_enter(w, NULL) == TENREC_OK) {
        serve_abandon(c, why);
        worker_leave(w);
    } else {
        serve_free(c);
    }
}

void tenrec_call_finish(struct tenrec_call *c, const tenrec_error *why)
{
    if (worker_is_own(c->worker))
        serve_end(c, why);
}
