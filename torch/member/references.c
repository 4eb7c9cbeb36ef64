/* SPDX-License-Identifier: Apache-2.0 */
#include "torch/member/references.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/config/config.h"
#include "group/membership/membership.h"
#include "torch/member/member.h"
#include "torch/member/pyobject.h"

#include <stdlib.h>
#include <tenrec/message.h>
#include <time.h>

enum { CONTROL_MAX = 4096 }; /* bytes of a message that holds but a few numbers */

/* ---- messages of ids --------------------------------------------------------------- */

tenrec_status references_message(int32_t type, const struct rref_id *id, size_t n,
                                 struct tenrec_msg **ret, tenrec_error *err)
{
    struct pickler p = { .jit = true };

    pickler_begin(&p);
    pickler_op(&p, '(');
    for (size_t i = 0; i < n; i++)
        pickler_rref_id(&p, id[i]);
    pickler_op(&p, 't');
    pickler_end(&p);
    return pickler_message(&p, type, ret, err);
}

/* Reads a tuple of `n` ids, behind which `more` items follow. */
static tenrec_status references_read(const struct tenrec_msg *msg, struct rref_id *id, uint32_t n,
                                     uint32_t more, tenrec_error *err)
{
    struct arena arena = { NULL };
    const struct pyobject *o = NULL;
    tenrec_status st;

    if (msg->payload_len > CONTROL_MAX)
        return tenrec_fail(err, TENREC_EPROTOCOL, "malformed message: it has %llu bytes",
                           (unsigned long long)msg->payload_len);
    st = unpickle_jit(msg->payload, (size_t)msg->payload_len, &arena, &o, err);
    if (st == TENREC_OK && (o->kind != PY_TUPLE || o->n != n + more))
        st = tenrec_fail(err, TENREC_EPROTOCOL, "malformed message: expected a tuple of %u",
                         (unsigned)(n + more));
    for (uint32_t i = 0; i < n && st == TENREC_OK; i++)
        if (!pyobject_rref_id(o->u.item[i], &id[i]))
            st = tenrec_fail(err, TENREC_EPROTOCOL, "malformed message: item %u is no id",
                             (unsigned)i);
    arena_finish(&arena);
    return st;
}

/* ---- messages that are sent ----------------------------------------------------------- */

static const char *control_name(int32_t type)
{
    return type == TENREC_MSG_RREF_FORK_REQUEST   ? "RREF_FORK_REQUEST"
           : type == TENREC_MSG_RREF_CHILD_ACCEPT ? "RREF_CHILD_ACCEPT"
                                                  : "RREF_USER_DELETE";
}

static void control_end(struct rref_job *job, const tenrec_error *why)
{
    struct tenrec_torch_member *m = job->ctx->sender;
    struct rref_acts acts = { 0 };

    if (why)
        log_line(TENREC_LOG_DEBUG, m->name, "%s to '%s': %s", control_name(job->type),
                 torch_peer_name(m, job->to), why->text);
    rref_job_done(job, why, &acts);
    rref_acts_run(&acts);
}

static void control_answered(struct tenrec_future *f, void *arg)
{
    control_end(arg, tenrec_future_error(f));
}

/* Once: a message to a living worker arrives, or its connection breaks, which ends the references
 * on both sides. */
static void control_send(struct rref_job *job)
{
    const struct rref_id both[] = { job->id, job->fork };
    const bool accept = job->type == TENREC_MSG_RREF_CHILD_ACCEPT;
    struct tenrec_torch_member *m = job->ctx->sender;
    const uint64_t ms = m->settings->rpc_timeout_ms;
    struct tenrec_future *f;
    struct tenrec_msg *msg;
    tenrec_error why;
    tenrec_status st =
        references_message(job->type, accept ? both + 1 : both, accept ? 1 : 2, &msg, &why);

    if (st == TENREC_OK) {
        msg->flags |= TENREC_MSG_CONTROL;
        st = torch_calls_send(m, job->to, control_name(job->type), msg, NULL,
                              ms == TENREC_FOREVER ? TENREC_TIMEOUT_NONE : (int64_t)ms, &f, &why);
    }
    if (st == TENREC_OK) {
        st = tenrec_future_add_callback(f, control_answered, job, &why);
        tenrec_future_drop(f);
    }
    if (st != TENREC_OK)
        control_end(job, &why);
}

/* ---- messages that arrive --------------------------------------------------------------- */

static tenrec_status control_handle(struct tenrec_torch_member *m, tenrec_peer from,
                                    const struct tenrec_msg *msg, tenrec_error *err)
{
    const bool accept = msg->type == TENREC_MSG_RREF_CHILD_ACCEPT;
    struct rref_acts acts = { 0 };
    struct rref_id id[2];
    tenrec_status st = references_read(msg, id, accept ? 1 : 2, 0, err);

    if (st != TENREC_OK)
        return st;
    if (accept)
        rref_child_arrived(m->refs, id[0], from, &acts);
    else if (msg->type == TENREC_MSG_RREF_USER_DELETE)
        rref_user_deleted(m->refs, id[0], id[1], from, &acts);
    else
        st = rref_fork_requested(m->refs, id[0], id[1], from, err);
    rref_acts_run(&acts);
    return st;
}

static tenrec_status control_serve(struct tenrec_torch_member *m, tenrec_peer from,
                                   const struct tenrec_msg *msg, tenrec_error *err)
{
    struct tenrec_msg *ack;
    tenrec_status st = control_handle(m, from, msg, err);

    if (st == TENREC_OK && !(ack = tenrec_msg_new(0, 0)))
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for an answer");
    if (st == TENREC_OK) {
        ack->type = TENREC_MSG_RREF_ACK;
        torch_requests_answer(m, from, msg, ack);
    }
    return st;
}

bool references_serve(struct tenrec_torch_member *m, tenrec_peer from, struct tenrec_msg *msg)
{
    const bool fetch =
        msg->type == TENREC_MSG_RREF_FETCH_CALL || msg->type == TENREC_MSG_SCRIPT_RREF_FETCH_CALL;
    struct rref_id id;
    tenrec_error why;
    tenrec_status st = TENREC_OK;

    if (!fetch && msg->type != TENREC_MSG_RREF_USER_DELETE &&
        msg->type != TENREC_MSG_RREF_FORK_REQUEST && msg->type != TENREC_MSG_RREF_CHILD_ACCEPT)
        return false;
    if (from < 0)
        st = tenrec_fail(&why, TENREC_EUNSUPPORTED, "only members of the group have references");
    else if (fetch)
        st = references_read(msg, &id, 1, 1, &why);
    else
        st = control_serve(m, from, msg, &why);
    if (st == TENREC_OK && fetch)
        st = torch_fetch_serve(m, from, msg, id, &why);
    if (st != TENREC_OK)
        torch_requests_fail(m, from, msg, &why);
    if (st != TENREC_OK || !fetch)
        msg->release(msg);
    return true;
}

void references_late(struct tenrec_torch_member *m, tenrec_peer from, const struct tenrec_msg *msg)
{
    struct rref_acts acts = { 0 };
    struct rref_id id[2];

    if (from < 0 || references_read(msg, id, 2, 0, NULL) != TENREC_OK || id[0].on != m->id ||
        id[1].on != m->id)
        return;
    rref_refuse(m->refs, &(struct rref_fork){ id[0], id[1], from, from }, &acts);
    rref_acts_run(&acts);
}

/* ---- members ------------------------------------------------------------------------------ */

tenrec_status references_open(struct tenrec_torch_member *m, tenrec_error *err)
{
    struct timespec now;
    struct rref_setup s = { .send = control_send, .sender = m, .room = RANKS_MAX, .me = m->id };

    /* Ids that a former process with this id has not given. */
    clock_gettime(CLOCK_REALTIME, &now);
    s.session = (uint64_t)now.tv_sec;
    return rref_context_new(&s, &m->refs, err);
}

void references_close(struct tenrec_torch_member *m)
{
    struct rref_acts acts = { 0 };

    if (!m->refs)
        return;
    rref_context_close(m->refs, &acts);
    rref_acts_run(&acts);
}

tenrec_status references_join(struct tenrec_torch_member *m, tenrec_peer id, const char *name,
                              tenrec_error *err)
{
    return rref_context_set_name(m->refs, id, name, err);
}

void references_lost(struct tenrec_torch_member *m, tenrec_peer id, const tenrec_error *why)
{
    struct rref_acts acts = { 0 };

    if (id < 0)
        return;
    rref_peer_lost(m->refs, id, why, &acts);
    rref_acts_run(&acts);
}

void references_left(struct tenrec_torch_member *m, tenrec_peer id, const tenrec_error *why)
{
    rref_peer_gone(m->refs, id);
    references_lost(m, id, why);
}

uint64_t references_expire(struct tenrec_torch_member *m)
{
    struct rref_acts acts = { 0 };
    const uint64_t next_ns = rref_expire(m->refs, clock_now_ns(), &acts);

    rref_acts_run(&acts);
    return next_ns;
}

/* ---- leaving ------------------------------------------------------------------------------ */

void references_release(struct tenrec_torch_member *m, uint64_t deadline_ns)
{
    struct rref_acts acts = { 0 };
    tenrec_error why;

    if (rref_wait_settled(m->refs, deadline_ns, &why) != TENREC_OK)
        log_line(TENREC_LOG_WARN, m->name, "leaving with a reference on its way: %s", why.text);
    rref_delete_users(m->refs, false, &acts);
    rref_acts_run(&acts);
    if (rref_wait_released(m->refs, deadline_ns, &why) != TENREC_OK)
        log_line(TENREC_LOG_WARN, m->name, "leaving with a value that another worker refers to: %s",
                 why.text);
    rref_delete_users(m->refs, true, &acts);
    rref_acts_run(&acts);
}
