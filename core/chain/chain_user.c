/* SPDX-License-Identifier: Apache-2.0 */
/* chain_user.c - a chain without a worker, for programs with calls of their own
 * (tenrec/chain.h). No locks. */
#include "core/chain/chain_user.h"
#include "core/base/clock.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/chain/chain.h"
#include "core/config/config.h"
#include "core/tensor/device.h"
#include "core/tensor/sharing.h"
#include "core/tensor/storage_pool.h"
#include "core/tensor/tensor.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Sizes of tensors that are copied for a receiver that maps memory: for smaller ones the call costs
 * more than it saves; of larger ones the receiver copies a part at the same time. */
#define COPY_MIN ((uint64_t)256 << 10)
#define COPY_MAX ((uint64_t)16 << 20)

/* ---- functions for the chain ------------------------------------------------ */

static void on_deliver(void *arg, tenrec_peer from, struct tenrec_msg *msg)
{
    struct tenrec_chain *a = arg;

    if (!chain_calls_answer(a, from, msg, NULL))
        a->user.deliver(a->user.arg, from, msg);
}

static tenrec_status on_place(void *arg, tenrec_peer from, struct tenrec_msg *msg,
                              tenrec_error *err)
{
    struct tenrec_chain *a = arg;
    tenrec_error why;
    tenrec_status st =
        a->user.place ? a->user.place(a->user.arg, from, msg, &why) : tenrec_msg_place(msg, &why);

    for (uint32_t i = 0; i < msg->n_tensors && st == TENREC_OK; i++)
        mapping_copy(tenrec_msg_tensor(msg, i));
    if (st == TENREC_OK)
        return st;
    (void)chain_calls_answer(a, from, msg, &why);
    if (err)
        *err = why;
    return st;
}

static struct tenrec_msg *on_large(void *arg, uint64_t payload_len, uint32_t n_tensors)
{
    const struct tenrec_chain_user *user = &((struct tenrec_chain *)arg)->user;
    void *data;
    const struct payload_owner payload = { user->payload_new(user->arg, payload_len, &data),
                                           user->payload_drop };
    struct tenrec_msg *msg = NULL;

    if (!payload.owner)
        return NULL;
    msg = rpc_message_new_around(&payload, data, payload_len, n_tensors);
    if (!msg)
        payload.drop(payload.owner);
    return msg;
}

static bool on_accepts(void *arg)
{
    const struct tenrec_chain_user *user = &((struct tenrec_chain *)arg)->user;

    return !user->accepts || user->accepts(user->arg);
}

static void on_peer_lost(void *arg, tenrec_peer peer, const tenrec_error *why)
{
    struct tenrec_chain *a = arg;

    tenrec_chain_end_calls(a, peer, why);
    if (a->user.peer_lost)
        a->user.peer_lost(a->user.arg, peer, why);
}

static void on_caller_lost(void *arg, tenrec_peer peer, const tenrec_error *why)
{
    const struct tenrec_chain_user *user = &((struct tenrec_chain *)arg)->user;

    if (user->caller_lost)
        user->caller_lost(user->arg, peer, why);
}

static void on_time(void *arg)
{
    struct tenrec_chain *a = arg;

    chain_calls_expire(a);
    if (a->user.wake)
        a->user.wake(a->user.arg);
}

/* Memory that the sender may still write is copied. */
static tenrec_status find_memory(struct tenrec_tensor_desc *d, struct tenrec_tensor **ret,
                                 tenrec_error *err)
{
    tenrec_status st;

    if (!d->mapping || !mapping_is_writable(d->mapping))
        return tensor_for_desc(d, ret, err);
    st = mapped_tensor_new(d->mapping, d, ret, err);
    if (st == TENREC_OK)
        d->mapping = NULL;
    return st;
}

tenrec_status tenrec_msg_place(struct tenrec_msg *msg, tenrec_error *err)
{
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        struct tenrec_tensor_desc *d = tenrec_msg_tensor(msg, i);
        struct tenrec_tensor *t;
        tenrec_status st;
        if (rpc_message_owner(msg, i))
            continue;
        d->device = (struct tenrec_device){ TENREC_CPU, 0 };
        d->flags &= ~TENREC_TENSOR_READ_ONLY; /* as the sender had it */
        st = d->same_storage ? rpc_message_share_storage(msg, i, err) : find_memory(d, &t, err);
        if (st != TENREC_OK) {
            tenrec_error_prefix(err, "tensor %u", i);
            return st;
        }
        if (d->same_storage)
            continue;
        d->data = tenrec_tensor_desc(t)->data;
        rpc_message_set_owner(msg, i, t);
    }
    return TENREC_OK;
}

void *tenrec_msg_take_payload(struct tenrec_msg *msg)
{
    return rpc_message_take_payload(msg);
}

struct tenrec_tensor *tenrec_msg_take_tensor(struct tenrec_msg *msg, uint32_t i)
{
    struct tenrec_tensor *t = rpc_message_owner(msg, i);

    if (t) {
        tenrec_tensor_share(t);
        rpc_message_set_owner(msg, i, NULL);
    }
    return t;
}

/* ---- init and drop ----------------------------------------------------------- */

static tenrec_status check_init(const struct tenrec_chain_options *options,
                                const struct tenrec_chain_user *user,
                                const struct tenrec_member *me, tenrec_error *err)
{
    if (!options || !user || !me || !me->name)
        return tenrec_fail(err, TENREC_EINVAL, "tenrec_chain_new: %s is NULL",
                           !options ? "options"
                           : !user  ? "user"
                           : !me    ? "me"
                                    : "the name");
    if (!TENREC_HAS(user, deliver))
        return tenrec_fail(err, TENREC_EINVAL, "tenrec_chain_new: the user has no deliver");
    if (me->id < 0)
        return tenrec_fail(err, TENREC_EINVAL, "tenrec_chain_new: the id is %d, expected 0 or more",
                           me->id);
    if (!TENREC_HAS(user, payload_new) != !TENREC_HAS(user, payload_drop))
        return tenrec_fail(err, TENREC_EINVAL,
                           "tenrec_chain_new: the user has one of payload_new and payload_drop, "
                           "expected both or none");
    return TENREC_OK;
}

static tenrec_status make_parts(struct tenrec_chain *a, const struct tenrec_chain_options *options,
                                tenrec_error *err)
{
    tenrec_status st = loop_open(&a->loop, err);

    if (st == TENREC_OK)
        st = loop_timer_new(a->loop, on_time, a, &a->timer, err);
    if (st == TENREC_OK)
        st = housekeeping_join(a->loop, &a->housekeeping, err);
    if (st == TENREC_OK)
        st = parallel_copy_open(&a->copy, err);
    if (st == TENREC_OK) {
        a->pool_bytes = (size_t)options->settings->receive_pool_bytes;
        storage_pool_allow(storage_pool_of_process(), a->pool_bytes);
    }
    return st;
}

tenrec_status tenrec_chain_new(const struct tenrec_chain_options *options,
                               const struct tenrec_chain_user *user, const struct tenrec_member *me,
                               uint32_t world, struct tenrec_chain **ret, tenrec_error *err)
{
    tenrec_status st = check_init(options, user, me, err);
    const struct chain_layer *layer;
    struct tenrec_chain *a;
    size_t n;

    *ret = NULL;
    if (st != TENREC_OK)
        return st;
    a = memory_new(1, sizeof *a);
    if (!a)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the agent");
    a->process = getpid();
    pending_init(&a->pending);
    memcpy(&a->user, user, user->size < sizeof a->user ? user->size : sizeof a->user);
    const struct chain_identity id = { .me = me->id,
                                       .world = world,
                                       .incarnation = me->incarnation,
                                       .token = TENREC_HAS(me, token) ? me->token : 0,
                                       .name = me->name,
                                       .host_address = me->address,
                                       .guard = options->guard };
    const struct chain_user above = { .deliver = on_deliver,
                                      .place = on_place,
                                      .accepts = on_accepts,
                                      .peer_lost = on_peer_lost,
                                      .caller_lost = on_caller_lost,
                                      .msg_new = rpc_message_new,
                                      .large_new = a->user.payload_new ? on_large : NULL,
                                      .sharing = &sharing_of_process,
                                      .arg = a };
    layer = chain_config_layers(options->layers, &n);
    st = make_parts(a, options, err);
    if (st == TENREC_OK)
        st = chain_open(layer, n, &id, a->loop, &above, &a->chain, err);
    if (st == TENREC_OK)
        *ret = a;
    else
        tenrec_chain_drop(a);
    return st;
}

const char *tenrec_chain_address(struct tenrec_chain *agent)
{
    return chain_address(agent->chain);
}

tenrec_status tenrec_chain_set_devices(struct tenrec_chain *agent,
                                       const struct tenrec_device *device, uint32_t n,
                                       tenrec_error *err)
{
    const struct tenrec_device_ops *ops;
    uint32_t count;
    tenrec_status st = chain_devices(agent->chain, &ops, &count, err);

    if (st == TENREC_OK)
        st = stream_ops_set(ops, err);
    return st == TENREC_OK ? chain_use_devices(agent->chain, device, n, err) : st;
}

tenrec_status tenrec_chain_start(struct tenrec_chain *agent, const struct tenrec_member *member,
                                 uint32_t n, tenrec_error *err)
{
    const size_t size = n ? (size_t)member->size : 0;

    if (agent->member)
        return tenrec_fail(err, TENREC_EINVAL, "a chain is started once only");
    agent->member = memory_new(n ? n : 1, size ? size : 1);
    if (!agent->member)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %u members", n);
    if (n)
        memcpy(agent->member, member, n * size);
    return chain_start(agent->chain, agent->member, n, err);
}

void tenrec_chain_add_member(struct tenrec_chain *agent, const struct tenrec_member *member)
{
    chain_member_joined(agent->chain, member);
}

void tenrec_chain_remove_member(struct tenrec_chain *agent, tenrec_peer id)
{
    chain_member_left(agent->chain, id);
}

tenrec_status tenrec_chain_drain(struct tenrec_chain *agent, uint32_t ms, tenrec_error *err)
{
    return chain_drain(agent->chain, ms, err);
}

void tenrec_chain_stop(struct tenrec_chain *agent)
{
    tenrec_error why;

    if (agent->process != getpid())
        return;
    chain_shutdown(agent->chain);
    tenrec_fail(&why, TENREC_ESHUTDOWN, "the chain was stopped before the answer arrived");
    tenrec_chain_end_calls(agent, -1, &why);
}

void tenrec_chain_drop(struct tenrec_chain *agent)
{
    if (!agent || agent->process != getpid())
        return;
    if (agent->chain)
        tenrec_chain_stop(agent);
    chain_close(agent->chain);
    free(agent->member);
    loop_timer_drop(agent->timer);
    pending_finish(&agent->pending);
    storage_pool_deny(storage_pool_of_process(), agent->pool_bytes);
    parallel_copy_close(agent->copy);
    housekeeping_leave(agent->housekeeping);
    loop_close(agent->loop);
    free(agent);
}

/* ---- messages -------------------------------------------------------------- */

struct tenrec_msg *tenrec_msg_new(uint64_t payload_len, uint32_t n_tensors)
{
    return rpc_message_new(payload_len, n_tensors);
}

void tenrec_msg_set_tensor(struct tenrec_msg *msg, uint32_t i, struct tenrec_tensor *tensor)
{
    rpc_message_set_tensor(msg, i, tensor);
}

struct tenrec_tensor *tenrec_chain_copy_for(struct tenrec_chain *agent, tenrec_peer to,
                                            struct tenrec_route route,
                                            const struct tenrec_tensor_desc *desc)
{
    struct tenrec_tensor *t;

    if (desc->bytes < COPY_MIN || desc->bytes > COPY_MAX || !chain_maps(agent->chain, to, route))
        return NULL;
    sharing_collect(clock_now_ns());
    if (shared_memory_count().private_bytes + desc->bytes > agent->pool_bytes)
        return NULL;
    if (tensor_new_private(desc, &t, NULL) != TENREC_OK)
        return NULL;
    parallel_copy_run(agent->copy, tenrec_tensor_desc(t)->data, desc->data, (size_t)desc->bytes);
    return t;
}

void tenrec_chain_send(struct tenrec_chain *agent, tenrec_peer to, struct tenrec_msg *msg,
                       struct tenrec_done done)
{
    chain_send(agent->chain, to, msg, done);
}

tenrec_status tenrec_chain_poll(struct tenrec_chain *agent, tenrec_peer peer,
                                const struct tenrec_wait *wait)
{
    return chain_poll(agent->chain, peer, wait);
}

tenrec_status tenrec_chain_lead(struct tenrec_chain *agent, const struct tenrec_wait *wait)
{
    return chain_lead(agent->chain, wait);
}

void tenrec_chain_resume(struct tenrec_chain *agent)
{
    chain_resume(agent->chain);
}

void tenrec_chain_wake_at(struct tenrec_chain *agent, uint64_t deadline_ns)
{
    loop_timer_arm(agent->timer, deadline_ns);
}

tenrec_status tenrec_chain_disconnect(struct tenrec_chain *agent, tenrec_peer peer,
                                      tenrec_error *err)
{
    return chain_disconnect(agent->chain, peer, err);
}

void tenrec_chain_list_debug_info(struct tenrec_chain *agent, tenrec_sink_fn *sink, void *arg)
{
    chain_debug_info(agent->chain, sink, arg);
}

const char *tenrec_chain_name(const struct tenrec_chain *agent)
{
    return chain_name(agent->chain, 0);
}
