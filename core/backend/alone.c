/* alone.c - a chain by itself, for programs that want no RPC: the second half
 * of tenrec/backend.h. */
#include "backend/chain.h"
#include "backend/message.h"
#include "backend/stack.h"
#include "base/loop.h"
#include "base/memory.h"

#include <stdlib.h>
#include <tenrec/backend.h>

struct tenrec_rpc_backend_options {
    struct stack *stack;
};

struct tenrec_backend_agent {
    struct loop *loop;
    struct chain *chain;
};

tenrec_status tenrec_construct_rpc_backend_options(const struct tenrec_config *config,
                                                   struct tenrec_rpc_backend_options **ret,
                                                   tenrec_error *err)
{
    struct tenrec_rpc_backend_options *o;
    tenrec_status st;

    if (!config)
        return tenrec_fail(err, TENREC_EINVAL, "construct_rpc_backend_options: no config");
    o = memory_new(1, sizeof *o);
    if (!o)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the options");
    st = stack_open(config, &o->stack, err);
    if (st != TENREC_OK) {
        free(o);
        return st;
    }
    *ret = o;
    return TENREC_OK;
}

void tenrec_rpc_backend_options_drop(struct tenrec_rpc_backend_options *options)
{
    if (!options)
        return;
    stack_close(options->stack);
    free(options);
}

static tenrec_status check_init(const struct tenrec_rpc_backend_options *options,
                                const struct tenrec_backend_user *user,
                                const struct tenrec_member *me, tenrec_error *err)
{
    if (!options || !user || !me || !me->name)
        return tenrec_fail(err, TENREC_EINVAL, "init_backend: %s is NULL",
                           !options ? "options"
                           : !user  ? "user"
                           : !me    ? "me"
                                    : "the name");
    if (!TENREC_HAS(user, deliver))
        return tenrec_fail(err, TENREC_EINVAL, "init_backend: the user has no deliver");
    if (me->id < 0)
        return tenrec_fail(err, TENREC_EINVAL, "init_backend: the id is %d, expected 0 or more",
                           me->id);
    return TENREC_OK;
}

tenrec_status tenrec_init_backend(const struct tenrec_rpc_backend_options *options,
                                  const struct tenrec_backend_user *user,
                                  const struct tenrec_member *me, uint32_t world,
                                  struct tenrec_backend_agent **ret, tenrec_error *err)
{
    tenrec_status st = check_init(options, user, me, err);
    const struct chain_layer *layer;
    struct tenrec_backend_agent *a;
    size_t n;

    if (st != TENREC_OK)
        return st;
    const struct chain_identity id = {
        .me = me->id, .world = world, .incarnation = me->incarnation, .name = me->name
    };
    const struct chain_user above = { .deliver = user->deliver,
                                      .peer_lost =
                                          TENREC_HAS(user, peer_lost) ? user->peer_lost : NULL,
                                      .arg = user->arg };
    a = memory_new(1, sizeof *a);
    if (!a)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the agent");
    st = loop_open(&a->loop, err);
    if (st != TENREC_OK)
        goto err_free;
    layer = stack_layers(options->stack, &n);
    st = chain_open(layer, n, &id, a->loop, &above, &a->chain, err);
    if (st != TENREC_OK)
        goto err_loop;
    *ret = a;
    return TENREC_OK;

err_loop:
    loop_close(a->loop);
err_free:
    free(a);
    return st;
}

const char *tenrec_backend_address(struct tenrec_backend_agent *agent)
{
    return chain_address(agent->chain);
}

tenrec_status tenrec_backend_start(struct tenrec_backend_agent *agent,
                                   const struct tenrec_member *member, uint32_t n,
                                   tenrec_error *err)
{
    return chain_start(agent->chain, member, n, err);
}

struct tenrec_msg *tenrec_backend_message(uint64_t payload_len, uint32_t n_tensors)
{
    return message_new(payload_len, n_tensors);
}

void tenrec_backend_send(struct tenrec_backend_agent *agent, tenrec_peer to, struct tenrec_msg *msg,
                         struct tenrec_done done)
{
    chain_send(agent->chain, to, msg, done);
}

void tenrec_backend_debug_info(struct tenrec_backend_agent *agent, tenrec_sink_fn *sink, void *arg)
{
    chain_debug_info(agent->chain, sink, arg);
}

void tenrec_backend_drop(struct tenrec_backend_agent *agent)
{
    if (!agent)
        return;
    chain_close(agent->chain);
    loop_close(agent->loop);
    free(agent);
}
