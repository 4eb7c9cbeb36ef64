/* SPDX-License-Identifier: Apache-2.0 */
/* host.c - the services of the core for agents. */
#include "core/backend/account.h"
#include "core/backend/backend.h"
#include "core/backend/chain_layer.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/plugin/plugin.h"

#include <tenrec/chain.h>

static void host_send_inner(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                            struct tenrec_done done)
{
    struct link *l = link_of(self);

    l->inner_send(l->inner_sender, to, msg, done);
}

/* Relaxed: a message that arrives during a shutdown by another thread may be delivered or
 * dropped. The joins in the agents' shutdown order this: afterwards no message is
 * delivered. */
static enum chain_state state_of(struct chain *c)
{
    return atomic_load_explicit(&c->state, memory_order_relaxed);
}

static void host_deliver_outer(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg)
{
    struct link *l = (struct link *)self;
    struct chain *c = l->chain;
    enum chain_state state = atomic_load_explicit(&c->state, memory_order_relaxed);

    if (state == CHAIN_UP) {
        if (l->outer_deliver)
            l->outer_deliver(l->outer_deliverer, from, msg);
        else
            c->user.deliver(c->user.arg, from, msg);
        return;
    }
    /* While stopping, the outer agents are down already. After that, a delivery violates the
     * contract, or was under way. */
    if (state != CHAIN_STOPPING)
        log_line(TENREC_LOG_DEBUG, l->part, "delivered a message while the chain does not run");
    msg->release(msg);
}

static tenrec_status host_after(struct tenrec_agent *self, uint32_t ms, void (*fn)(void *arg),
                                void *arg)
{
    struct link *l = link_of(self);

    return agent_timers_add(&l->chain->after, &l->after, ms, fn, arg);
}

static tenrec_status host_hold(struct tenrec_agent *self, uint64_t due_ns, bool sends,
                               void (*fn)(void *arg), void *arg)
{
    struct link *l = link_of(self);

    return agent_timers_hold(&l->chain->after, &l->after, due_ns, sends, fn, arg);
}

static struct tenrec_msg *host_msg_new(struct tenrec_agent *self, uint64_t payload_len,
                                       uint32_t n_tensors)
{
    const struct chain_user *user = &((struct link *)self)->chain->user;

    if (payload_len >= TENREC_LARGE_PAYLOAD && user->large_new) {
        struct tenrec_msg *msg = user->large_new(user->arg, payload_len, n_tensors);
        if (msg)
            return msg;
    }
    return n_tensors > 0 && user->msg_new ? user->msg_new(payload_len, n_tensors)
                                          : message_new(payload_len, n_tensors);
}

static tenrec_status host_place(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg,
                                tenrec_error *err)
{
    const struct chain_user *user = &link_of(self)->chain->user;
    tenrec_status st = user->place(user->arg, from, msg, err);

    /* A user that does not know shared storages placed each tensor; the bytes arrive at the
     * place of the first. */
    for (uint32_t i = 0; i < msg->n_tensors && st == TENREC_OK; i++) {
        struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);

        if (t->same_storage && t->same_storage <= i)
            t->data = tenrec_msg_tensor(msg, (uint32_t)t->same_storage - 1)->data;
    }
    return st;
}

static struct tenrec_msg *host_text(const tenrec_error *why)
{
    char text[sizeof why->text]; /* which may have been cut in the middle of a character */
    struct tenrec_msg *msg;

    utf8_clean(why->text, strnlen(why->text, sizeof text), text, sizeof text);
    msg = message_new(strlen(text), 0);
    if (msg)
        memcpy(msg->payload, text, strlen(text));
    return msg;
}

static struct tenrec_msg *host_exception_new(struct tenrec_agent *self,
                                             const struct tenrec_msg *msg, const tenrec_error *why)
{
    const struct chain_user *user = &link_of(self)->chain->user;
    struct tenrec_msg *ret = user->exception_new ? user->exception_new(msg, why) : host_text(why);

    if (!ret)
        return NULL;
    ret->type = TENREC_MSG_EXCEPTION;
    ret->id = msg->id;
    ret->route = msg->route;
    return ret;
}

static bool host_accepts(struct tenrec_agent *self)
{
    const struct chain_user *user = &((struct link *)self)->chain->user;

    return !user->accepts || user->accepts(user->arg);
}

static void host_peer_lost(struct tenrec_agent *self, tenrec_peer peer, const tenrec_error *why)
{
    struct link *l = link_of(self);
    const struct chain_user *user = &l->chain->user;

    if (state_of(l->chain) == CHAIN_STOPPED)
        log_line(TENREC_LOG_DEBUG, l->part, "lost a peer while the chain does not run");
    else if (user->peer_lost)
        user->peer_lost(user->arg, peer, why);
}

static void host_caller_lost(struct tenrec_agent *self, tenrec_peer peer, const tenrec_error *why)
{
    struct link *l = link_of(self);
    const struct chain_user *user = &l->chain->user;

    if (state_of(l->chain) == CHAIN_STOPPED)
        log_line(TENREC_LOG_DEBUG, l->part, "lost a caller while the chain does not run");
    else if (user->caller_lost)
        user->caller_lost(user->arg, peer, why);
}

static bool host_needs(struct tenrec_agent *self, tenrec_peer peer)
{
    const struct chain_user *user = &link_of(self)->chain->user;

    return !user->needs || user->needs(user->arg, peer);
}

static const struct chain_sharing *sharing_of(struct tenrec_agent *self)
{
    return link_of(self)->chain->user.sharing;
}

static struct tenrec_sharing *host_sharing_open(struct tenrec_agent *self)
{
    return sharing_of(self) ? sharing_of(self)->open() : NULL;
}

static void host_sharing_close(struct tenrec_agent *self, struct tenrec_sharing *s)
{
    if (s)
        sharing_of(self)->close(s);
}

static bool host_share(struct tenrec_agent *self, struct tenrec_sharing *s,
                       const struct tenrec_tensor_desc *desc, struct tenrec_share *ret)
{
    return s && sharing_of(self)->share(s, desc, ret);
}

static void host_share_back(struct tenrec_agent *self, struct tenrec_sharing *s,
                            struct tenrec_share *share)
{
    sharing_of(self)->share_back(s, share);
}

static tenrec_status host_shared(struct tenrec_agent *self, struct tenrec_sharing *s,
                                 struct tenrec_share *share, struct tenrec_tensor_desc *desc,
                                 tenrec_error *err)
{
    return sharing_of(self)->shared(s, share, desc, err);
}

static const struct tenrec_budget host_budget = {
    .size = sizeof host_budget,
    .open = account_open,
    .close = account_close,
    .charge = account_charge,
    .give = account_give,
    .take = account_take,
    .refuse = account_refuse,
    .carry = message_carry,
    .source = source_get,
    .may_prove = source_may_prove,
    .admit = source_admit,
};

const struct tenrec_host chain_host = {
    .size = sizeof chain_host,
    .abi_major = TENREC_ABI_MAJOR,
    .abi_minor = TENREC_ABI_MINOR,
    .send_inner = host_send_inner,
    .deliver_outer = host_deliver_outer,
    .after = host_after,
    .msg_new = host_msg_new,
    .place = host_place,
    .accepts = host_accepts,
    .peer_lost = host_peer_lost,
    .log_enabled = plugin_log_enabled,
    .log = plugin_log,
    .caller_lost = host_caller_lost,
    .sharing_open = host_sharing_open,
    .sharing_close = host_sharing_close,
    .share = host_share,
    .share_back = host_share_back,
    .shared = host_shared,
    .exception_new = host_exception_new,
    .hold = host_hold,
    .budget = &host_budget,
    .needs = host_needs,
};
