/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c - the life of a worker: start and shutdown of all parts. worker.state decides which
 * thread may start or stop; no lock is held. */
#include "rpc/future/worker.h"

#include "core/base/clock.h"
#include "core/base/fail.h"
#include "core/base/housekeeping.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/config/config.h"
#include "core/tensor/message.h"
#include "core/tensor/shared_memory.h"
#include "core/tensor/sharing.h"
#include "core/tensor/storage_pool.h"
#include "group/meeting/exposure.h"
#include "group/meeting/rendezvous.h"
#include "group/store/store.h"
#include "rpc/call/active_calls.h"
#include "rpc/call/answer.h"
#include "rpc/call/call.h"
#include "rpc/call/dispatch.h"
#include "rpc/call/recv_alloc.h"
#include "rpc/call/service.h"
#include "rpc/future/enter.h"
#include "rpc/future/pool.h"
#include "rpc/future/thread_state.h"
#include "rpc/member/devices.h"
#include "rpc/member/disconnect.h"
#include "rpc/member/gather.h"
#include "rpc/member/membership.h"
#include "rpc/member/rref_release.h"
#include "rpc/member/termination.h"
#include "rpc/worker/parts.h"
#include "rpc/worker/set.h"
#include "rpc/worker/worker_config.h"
#include "security/proof/security.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    DROP_MS = 10000, /* tenrec_worker_drop waits this long for running functions */
    LEAVE_MS = 1000, /* a worker that leaves alone serves the store at most this long */
};

/* ---- new and drop --------------------------------------------------------- */

/* A worker, its parts and the states of its services, in one allocation. */
struct worker_block {
    struct tenrec_worker worker; /* first, as the block is freed through it */
    struct worker_parts parts;
    max_align_t states[];
};

static tenrec_status worker_make(const struct tenrec_config *config,
                                 const struct service *const *services, struct tenrec_worker **ret,
                                 tenrec_error *err)
{
    struct worker_block *block = memory_new(1, sizeof *block + services_size(services));
    struct tenrec_worker *w;
    tenrec_status st;

    if (!block)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a worker");
    w = &block->worker;
    forks_watch();
    thread_state_watch_forks();
    w->forks = forks_seen;
    st = worker_config_make(config, &w->config, err);
    if (st != TENREC_OK) {
        free(w);
        return st;
    }
    parts_connect(w, &block->parts);
    services_place(w, services, block->states);
    w->settings = w->config->settings;
    atomic_init(&w->state, WORKER_NEW);
    pthread_mutex_init(&w->lock, NULL);
    clock_cond_init(&w->changed);
    atomic_init(&w->timeout_ms, w->settings->rpc_timeout_ms == TENREC_FOREVER
                                    ? TENREC_TIMEOUT_NONE
                                    : (int64_t)w->settings->rpc_timeout_ms);
    w->self.name = "worker";
    object_types_init(&w->object_types);
    w->functions->rules = w->config->security->rules;
    st = services_init(
        w, &(struct service_config){ config, w->config->settings, w->config->observe }, err);
    if (st == TENREC_OK)
        st = set_serve(w->functions, err);
    if (st == TENREC_OK)
        *ret = w;
    else
        tenrec_worker_drop(w);
    return st;
}

tenrec_status worker_new(const struct tenrec_config *config, const struct service *const *services,
                         struct tenrec_worker **ret, tenrec_error *err)
{
    struct tenrec_config *own = NULL;
    tenrec_status st = TENREC_OK;

    *ret = NULL;
    if (!config)
        st = tenrec_config_load(NULL, &own, err);
    if (st == TENREC_OK)
        st = worker_make(config ? config : own, services, ret, err);
    tenrec_config_drop(own);
    return st;
}

void tenrec_worker_drop(struct tenrec_worker *w)
{
    uint64_t until = clock_deadline_ms(DROP_MS);
    tenrec_error err;

    if (!w || (tenrec_worker_running(w) && !worker_is_own(w)))
        return;
    if (tenrec_worker_running(w) &&
        tenrec_shutdown(w, TENREC_IMMEDIATE, DROP_MS, &err) == TENREC_EWOULDBLOCK) {
        log_line(TENREC_LOG_ERROR, w->self.name, "not dropped: %s", err.text);
        return;
    }
    if (active_calls_wait(w->active_calls, until, &err) != TENREC_OK) {
        log_line(TENREC_LOG_ERROR, w->self.name, "dropped while %s: its memory is never freed",
                 err.text);
        return;
    }
    pool_close(w->pool);
    parts_finish(w);
    services_finish(w);
    object_types_finish(&w->object_types);
    peers_finish(&w->peers);
    contacts_finish(&w->contacts);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    worker_config_drop(w->config);
    free(w);
    log_flush();
}

/* ---- starting ------------------------------------------------------------- */

static void on_deadline(void *arg)
{
    call_expire(arg);
    gather_expire(arg);
}

static bool worker_accepts(void *arg)
{
    struct tenrec_worker *w = arg;

    return !pool_full(w->pool);
}

/* The pool's queue is half empty again. */
static void worker_drained(void *arg)
{
    struct tenrec_worker *w = arg;

    if (worker_enter(w, NULL) != TENREC_OK)
        return;
    chain_resume(w->chain);
    worker_leave(w);
}

static tenrec_status worker_lead(void *arg, const struct tenrec_wait *wait)
{
    struct tenrec_worker *w = arg;

    return chain_lead(w->chain, wait);
}

static tenrec_status make_parts(struct tenrec_worker *w, tenrec_error *err)
{
    const struct config_settings *s = w->settings;
    tenrec_status st = loop_open(&w->loop, err);

    if (st == TENREC_OK)
        st = loop_timer_new(w->loop, on_deadline, w, &w->deadlines, err);
    if (st == TENREC_OK && !w->pool)
        st = pool_open((unsigned)s->num_worker_threads, (size_t)s->max_queued_calls, worker_drained,
                       w, &w->pool, err);
    if (st == TENREC_OK)
        pool_limit_bytes(w->pool, s->max_served_bytes);
    if (st == TENREC_OK)
        st = housekeeping_join(w->loop, &w->housekeeping, err);
    if (st == TENREC_OK)
        storage_pool_allow(storage_pool_of_process(), (size_t)s->receive_pool_bytes);
    return st;
}

static tenrec_status make_chain(struct tenrec_worker *w, tenrec_error *err)
{
    const struct chain_identity id = { .me = w->self.id,
                                       .world = membership_roster(w->membership)
                                                    ? 0
                                                    : membership_world(w->membership),
                                       .incarnation = membership_incarnation(w->membership),
                                       .token = membership_token(w->membership),
                                       .name = w->membership->name,
                                       .host_address = w->membership->rendezvous->vantage };
    const struct chain_user user = { .deliver = worker_deliver,
                                     .place = recv_alloc_tensors,
                                     .accepts = worker_accepts,
                                     .peer_lost = worker_peer_lost,
                                     .caller_lost = worker_caller_lost,
                                     .msg_new = rpc_message_new,
                                     .sharing = &sharing_of_process,
                                     .exception_new = answer_exception_new,
                                     .arg = w };
    tenrec_status st;

    st = worker_config_chain(w->config, &id, w->loop, &user, &w->chain, err);
    w->port = st == TENREC_OK ? chain_port(w->chain) : NULL;
    return st;
}

/* LEAVE_MS from now, but not later than `until`. */
static uint64_t leave_until(uint64_t until)
{
    const uint64_t most = clock_deadline_ms(LEAVE_MS);

    return until < most ? until : most;
}

/* Undoes worker_start, in reverse order. */
static void worker_unmake(struct tenrec_worker *w, uint64_t until)
{
    chain_close(w->chain);
    w->chain = NULL;
    w->port = NULL;
    services_release(w);
    loop_timer_drop(w->deadlines);
    w->deadlines = NULL;
    if (w->housekeeping) {
        storage_pool_deny(storage_pool_of_process(), (size_t)w->settings->receive_pool_bytes);
        shared_memory_shrink();
    }
    housekeeping_leave(w->housekeeping);
    w->housekeeping = NULL;
    membership_drop(w->membership, until); /* uses the loop when it serves the store */
    w->membership = NULL;
    loop_close(w->loop);
    w->loop = NULL;
}

/* A member finds its group and joins it; a visitor only calls it. */
struct manner {
    bool visits;
    const char *store; /* of a visit; NULL: that of the configuration */
    uint64_t until;    /* CLOCK_MONOTONIC */
};

static tenrec_status fill_peers(struct tenrec_worker *w, tenrec_error *err)
{
    const struct tenrec_member *member = w->membership->member;
    tenrec_status st = peers_init(&w->peers, membership_ids(w->membership), w->self.id, err);

    w->peers.lives = membership_roster(w->membership) != NULL;
    for (uint32_t i = 0; i < membership_world(w->membership) && st == TENREC_OK; i++)
        st = peers_add(&w->peers, member[i].id, member[i].incarnation, member[i].name, err);
    return st;
}

static tenrec_status worker_join(struct tenrec_worker *w, uint64_t until, tenrec_error *err)
{
    const struct tenrec_plugin *wire = chain_plugin(w->chain, chain_depth(w->chain) - 1);
    struct store_value extra;
    tenrec_status st = devices_tell(w->devices, w->chain, &extra, err);

    if (st != TENREC_OK)
        return st;
    exposure_warn(w->config->security, w->self.name, chain_address(w->chain));
    st = membership_join(w->membership, wire->name, chain_address(w->chain), &extra, until, err);
    free(extra.data);
    return st;
}

static tenrec_status worker_start_services(struct tenrec_worker *w, tenrec_error *err)
{
    static _Atomic uint32_t starts;
    const struct service_session session = {
        .observe = w->config->observe,
        .member = w->membership->member,
        .n = membership_world(w->membership),
        .incarnation = membership_incarnation(w->membership),
    };

    w->start = atomic_fetch_add(&starts, 1) + 1;
    return services_start(w, &session, err);
}

static tenrec_status worker_start(struct tenrec_worker *w, const struct manner *how,
                                  tenrec_error *err)
{
    const struct config_settings *s = w->settings;
    struct stores *stores = w->config->stores;
    struct security *security = w->config->security;
    const uint64_t until = how->until;
    tenrec_status st = make_parts(w, err);

    if (st == TENREC_OK)
        st = how->visits
                 ? membership_visit(s, stores, security, how->store, until, &w->membership, err)
                 : membership_find(s, stores, security, w->loop, until, &w->membership, err);
    if (st != TENREC_OK)
        return st;
    w->self.id = membership_rank(w->membership);
    w->self.name = w->membership->name;
    st = make_chain(w, err);
    if (st == TENREC_OK && how->visits &&
        (chain_innermost_flags(w->chain) & TENREC_PLUGIN_LOOPBACK_ONLY))
        st = tenrec_fail(err, TENREC_EUNSUPPORTED,
                         "backend '%s' reaches only this process: no group can be called with it "
                         "from outside",
                         chain_name(w->chain, chain_depth(w->chain) - 1));
    if (st == TENREC_OK && !how->visits)
        st = worker_join(w, until, err);
    if (st == TENREC_OK)
        st = disconnects_reset(w->disconnects, membership_ids(w->membership), err);
    if (st == TENREC_OK)
        st = contacts_reset(&w->contacts,
                            membership_roster(w->membership) ? 0 : membership_ids(w->membership),
                            err);
    if (st == TENREC_OK)
        st = fill_peers(w, err);
    if (st != TENREC_OK)
        return st;
    termination_watch_disconnects(w);
    if (!how->visits)
        w->self.name = peers_name(&w->peers, w->self.id);
    if (!how->visits)
        st = devices_agree(w, until, err);
    if (st == TENREC_OK)
        st = worker_start_services(w, err);
    if (st != TENREC_OK)
        return st;
    /* A request may arrive before chain_start returns, and its function may
     * make calls. */
    atomic_store(&w->state, WORKER_RUNNING);
    st = chain_start(w->chain, w->membership->member, membership_world(w->membership), err);
    if (st == TENREC_OK)
        pool_lead_by(w->pool, worker_lead, w);
    return st == TENREC_OK ? services_run(w, until, err) : st;
}

/* Refuses calls that have not begun, fails all outstanding calls, stops the agents, waits for the
 * threads that are inside. */
static void worker_stop(struct tenrec_worker *w, uint64_t until)
{
    tenrec_error why;

    dispatch_stop(w); /* while answers can still be sent */
    tenrec_fail(&why, TENREC_ECANCELED, "the worker was shut down");
    atomic_store(&w->state, WORKER_STOPPING);
    call_fail_peer(w, -1, &why);
    services_stop(w, &why);
    if (w->pool)
        pool_lead_by(w->pool, NULL, NULL);
    if (w->chain)
        chain_shutdown(w->chain);
    call_fail_peer(w, -1, &why); /* calls begun since */
    worker_wait_until_left(w);
    services_close(w, &why);
    worker_unmake(w, until);
    atomic_store(&w->state, WORKER_DOWN);
}

static tenrec_status worker_begin(struct tenrec_worker *w, const struct manner *how,
                                  tenrec_error *err)
{
    uint32_t fresh = WORKER_NEW, down = WORKER_DOWN;
    tenrec_error why; /* also of failed tries before a success */
    tenrec_status st;

    if (!atomic_compare_exchange_strong(&w->state, &fresh, WORKER_STARTING) &&
        !atomic_compare_exchange_strong(&w->state, &down, WORKER_STARTING))
        return tenrec_fail(err, TENREC_EBUSY, "the worker is running already");
    /* A call from before the restart would answer along a route that now belongs to another. */
    if (active_calls_wait(w->active_calls, clock_now_ns(), &why) != TENREC_OK) {
        atomic_store(&w->state, WORKER_DOWN);
        return tenrec_fail(err, TENREC_EBUSY, "from before the shutdown: %s", why.text);
    }
    peers_finish(&w->peers);
    dispatch_resume(w);
    w->forks = forks_seen;
    atomic_store(&w->leaving, 0);
    atomic_store(&w->counts.one_way, 0); /* their receivers may have left */
    atomic_store(&w->counts.one_way_ended, 0);
    atomic_store(&w->counts.jobs, 0);
    atomic_store(&w->counts.jobs_ended, 0);
    st = worker_start(w, how, &why);
    if (st != TENREC_OK) {
        fail_with(err, &why);
        worker_stop(w, leave_until(how->until));
        services_ended(w);
        w->self.name = "worker";
        atomic_store(&w->state, WORKER_NEW);
    }
    return st;
}

tenrec_status tenrec_init_rpc(struct tenrec_worker *w, tenrec_error *err)
{
    const uint64_t ms = w->settings->init_timeout_ms;

    if (strcmp(w->settings->group_protocol, "tenrec") != 0)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "worker.group_protocol is %s: a group of torch's own workers is joined "
                           "by tenrec_torch_member_join (tenrec/torch.h)",
                           w->settings->group_protocol);
    return worker_begin(
        w, &(struct manner){ .until = ms == TENREC_FOREVER ? CLOCK_NEVER : clock_deadline_ms(ms) },
        err);
}

tenrec_status tenrec_worker_attach(struct tenrec_worker *w, const char *store, int64_t ms,
                                   tenrec_error *err)
{
    struct manner how = { .visits = true, .store = store };
    tenrec_status st = call_deadline(w, &ms, &how.until, err);

    return st == TENREC_OK ? worker_begin(w, &how, err) : st;
}

/* Leaves together with the other members; a visitor leaves alone. */
static tenrec_status worker_leave_all(struct tenrec_worker *w, uint64_t until, tenrec_error *err)
{
    tenrec_status st = worker_quiesce(w, until, err);

    if (st == TENREC_OK && !worker_visits(w))
        st = rrefs_flush(w, until, err);
    if (st == TENREC_OK && !worker_visits(w))
        st = process_group_barrier(w->membership->pg, until, err);
    return st;
}

/* ---- shutdown ------------------------------------------------------------- */

tenrec_status tenrec_shutdown(struct tenrec_worker *w, enum tenrec_shutdown_mode mode, int64_t ms,
                              tenrec_error *err)
{
    tenrec_status st = TENREC_OK;
    tenrec_status leaked;
    tenrec_error late, leak;
    uint64_t until;

    if (thread_state.no_block > 0 || thread_state.pool)
        return tenrec_fail(err, TENREC_EWOULDBLOCK, "a function or callback may not shut down");
    if (tenrec_worker_running(w) && !worker_is_own(w))
        return worker_refuse_child(err);
    if (ms < 0 || (mode != TENREC_GRACEFUL && mode != TENREC_IMMEDIATE))
        return tenrec_fail(err, TENREC_EINVAL, "shutdown: mode %d, limit %lld ms", (int)mode,
                           (long long)ms);
    ms = shutdown_limit_ms(w, ms);
    until = ms == TENREC_TIMEOUT_NONE ? CLOCK_NEVER : clock_deadline_ms((uint64_t)ms);
    st = worker_enter(w, err);
    if (st != TENREC_OK)
        return st;
    if (atomic_exchange(&w->leaving, 1)) {
        worker_leave(w);
        return tenrec_fail(err, TENREC_EBUSY, "another thread shuts the worker down already");
    }
    if (mode == TENREC_GRACEFUL) {
        st = w->monitor ? worker_part(w, until, err) : worker_leave_all(w, until, err);
        if (st != TENREC_OK)
            tenrec_error_prefix(err, "graceful shutdown");
    }
    /* A function may still run and hold its arguments after its caller has timed out. */
    if (mode == TENREC_GRACEFUL && st == TENREC_OK)
        active_calls_wait(w->active_calls, until, NULL);
    leaked = rrefs_check(w, mode == TENREC_GRACEFUL, &leak);
    worker_leave(w);
    worker_stop(w, mode == TENREC_GRACEFUL ? until : leave_until(until));
    if (active_calls_wait(w->active_calls, until, &late) != TENREC_OK && st == TENREC_OK)
        st = fail_with(err, &late);
    services_ended(w);
    return leaked != TENREC_OK && st == TENREC_OK ? fail_with(err, &leak) : st;
}
