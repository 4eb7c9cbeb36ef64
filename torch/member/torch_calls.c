/* SPDX-License-Identifier: Apache-2.0 */
/* torch_calls.c - calls of torch's functions. The chain ends each exactly once; that completes its
 * future. */
#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/base/text.h"
#include "torch/member/member.h"
#include "torch/member/pyobject.h"
#include "torch/member/references.h"
#include "torch/member/reply.h"

#include <stdlib.h>
#include <string.h>

struct torch_call {
    struct tenrec_torch_member *member;
    tenrec_peer to;
    int32_t answer;               /* the type of message that it expects */
    int64_t ms;                   /* for error texts */
    struct outgoing refs;         /* owns; in its arguments */
    struct tenrec_future *future; /* shares */
    char function[64];            /* for error texts */
};

/* ---- the end of a call ------------------------------------------------------------------ */

/* May the callee have read the arguments? Else their references never arrive. */
static bool call_arrived(const tenrec_error *why)
{
    return !why || why->code == TENREC_EREMOTE || why->code == TENREC_ETIMEDOUT;
}

static void call_end(struct torch_call *call, const struct tenrec_value *value,
                     const tenrec_error *why)
{
    struct tenrec_torch_member *m = call->member;
    tenrec_error told;

    if (why) {
        told = *why;
        told.worker = call->to;
        snprintf(told.worker_name, sizeof told.worker_name, "%s", torch_peer_name(m, call->to));
    }
    if (call_arrived(why))
        outgoing_finish(&call->refs);
    else
        outgoing_undo(&call->refs);
    if (why || tenrec_future_set_value(call->future, value, &told) != TENREC_OK)
        tenrec_future_set_error(call->future, &told, NULL);
    tenrec_future_drop(call->future);
    free(call);
    pthread_mutex_lock(&m->lock);
    if (--m->calls == 0)
        pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

/* The chain has ended the call. */
static void torch_call_ended(void *arg, struct tenrec_msg *msg, const tenrec_error *why)
{
    struct torch_call *call = arg;
    struct reply reply;
    tenrec_error err;

    if (!msg && why->code == TENREC_ETIMEDOUT) {
        tenrec_fail(&err, TENREC_ETIMEDOUT,
                    "no answer from '%s' to '%s' within its timeout of %lld ms",
                    torch_peer_name(call->member, call->to), call->function, (long long)call->ms);
        why = &err;
    }
    if (!msg) {
        call_end(call, NULL, why);
        return;
    }
    if (reply_read(msg, call->answer, call->member->refs, call->to, &reply, &err) == TENREC_OK)
        call_end(call, &reply.value, NULL);
    else
        call_end(call, NULL, &err);
    reply_finish(&reply);
    msg->release(msg);
}

bool torch_calls_wait(struct tenrec_torch_member *m, uint64_t deadline_ns)
{
    bool none;

    pthread_mutex_lock(&m->lock);
    while (m->calls > 0 && clock_cond_wait(&m->changed, &m->lock, deadline_ns))
        ;
    none = m->calls == 0;
    pthread_mutex_unlock(&m->lock);
    return none;
}

/* ---- sending ---------------------------------------------------------------------------- */

static tenrec_status call_new(struct tenrec_torch_member *m, tenrec_peer to, const char *function,
                              int64_t ms, struct torch_call **ret, tenrec_error *err)
{
    struct torch_call *call = memory_new(1, sizeof *call);
    tenrec_status st;

    if (!call)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a call");
    st = tenrec_future_new(&call->future, err);
    if (st != TENREC_OK) {
        free(call);
        return st;
    }
    call->member = m;
    call->to = to;
    call->ms = ms;
    utf8_clean(function, strlen(function), call->function, sizeof call->function);
    *ret = call;
    return TENREC_OK;
}

/* What answers a request of that type. */
static int32_t answer_of(int32_t type)
{
    switch (type) {
    case TENREC_MSG_SCRIPT_CALL:
        return TENREC_MSG_SCRIPT_RET;
    case TENREC_MSG_REMOTE_CALL:
    case TENREC_MSG_SCRIPT_REMOTE_CALL:
        return TENREC_MSG_REMOTE_RET;
    case TENREC_MSG_RREF_FETCH_CALL:
        return TENREC_MSG_RREF_FETCH_RET;
    case TENREC_MSG_SCRIPT_RREF_FETCH_CALL:
        return TENREC_MSG_SCRIPT_RREF_FETCH_RET;
    case TENREC_MSG_CALL:
        return TENREC_MSG_RET;
    default:
        return TENREC_MSG_RREF_ACK;
    }
}

tenrec_status torch_calls_send(struct tenrec_torch_member *m, tenrec_peer to, const char *function,
                               struct tenrec_msg *msg, struct outgoing *refs, int64_t ms,
                               struct tenrec_future **ret, tenrec_error *err)
{
    struct torch_call *call = NULL;
    tenrec_error why;
    tenrec_status st = call_new(m, to, function, ms, &call, err);

    if (st != TENREC_OK) {
        msg->release(msg);
        if (refs)
            outgoing_undo(refs);
        return st;
    }
    if (refs)
        call->refs = *refs;
    call->answer = answer_of(msg->type);
    *ret = tenrec_future_share(call->future);
    if (ms != TENREC_TIMEOUT_NONE)
        msg->deadline_ns = clock_deadline_ms((uint64_t)ms);
    pthread_mutex_lock(&m->lock);
    m->calls++;
    pthread_mutex_unlock(&m->lock);
    if (tenrec_chain_call(m->chain, to, msg, (struct tenrec_answer){ torch_call_ended, call },
                          &why) != TENREC_OK)
        torch_call_ended(call, NULL, &why);
    return TENREC_OK;
}

/* ---- joining and leaving ---------------------------------------------------------------- */

tenrec_status torch_calls_tell(struct tenrec_torch_member *m, tenrec_peer to, bool join,
                               uint64_t deadline_ns, struct tenrec_future **ret, tenrec_error *err)
{
    static const char module[] = "torch.distributed.rpc._utils";
    const int left_ms = clock_left_ms(deadline_ns);
    struct pickler p = { .jit = false };
    struct tenrec_msg *msg;
    tenrec_status st;

    if (left_ms == 0)
        return tenrec_fail(err, TENREC_ETIMEDOUT, "no time is left to call it");
    /* The arguments are this worker, no devices and no device maps of its own. */
    pickler_call_begin(&p, module, strlen(module), "_update_group_membership");
    pickler_op(&p, '(');
    pickler_worker_info(&p, m->name, m->id);
    pickler_op(&p, ']');
    pickler_op(&p, '}');
    pickler_bool(&p, join);
    pickler_op(&p, 't');
    pickler_call_end(&p);
    st = pickler_message(&p, TENREC_MSG_CALL, &msg, err);
    if (st != TENREC_OK)
        return st;
    return torch_calls_send(m, to, "_update_group_membership", msg, NULL,
                            left_ms < 0 ? TENREC_TIMEOUT_NONE : left_ms, ret, err);
}
