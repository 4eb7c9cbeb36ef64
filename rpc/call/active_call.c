/* SPDX-License-Identifier: Apache-2.0 */
/* active_call.c - a call for the function that serves it. */
#include "core/base/clock.h"
#include "core/base/fail.h"
#include "rpc/call/calls.h"
#include "rpc/call/transfer.h"
#include "rpc/value/codec.h"
#include "rpc/value/type_text.h"
#include "rpc/value/value.h"

#include <tenrec/trace.h>

const struct tenrec_value *tenrec_call_args(const struct tenrec_call *c, size_t *ret_n)
{
    *ret_n = c->in.n;
    return c->in.args;
}

tenrec_status tenrec_call_get_args(const struct tenrec_call *c, tenrec_error *err,
                                   const char *types, ...)
{
    tenrec_status st;
    va_list ap;

    va_start(ap, types);
    st = values_vget(c->in.args, c->in.n, err, types, ap);
    va_end(ap);
    if (st != TENREC_OK)
        tenrec_error_prefix(err, "'%s'", c->function->name);
    return st;
}

struct tenrec_worker *tenrec_call_worker(const struct tenrec_call *c)
{
    return c->worker;
}

const char *tenrec_call_function(const struct tenrec_call *c)
{
    return c->function->name;
}

struct tenrec_worker_info tenrec_call_from(const struct tenrec_call *c)
{
    return (struct tenrec_worker_info){ .name = peers_name(&c->worker->peers, c->from),
                                        .id = c->from };
}

enum tenrec_caller_proof tenrec_call_proof(const struct tenrec_call *c)
{
    if (c->request->flags & TENREC_MSG_PROVED)
        return TENREC_PROVED_SECRET;
    return c->from >= 0 ? TENREC_PROVED_RECORD : TENREC_PROVED_NOTHING;
}

int64_t tenrec_call_time_left(const struct tenrec_call *c)
{
    uint64_t now = clock_now_ns();
    int64_t left_ms;

    if (c->deadline_ns == CLOCK_NEVER)
        return TENREC_TIMEOUT_NONE;
    if (c->deadline_ns == 0)
        return c->in.remaining_ms;
    left_ms = c->deadline_ns <= now ? 0 : (int64_t)((c->deadline_ns - now) / 1000000u);
    /* A deadline of a second or more may be a tick of the kernel late. */
    return left_ms < c->in.remaining_ms ? left_ms : c->in.remaining_ms;
}

uint64_t tenrec_call_stream(struct tenrec_call *c, struct tenrec_device device)
{
    struct tenrec_stream s;

    return streams_get(c->streams, device, &s, NULL) == TENREC_OK ? s.stream : 0;
}

bool tenrec_call_canceled(const struct tenrec_call *c)
{
    return atomic_load(&c->canceled) || (c->deadline_ns != 0 && clock_passed(c->deadline_ns));
}

void active_call_streams(struct tenrec_call *c)
{
    c->streams = devices_call_streams(c->worker, c->request);
}

struct tenrec_msg *active_call_target(struct tenrec_call *c, struct tenrec_msg *reply)
{
    struct tenrec_msg *msg = NULL;
    tenrec_error why;

    if (devices_answer(c->worker, c->from, c->streams, reply, &why) == TENREC_OK)
        return reply;
    reply->release(reply);
    transfer_end(c->worker, c->transfer, TRANSFER_REFUSED);
    c->transfer = NULL;
    peers_blame(&c->worker->peers, c->worker->self.id, &why);
    codec_write_error(&why, c->cbor, &msg, NULL);
    return msg;
}

tenrec_status tenrec_call_return(struct tenrec_call *c, const struct tenrec_value *value,
                                 tenrec_error *err)
{
    struct tenrec_msg *reply;
    struct transfer_out out;
    tenrec_status st;

    if (!worker_is_own(c->worker))
        return worker_refuse_child(err);
    if (unlikely(c->streams != NULL) && value_on_devices(value)) {
        st = value_order(value, c->streams, err);
        if (st != TENREC_OK)
            return st;
    }
    if (c->refs && c->worker->calls->served_refs->keep(c, value, &st, err))
        return st;
    transfer_out_init(&out, c->worker, c->from);
    st = codec_write_value_refs(value, TENREC_MSG_RET, &out.refs, &reply, err);
    transfer_out_finish(&out);
    if (st != TENREC_OK) {
        transfer_end(c->worker, out.transfer, TRANSFER_REFUSED);
        return st;
    }
    if (c->reply)
        c->reply->release(c->reply);
    if (c->transfer)
        transfer_end(c->worker, c->transfer, TRANSFER_REFUSED);
    c->reply = reply;
    c->transfer = out.transfer;
    return TENREC_OK;
}

bool tenrec_call_trace(const struct tenrec_call *c, char ret[TENREC_TRACEPARENT_SIZE])
{
    if (c->in.traced)
        trace_context_print(&c->in.trace, ret);
    return c->in.traced;
}
