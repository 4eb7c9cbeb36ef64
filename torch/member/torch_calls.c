/* SPDX-License-Identifier: Apache-2.0 */
/* torch_calls.c - calls that wait for an answer. A call is removed from the list exactly once: by
 * its answer, a failure of its sending, its deadline, a lost peer, or the end of the member; that
 * event completes its future. */
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
    struct torch_call *next;
    int64_t id;
    tenrec_peer to;
    uint64_t deadline_ns;
    int32_t answer;               /* the type of message that it expects */
    int64_t ms;                   /* for error texts */
    struct outgoing refs;         /* owns; in its arguments */
    struct tenrec_future *future; /* shares */
    char function[64];            /* for error texts */
};

/* Of a send that is under way. */
struct call_sent {
    struct tenrec_torch_member *member;
    int64_t id;
};

/* ---- the list --------------------------------------------------------------------------- */

/* Which calls: all of it holds. */
struct call_filter {
    int64_t id;       /* -1: any */
    tenrec_peer to;   /* -1: any */
    uint64_t late_ns; /* the deadline is not after it */
};

/* Removes the first of these calls; NULL if there is none. */
static struct torch_call *torch_calls_take(struct tenrec_torch_member *m, struct call_filter f)
{
    struct torch_call **at = &m->calls, *call;

    pthread_mutex_lock(&m->lock);
    while ((call = *at) && !((f.id < 0 || call->id == f.id) && (f.to < 0 || call->to == f.to) &&
                             call->deadline_ns <= f.late_ns))
        at = &call->next;
    if (call)
        *at = call->next;
    if (!m->calls)
        pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    return call;
}

/* May the callee have read the arguments? Else their references never arrive. */
static bool call_arrived(const tenrec_error *why)
{
    return !why || why->code == TENREC_EREMOTE || why->code == TENREC_ETIMEDOUT;
}

static void call_end(struct tenrec_torch_member *m, struct torch_call *call,
                     const struct tenrec_value *value, const tenrec_error *why)
{
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
}

void torch_calls_fail(struct tenrec_torch_member *m, tenrec_peer to, const tenrec_error *why)
{
    struct torch_call *call;

    while ((call = torch_calls_take(m, (struct call_filter){ -1, to, CLOCK_NEVER })))
        call_end(m, call, NULL, why);
}

void torch_calls_lost(void *arg, tenrec_peer peer, const tenrec_error *why)
{
    torch_calls_fail(arg, peer, why);
    references_lost(arg, peer, why);
}

void torch_calls_expire(void *arg)
{
    struct tenrec_torch_member *m = arg;
    uint64_t next_ns = references_expire(m);
    struct torch_call *call;
    tenrec_error why;

    while ((call = torch_calls_take(m, (struct call_filter){ -1, -1, clock_now_ns() }))) {
        tenrec_fail(&why, TENREC_ETIMEDOUT,
                    "no answer from '%s' to '%s' within its timeout of %lld ms",
                    torch_peer_name(m, call->to), call->function, (long long)call->ms);
        call_end(m, call, NULL, &why);
    }
    pthread_mutex_lock(&m->lock);
    for (call = m->calls; call; call = call->next)
        if (call->deadline_ns < next_ns)
            next_ns = call->deadline_ns;
    pthread_mutex_unlock(&m->lock);
    if (next_ns != CLOCK_NEVER)
        tenrec_chain_wake_at(m->chain, next_ns);
}

bool torch_calls_wait(struct tenrec_torch_member *m, uint64_t deadline_ns)
{
    bool none;

    pthread_mutex_lock(&m->lock);
    while (m->calls && clock_cond_wait(&m->changed, &m->lock, deadline_ns))
        ;
    none = !m->calls;
    pthread_mutex_unlock(&m->lock);
    return none;
}

/* ---- sending ---------------------------------------------------------------------------- */

static void on_sent(void *arg, const tenrec_error *why)
{
    struct call_sent *sent = arg;
    struct torch_call *call = NULL;

    if (why)
        call = torch_calls_take(sent->member, (struct call_filter){ sent->id, -1, CLOCK_NEVER });
    if (call)
        call_end(sent->member, call, NULL, why);
    free(sent);
}

/* Makes the call and lists it. */
static tenrec_status call_new(tenrec_peer to, const char *function, int64_t ms,
                              struct torch_call **ret, tenrec_error *err)
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
    call->to = to;
    call->ms = ms;
    call->deadline_ns = ms == TENREC_TIMEOUT_NONE ? CLOCK_NEVER : clock_deadline_ms((uint64_t)ms);
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
    struct call_sent *sent = memory_new(1, sizeof *sent);
    struct torch_call *call = NULL;
    uint64_t deadline_ns;
    tenrec_status st = sent ? call_new(to, function, ms, &call, err)
                            : tenrec_fail(err, TENREC_ENOMEM, "no memory for a call");

    if (st != TENREC_OK) {
        free(sent);
        msg->release(msg);
        if (refs)
            outgoing_undo(refs);
        return st;
    }
    if (refs)
        call->refs = *refs;
    call->answer = answer_of(msg->type);
    /* Once it is listed another thread may end it. */
    *ret = tenrec_future_share(call->future);
    deadline_ns = call->deadline_ns;
    pthread_mutex_lock(&m->lock);
    *sent = (struct call_sent){ m, m->n_calls };
    msg->id = call->id = m->n_calls++;
    call->next = m->calls;
    m->calls = call;
    pthread_mutex_unlock(&m->lock);
    if (deadline_ns != CLOCK_NEVER) {
        msg->deadline_ns = deadline_ns;
        tenrec_chain_wake_at(m->chain, deadline_ns);
    }
    tenrec_chain_send(m->chain, to, msg, (struct tenrec_done){ on_sent, sent });
    return TENREC_OK;
}

void torch_calls_answer(struct tenrec_torch_member *m, tenrec_peer from, struct tenrec_msg *msg)
{
    struct torch_call *call = NULL;
    struct reply reply;
    tenrec_error why;

    if (from >= 0 && msg->id >= 0)
        call = torch_calls_take(m, (struct call_filter){ msg->id, from, CLOCK_NEVER });
    if (call && reply_read(msg, call->answer, m->refs, from, &reply, &why) == TENREC_OK)
        call_end(m, call, &reply.value, NULL);
    else if (call)
        call_end(m, call, NULL, &why);
    if (call)
        reply_finish(&reply);
    else if (msg->type == TENREC_MSG_REMOTE_RET)
        references_late(m, from, msg);
    msg->release(msg);
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
