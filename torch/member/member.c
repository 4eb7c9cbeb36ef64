/* SPDX-License-Identifier: Apache-2.0 */
/* member.c - a member of torch's group is made and freed, and its chain. */
#include "torch/member/member.h"

#include "core/base/clock.h"
#include "core/base/forks.h"
#include "core/base/memory.h"
#include "core/chain/chain.h"
#include "core/config/config.h"
#include "group/meeting/meeting.h"
#include "group/membership/membership.h"
#include "rpc/future/pool.h"
#include "security/proof/security.h"
#include "torch/member/references.h"

#include <stdlib.h>
#include <string.h>
#include <tenrec/proof.h>

/* ---- making and freeing --------------------------------------------------------------------- */

static tenrec_status check_settings(const struct tenrec_chain_options *options, tenrec_error *err)
{
    const struct config_settings *c = options->settings;
    struct tenrec_chain_settings s = { .size = sizeof s };

    tenrec_chain_options_settings(options, &s);
    if (strcmp(c->group_protocol, "torch") != 0)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "worker.group_protocol is %s, expected torch: else a worker would join "
                           "torch's group by accident",
                           c->group_protocol);
    if (strcmp(c->group, "default") != 0)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "worker.group is '%s': torch's groups have no names", c->group);
    if (((const struct security *)chain_options_added(options, &security_addition))->rules)
        return tenrec_fail(
            err, TENREC_ECONFIG,
            "security.allow: torch's workers prove nothing, so that no rule can tell "
            "them apart");
    if (s.security_mode != TENREC_SECURITY_NONE)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "security.mode is not none: torch's own workers can prove nothing. "
                           "security.plain_peers would let them in here, but they refuse a proof, "
                           "so that no call to them is possible (docs/security.md)");
    return TENREC_OK;
}

tenrec_status tenrec_torch_member_new(const struct tenrec_config *config,
                                      struct tenrec_torch_member **ret, tenrec_error *err)
{
    struct tenrec_torch_member *m = memory_new(1, sizeof *m);
    struct tenrec_config *own = NULL;
    tenrec_status st = TENREC_OK;

    *ret = NULL;
    if (!m)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a member of torch's group");
    if (!config)
        st = tenrec_config_load(NULL, &own, err);
    if (st == TENREC_OK)
        st = tenrec_chain_options_new(config ? config : own, &m->options, err);
    tenrec_config_drop(own);
    if (st == TENREC_OK)
        st = check_settings(m->options, err);
    if (st != TENREC_OK) {
        tenrec_chain_options_drop(m->options);
        free(m);
        return st;
    }
    forks_watch();
    m->settings = m->options->settings;
    pthread_mutex_init(&m->lock, NULL);
    clock_cond_init(&m->changed);
    *ret = m;
    return TENREC_OK;
}

void member_set_state(struct tenrec_torch_member *m, enum torch_state state)
{
    pthread_mutex_lock(&m->lock);
    m->state = state;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

void member_stop(struct tenrec_torch_member *m)
{
    tenrec_error why;

    member_set_state(m, TORCH_LEFT);
    static_group_unwatch(m);
    tenrec_fail(&why, TENREC_ECANCELED, "this worker has left the group");
    if (m->pool)
        torch_requests_stop(m);
    references_close(m);
    if (m->chain) {
        tenrec_chain_end_calls(m->chain, -1, &why);
        tenrec_chain_stop(m->chain);
    }
    pool_close(m->pool);
    m->pool = NULL;
    tenrec_store_close(m->keys);
    m->keys = NULL;
    rendezvous_close(m->rendezvous, clock_now_ns());
    m->rendezvous = NULL;
}

void tenrec_torch_member_drop(struct tenrec_torch_member *m)
{
    if (!m)
        return;
    member_stop(m);
    tenrec_chain_drop(m->chain);
    rref_context_drop(m->refs);
    torch_peers_finish(m);
    torch_functions_finish(m);
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
    tenrec_chain_options_drop(m->options);
    free(m);
}

/* ---- the chain --------------------------------------------------------------------------------
 */

static void member_deliver(void *arg, tenrec_peer from, struct tenrec_msg *msg)
{
    if (!(msg->type & TENREC_MSG_RESPONSE_BIT)) {
        torch_requests_serve(arg, from, msg);
        return;
    }
    if (msg->type == TENREC_MSG_REMOTE_RET) /* its call has ended */
        references_late(arg, from, msg);
    msg->release(msg);
}

static void member_lost(void *arg, tenrec_peer peer, const tenrec_error *why)
{
    references_lost(arg, peer, why);
}

static void member_wake(void *arg)
{
    struct tenrec_torch_member *m = arg;
    const uint64_t next_ns = references_expire(m);

    if (next_ns != CLOCK_NEVER)
        tenrec_chain_wake_at(m->chain, next_ns);
}

static bool member_accepts(void *arg)
{
    const struct tenrec_torch_member *m = arg;

    return !pool_full(m->pool);
}

static void member_drained(void *arg)
{
    struct tenrec_torch_member *m = arg;

    tenrec_chain_resume(m->chain);
}

tenrec_status member_make_chain(struct tenrec_torch_member *m, tenrec_error *err)
{
    const struct config_settings *s = m->settings;
    const struct tenrec_chain_user user = { .size = sizeof user,
                                            .deliver = member_deliver,
                                            .peer_lost = member_lost,
                                            .caller_lost = member_lost,
                                            .accepts = member_accepts,
                                            .wake = member_wake,
                                            .arg = m };
    const struct tenrec_member me = {
        .size = sizeof me, .id = m->id, .name = m->name, .address = m->rendezvous->own_address
    };
    tenrec_status st = references_open(m, err);

    if (st == TENREC_OK)
        st = pool_open((unsigned)s->num_worker_threads, (size_t)s->max_queued_calls, member_drained,
                       m, &m->pool, err);
    if (st == TENREC_OK)
        pool_limit_bytes(m->pool, s->max_served_bytes);

    /* Not 0: of a group that grows, a backend expects a view before any other request. torch's
     * workers call before they are known. */
    return st == TENREC_OK ? tenrec_chain_new(m->options, &user, &me, RANKS_MAX, &m->chain, err)
                           : st;
}

tenrec_status member_start_chain(struct tenrec_torch_member *m, tenrec_error *err)
{
    const struct tenrec_member me = {
        .size = sizeof me, .id = m->id, .name = m->name, .address = tenrec_chain_address(m->chain)
    };
    tenrec_status st;

    exposure_warn(chain_options_added(m->options, &security_addition), m->name, me.address);
    st = tenrec_chain_start(m->chain, &me, 1, err);
    return st == TENREC_OK ? torch_peers_join(m, m->name, m->id, me.address, err) : st;
}
