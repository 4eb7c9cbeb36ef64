/* SPDX-License-Identifier: Apache-2.0 */
/* dispatch.c - messages that arrive, on their way to what serves them. */
#include "rpc/call/service.h"

#include "core/base/probe.h"
#include "rpc/call/call.h"
#include "rpc/call/calls.h"
#include "rpc/future/thread_state.h"
#include "rpc/value/trace.h"

#include <assert.h>

void dispatch_handle(struct dispatch *d, const struct dispatch_handler *h)
{
    assert(d->n < DISPATCH_HANDLERS_MAX);
    d->handler[d->n++] = *h;
}

static const struct dispatch_handler *dispatch_handler_of(const struct dispatch *d, int32_t type)
{
    for (unsigned i = 0; i < d->n; i++)
        if (d->handler[i].type == type)
            return &d->handler[i];
    return NULL;
}

tenrec_status dispatch_into(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_msg *msg,
                            struct dispatch_into *ret, tenrec_error *err)
{
    const struct dispatch_handler *h = dispatch_handler_of(&w->calls->dispatch, msg->type);

    ret->n = 0;
    if (!h || !h->into)
        return TENREC_OK;
    if (w->calls->functions.rules && guard_message(w, from, msg, err) != TENREC_OK)
        return TENREC_EPERM;
    return h->into(w, from, msg, ret, err);
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
    const struct dispatch_handler *h = dispatch_handler_of(&w->calls->dispatch, msg->type);
    dispatch_fn *fn = h ? h->fn : NULL;
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
        serve_request(w, from, msg);
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
