/* SPDX-License-Identifier: Apache-2.0 */
/* call_request.c - requests from the arguments of the program: options, targets of tensors, the
 * payload, and the calls of rpc.h that send them. */
#include "core/base/fail.h"
#include "rpc/call/call.h"

#include "core/tensor/device.h"
#include "rpc/call/calls.h"
#include "rpc/call/observe.h"
#include "rpc/call/transfer.h"
#include "rpc/future/future.h"
#include "rpc/future/thread_state.h"
#include "rpc/future/worker.h"
#include "rpc/value/codec.h"
#include "rpc/value/trace.h"

#include <stdlib.h>

static tenrec_status call_check_trace(const char *traceparent, tenrec_error *err)
{
    struct trace_context t;
    tenrec_status st = trace_context_parse(traceparent, &t, err);

    if (st != TENREC_OK)
        tenrec_error_prefix(err, "call options");
    return st;
}

tenrec_status call_check_options(const struct tenrec_call_options *o, uint32_t flags,
                                 tenrec_error *err)
{
    if (o->size < sizeof *o)
        return tenrec_fail(err, TENREC_EINVAL,
                           "call options: size is %u, expected %zu (set it to sizeof)", o->size,
                           sizeof *o);
    if (o->flags & ~flags)
        return tenrec_fail(err, TENREC_EINVAL, "call options: unknown flags 0x%x", o->flags);
    if (o->reserved[0] | o->reserved[1] | o->reserved[2])
        return tenrec_fail(err, TENREC_EINVAL,
                           "call options: reserved is not zero (zero the whole struct first)");
    if (o->into && (o->flags & TENREC_ONE_WAY))
        return tenrec_fail(err, TENREC_EINVAL, "a one-way call has no result to receive into");
    if (o->into && !recv_alloc_is_plain(o->into))
        return tenrec_fail(err, TENREC_EINVAL,
                           "call options: 'into' must be contiguous and fill its storage");
    return o->traceparent ? call_check_trace(o->traceparent, err) : TENREC_OK;
}

tenrec_status call_begin_into(struct tenrec_tensor *into, struct tenrec_tensor **ret,
                              tenrec_error *err)
{
    struct tenrec_stream now, s;
    tenrec_status st;

    *ret = into;
    if (!into || tenrec_tensor_desc(into)->device.kind == TENREC_CPU)
        return TENREC_OK;
    now.device = tenrec_tensor_desc(into)->device;
    now.stream = tenrec_stream_get_current(now.device);
    st = stream_after(&now, &s, err);
    if (st == TENREC_OK)
        st = device_tensor_order(into, &s, err);
    if (st != TENREC_OK)
        return st;
    tenrec_tensor_record_stream(into, &s);
    return device_tensor_on(into, &s, ret, err);
}

void call_end_into(struct tenrec_tensor *into, struct tenrec_tensor *made)
{
    if (made != into)
        tenrec_tensor_drop(made);
}

/* Sets targets and streams of the tensors. Takes the message on failure. */
static tenrec_status map_request(struct tenrec_worker *w, const struct call_spec *spec,
                                 struct tenrec_msg *msg, tenrec_error *err)
{
    tenrec_status st = devices_request(w, spec->to, spec->function, msg, err);

    if (st != TENREC_OK)
        msg->release(msg);
    return st;
}

/* The references in the arguments are released with the call. */
static tenrec_status write_any(struct tenrec_worker *w, int32_t type, struct call_spec *spec,
                               const struct codec_creation *creation,
                               const struct tenrec_value *args, size_t n,
                               struct tenrec_future **ret, tenrec_error *err)
{
    struct codec_extra extra = { .creation = creation, .trace = spec->trace, .deref = spec->deref };
    struct transfer_out out;
    struct tenrec_msg *msg;
    tenrec_status st;

    transfer_out_init(&out, w, spec->to);
    extra.refs = &out.refs;
    extra.spans_max = type == TENREC_MSG_ONE_WAY_CALL ? 0 : spec->spans_max;
    st = codec_write_call(type, spec->function, args, n, spec->timeout_ms, &extra, &msg, err);
    if (unlikely(out.transfer != NULL))
        w->calls->transfers->follow(out.transfer, spec, type == TENREC_MSG_ONE_WAY_CALL);
    if (st == TENREC_OK && msg->n_tensors > 0)
        st = map_request(w, spec, msg, err);
    if (st == TENREC_OK)
        st = call_send(w, spec, msg, ret, err);
    transfer_out_finish(&out);
    if (st != TENREC_OK)
        transfer_end(w, out.transfer, TRANSFER_REFUSED);
    return st;
}

/* The call belongs to the trace that the program names, or to that of its thread. */
static void call_continue_trace(struct call_spec *spec, struct trace_context *room)
{
    if (spec->traceparent)
        trace_context_parse(spec->traceparent, room, NULL); /* checked with the options */
    else
        *room = trace_thread.context;
    spec->trace = room;
}

tenrec_status call_write(struct tenrec_worker *w, int32_t type, struct call_spec *spec,
                         const struct codec_creation *creation, const struct tenrec_value *args,
                         size_t n, struct tenrec_future **ret, tenrec_error *err)
{
    struct tenrec_msg *msg = NULL;
    struct trace_context trace;
    tenrec_status st = TENREC_OK;

    if (unlikely(spec->traceparent || trace_thread.traced))
        call_continue_trace(spec, &trace);
    if (observe_is_on(w)) {
        spec->room = &trace;
        observe_begin(w, spec);
        spec->room = NULL;
    }
    if (!creation && !spec->spans_max)
        msg = codec_simple_write(type, spec->function, args, n, spec->timeout_ms, spec->trace);
    if (!msg)
        st = write_any(w, type, spec, creation, args, n, ret, err);
    else if (msg->n_tensors == 0 || (st = map_request(w, spec, msg, err)) == TENREC_OK)
        st = call_send(w, spec, msg, ret, err);
    if (unlikely(st != TENREC_OK && spec->seen.observers))
        observe_refused(w, spec, st);
    spec->trace = NULL;
    return st;
}

static tenrec_status call_begin(struct tenrec_worker *w, const char *to, const char *function,
                                const struct tenrec_value *args, size_t n,
                                const struct tenrec_call_options *options, struct call_spec *spec,
                                struct tenrec_future **ret, tenrec_error *err)
{
    static const struct tenrec_call_options defaults = { .size = sizeof defaults };
    const struct tenrec_call_options *o = options ? options : &defaults;
    int32_t type = o->flags & TENREC_ONE_WAY ? TENREC_MSG_ONE_WAY_CALL : TENREC_MSG_CALL;
    tenrec_status st;

    if (!to || !function)
        return tenrec_fail(err, TENREC_EINVAL, "no %s is given", to ? "function" : "worker");
    if (!args && n > 0)
        return tenrec_fail(err, TENREC_EINVAL, "n is %zu, but args is NULL", n);
    st = options ? call_check_options(o, TENREC_ONE_WAY | TENREC_WAIT_NEXT, err) : TENREC_OK;
    if (st == TENREC_OK)
        st = peers_find_again(&w->peers, to, &spec->to, err);
    if (st == TENREC_OK)
        st = call_begin_now(w, spec, o->timeout_ms, err);
    if (st != TENREC_OK)
        return st;
    spec->function = function;
    spec->traceparent = o->traceparent;
    spec->polled = o->flags & TENREC_WAIT_NEXT;
    if (type == TENREC_MSG_ONE_WAY_CALL)
        spec->op = "rpc_one_way";
    if (o->into)
        st = call_begin_into(o->into, &spec->into, err);
    if (st != TENREC_OK)
        return st;
    st = call_write(w, type, spec, NULL, args, n, ret, err);
    if (o->into)
        call_end_into(o->into, spec->into);
    return st;
}

tenrec_status call_async_unscoped(struct tenrec_worker *w, const char *to, const char *function,
                                  const struct tenrec_value *args, size_t n, bool deref,
                                  const struct tenrec_call_options *options,
                                  struct tenrec_future **ret, tenrec_error *err)
{
    struct call_spec spec = { .op = "rpc_async", .want_value = true, .deref = deref };
    tenrec_status st = worker_enter(w, err);

    if (st != TENREC_OK)
        return st;
    st = call_begin(w, to, function, args, n, options, &spec, ret, err);
    worker_leave(w);
    return st;
}

tenrec_status call_async(struct tenrec_worker *w, const char *to, const char *function,
                         const struct tenrec_value *args, size_t n, bool deref,
                         const struct tenrec_call_options *options, struct tenrec_future **ret,
                         tenrec_error *err)
{
    struct tenrec_future *f;
    tenrec_status st;

    if (!ret)
        return tenrec_fail(err, TENREC_EINVAL, "no place for the future is given");
    st = call_async_unscoped(w, to, function, args, n, deref, options, &f, err);
    if (st != TENREC_OK)
        return st;
    st = future_scope_add(f, err);
    if (st != TENREC_OK)
        tenrec_future_drop(f);
    else
        *ret = f;
    return st;
}

tenrec_status tenrec_rpc_async(struct tenrec_worker *w, const char *to, const char *function,
                               const struct tenrec_value *args, size_t n,
                               const struct tenrec_call_options *options,
                               struct tenrec_future **ret, tenrec_error *err)
{
    if (ret)
        *ret = NULL;
    return call_async(w, to, function, args, n, false, options, ret, err);
}

tenrec_status call_sync(struct tenrec_worker *w, const char *to, const char *function,
                        const struct tenrec_value *args, size_t n, bool deref,
                        const struct tenrec_call_options *options, struct tenrec_value **ret,
                        tenrec_error *err)
{
    struct waiter waiter;
    struct future_node node = { .waiter = &waiter };
    struct call_spec spec = {
        .node = &node, .op = "rpc_sync", .want_value = ret != NULL, .may_wait = true, .deref = deref
    };
    struct waiter *outer = thread_state.waiter;
    struct pool *pool = thread_state.pool;
    struct tenrec_future *f;
    tenrec_status st;

    if (thread_state.no_block > 0)
        return tenrec_fail(err, TENREC_EWOULDBLOCK,
                           "'%s': an inline function or a callback may not wait for a call",
                           function ? function : "");
    st = worker_enter(w, err);
    if (st != TENREC_OK)
        return st;
    if (pool) /* a send may wait for room in the queue, too */
        pool_block_begin(pool);
    waiter_init(&waiter, true);
    thread_state.waiter = &waiter; /* awake until it waits, also during the send */
    st = call_begin(w, to, function, args, n, options, &spec, &f, err);
    if (st == TENREC_OK)
        wait_for_call(f, &node);
    thread_state.waiter = outer;
    waiter_finish(&waiter);
    if (pool)
        pool_block_end(pool);
    worker_leave(w);
    if (st != TENREC_OK)
        return st;
    st = future_result(f, err);
    if (st == TENREC_OK && ret)
        st = future_take_value(f, ret, err);
    tenrec_future_drop(f);
    return st;
}

tenrec_status tenrec_rpc_sync(struct tenrec_worker *w, const char *to, const char *function,
                              const struct tenrec_value *args, size_t n,
                              const struct tenrec_call_options *options, struct tenrec_value **ret,
                              tenrec_error *err)
{
    if (ret)
        *ret = NULL;
    return call_sync(w, to, function, args, n, false, options, ret, err);
}
