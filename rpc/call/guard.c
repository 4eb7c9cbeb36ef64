/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/call/calls.h"

#include "core/base/log.h"
#include "security/proof/rules.h"

/* A tool that has proved the secret may do what any member may; it has no name in the group. */
static struct rule_caller guard_caller(const struct tenrec_worker *w, tenrec_peer from,
                                       const struct tenrec_msg *msg)
{
    return (struct rule_caller){ .member = from >= 0 || (msg->flags & TENREC_MSG_PROVED),
                                 .name = from >= 0 ? peers_name(&w->peers, from) : "" };
}

/* A one-way call is logged where each refused one is (dispatch.c). */
static tenrec_status guard_refuse(struct tenrec_worker *w, const struct rule_caller *caller,
                                  const struct tenrec_msg *msg, tenrec_error *err)
{
    atomic_fetch_add_explicit(&w->calls->counts.refused, 1, memory_order_relaxed);
    if (msg->type == TENREC_MSG_ONE_WAY_CALL)
        return TENREC_EPERM;
    log_line(TENREC_LOG_WARN, w->self.name, "request refused: %s", err->text);
    return caller->member ? TENREC_EPERM : tenrec_fail(err, TENREC_EPERM, "not allowed");
}

tenrec_status guard_call(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_msg *msg,
                         const struct function *f, const struct codec_head *head, tenrec_error *err)
{
    const struct rule_caller caller = guard_caller(w, from, msg);
    const struct rule *rule =
        f ? f->rule : rules_find(w->calls->functions.rules, head->function, head->function_len);

    if (rule_admits(rule, &caller))
        return TENREC_OK;
    rule_refuse(rule, &caller, head->function, head->function_len, err);
    return guard_refuse(w, &caller, msg, err);
}

tenrec_status guard_message(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_msg *msg,
                            tenrec_error *err)
{
    const struct rule_caller caller = guard_caller(w, from, msg);

    if (caller.member || !rules_closed(w->calls->functions.rules) ||
        (msg->type & TENREC_MSG_RESPONSE_BIT))
        return TENREC_OK;
    tenrec_fail(err, TENREC_EPERM, "message 0x%x of a caller that has proved nothing",
                (unsigned)msg->type);
    return guard_refuse(w, &caller, msg, err);
}
