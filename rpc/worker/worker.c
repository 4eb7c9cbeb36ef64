/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c - the life of a worker: start and shutdown of all parts. worker.state decides which
 * thread may start or stop; no lock is held. */
#include "rpc/call/calls.h"

#include "core/base/clock.h"
#include "core/base/fail.h"
#include "core/base/log.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/chain/chain.h"
#include "core/config/config.h"
#include "core/config/settings.h"
#include "core/tensor/sharing.h"
#include "core/tensor/storage_pool.h"
#include "core/tensor/tensor.h"
#include "group/meeting/membership.h"
#include "rpc/call/call.h"
#include "rpc/future/pool.h"
#include "rpc/future/thread_state.h"
#include "rpc/future/worker.h"
#include "rpc/gather/gather.h"
#include "rpc/rref/rref.h"
#include "rpc/worker/worker.h"
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

/* A worker, its calls and the states of its services, in one allocation. */
struct worker_block {
    struct tenrec_worker worker; /* first, as the block is freed through it */
    struct calls calls;
    struct tenrec_chain_options *options; /* owns */
    struct config_observe *observe;       /* owns */
    struct housekeeping *housekeeping;    /* lends the loop to memory that all workers share */
    max_align_t states[];
};

static struct worker_block *block_of(struct tenrec_worker *w)
{
    return (struct worker_block *)w;
}

const struct security *worker_security(const struct tenrec_worker *w)
{
    const struct worker_block *b = (const struct worker_block *)w;

    return chain_options_added(b->options, &security_addition);
}

/* A mistake in `observe:` turns all of it off, and stops no worker. */
static tenrec_status worker_observe(struct worker_block *b, const struct tenrec_config *config,
                                    tenrec_error *err)
{
    tenrec_error why;

    if (config_observe_make(config, &b->observe, &why) == TENREC_OK)
        return TENREC_OK;
    log_line(TENREC_LOG_WARN, "observe", "all of it stays off: %s", why.text);
    return config_observe_default(&b->observe, err);
}

static void worker_init(struct tenrec_worker *w)
{
    const struct config_settings *s = block_of(w)->options->settings;
    const struct security *security = worker_security(w);

    w->settings = s;
    w->self.name = "worker";
    w->forks = forks_seen;
    atomic_init(&w->state, WORKER_NEW);
    pthread_mutex_init(&w->lock, NULL);
    clock_cond_init(&w->changed);
    userloop_init(&w->userloop);
    w->calls = &block_of(w)->calls;
    calls_init(w->calls);
    w->calls->functions.rules = security->rules;
    atomic_init(&w->calls->timeout_ms, s->rpc_timeout_ms == TENREC_FOREVER
                                           ? TENREC_TIMEOUT_NONE
                                           : (int64_t)s->rpc_timeout_ms);
}

tenrec_status worker_new(const struct tenrec_config *config, struct tenrec_chain_options *options,
                         const struct service *const *services, struct tenrec_worker **ret,
                         tenrec_error *err)
{
    struct worker_block *block = memory_new(1, sizeof *block + services_size(services));
    struct tenrec_worker *w = &block->worker;
    tenrec_status st;

    if (!block) {
        tenrec_chain_options_drop(options);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a worker");
    }
    forks_watch();
    thread_state_watch_forks();
    block->options = options;
    worker_init(w);
    services_assign(w, services, block->states);
    st = worker_observe(block, config, err);
    if (st == TENREC_OK)
        st = services_init(w, &(struct service_config){ config, w->settings, block->observe }, err);
    if (st == TENREC_OK)
        st = set_serve(&w->calls->functions, err);
    if (st == TENREC_OK)
        *ret = w;
    else
        tenrec_worker_drop(w);
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
    if (active_calls_wait(&w->calls->active_calls, until, &err) != TENREC_OK) {
        log_line(TENREC_LOG_ERROR, w->self.name, "dropped while %s: its memory is never freed",
                 err.text);
        return;
    }
    pool_close(w->calls->pool);
    userloop_finish(&w->userloop);
    calls_finish(w->calls);
    services_finish(w);
    peers_finish(&w->peers);
    contacts_finish(&w->contacts);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    tenrec_chain_options_drop(block_of(w)->options);
    config_observe_drop(block_of(w)->observe);
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

    return !pool_full(w->calls->pool);
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
        st = loop_timer_new(w->loop, on_deadline, w, &w->calls->deadlines, err);
    if (st == TENREC_OK && !w->calls->pool)
        st = pool_open((unsigned)s->num_worker_threads, (size_t)s->max_queued_calls, worker_drained,
                       w, &w->calls->pool, err);
    if (st == TENREC_OK)
        pool_limit_bytes(w->calls->pool, s->max_served_bytes);
    if (st == TENREC_OK)
        st = housekeeping_join(w->loop, &block_of(w)->housekeeping, err);
    if (st == TENREC_OK)
        storage_pool_allow(storage_pool_of_process(), (size_t)s->receive_pool_bytes);
    return st;
}

static tenrec_status make_chain(struct tenrec_worker *w, tenrec_error *err)
{
    const struct tenrec_chain_options *o = block_of(w)->options;
    const struct chain_user user = { .deliver = worker_deliver,
                                     .place = recv_alloc_tensors,
                                     .accepts = worker_accepts,
                                     .peer_lost = worker_peer_lost,
                                     .caller_lost = worker_caller_lost,
                                     .needs = worker_needs,
                                     .msg_new = rpc_message_new,
                                     .sharing = &sharing_of_process,
                                     .exception_new = answer_exception_new,
                                     .arg = w };
    struct chain_identity id = group_identity(w);
    const struct chain_layer *layer;
    tenrec_status st;
    size_t n;

    id.guard = o->guard;
    layer = chain_config_layers(o->layers, &n);
    st = chain_open(layer, n, &id, w->loop, &user, &w->chain, err);
    w->calls->port = st == TENREC_OK ? chain_port(w->chain) : NULL;
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
    w->calls->port = NULL;
    services_release(w);
    loop_timer_drop(w->calls->deadlines);
    w->calls->deadlines = NULL;
    if (block_of(w)->housekeeping) {
        storage_pool_deny(storage_pool_of_process(), (size_t)w->settings->receive_pool_bytes);
        shared_memory_shrink();
    }
    housekeeping_leave(block_of(w)->housekeeping);
    block_of(w)->housekeeping = NULL;
    group_leave(w, until);
    loop_close(w->loop);
    w->loop = NULL;
}

static tenrec_status worker_start_services(struct tenrec_worker *w, tenrec_error *err)
{
    static _Atomic uint32_t starts;
    const struct membership *m = group_of(w)->membership;
    const struct service_session session = {
        .observe = block_of(w)->observe,
        .member = m->member,
        .n = membership_world(m),
        .incarnation = membership_incarnation(m),
    };

    w->start = atomic_fetch_add(&starts, 1) + 1;
    return services_start(w, &session, err);
}

/* Returns an error if a visitor's backend reaches only this process. */
static tenrec_status worker_check_reach(const struct tenrec_worker *w, const struct group_entry *e,
                                        tenrec_error *err)
{
    if (!e->visits || !(chain_innermost_flags(w->chain) & TENREC_PLUGIN_LOOPBACK_ONLY))
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EUNSUPPORTED,
                       "backend '%s' reaches only this process: no group can be called with it "
                       "from outside",
                       chain_name(w->chain, chain_depth(w->chain) - 1));
}

static tenrec_status worker_start(struct tenrec_worker *w, const struct group_entry *e,
                                  tenrec_error *err)
{
    struct membership *m;
    tenrec_status st = make_parts(w, err);

    if (st == TENREC_OK)
        st = group_find(w, e, err);
    if (st == TENREC_OK)
        st = make_chain(w, err);
    if (st == TENREC_OK)
        st = worker_check_reach(w, e, err);
    if (st == TENREC_OK)
        st = group_enter(w, e, err);
    if (st == TENREC_OK)
        st = worker_start_services(w, err);
    if (st != TENREC_OK)
        return st;
    /* A request may arrive before chain_start returns, and its function may
     * make calls. */
    atomic_store(&w->state, WORKER_RUNNING);
    m = group_of(w)->membership;
    st = chain_start(w->chain, m->member, membership_world(m), err);
    membership_started(m);
    if (st == TENREC_OK)
        pool_lead_by(w->calls->pool, worker_lead, w);
    return st == TENREC_OK ? services_run(w, e->until_ns, err) : st;
}

/* Refuses calls that have not begun, fails all outstanding calls, stops the agents, waits for the
 * threads that are inside. */
static void worker_stop(struct tenrec_worker *w, uint64_t until)
{
    tenrec_error why;

    serve_stop(w); /* while answers can still be sent */
    tenrec_fail(&why, TENREC_ECANCELED, "the worker was shut down");
    atomic_store(&w->state, WORKER_STOPPING);
    call_fail_peer(w, -1, &why);
    services_stop(w, &why);
    if (w->calls->pool)
        pool_lead_by(w->calls->pool, NULL, NULL);
    if (w->chain)
        chain_shutdown(w->chain);
    call_fail_peer(w, -1, &why); /* calls begun since */
    worker_wait_until_left(w);
    services_close(w, &why);
    worker_unmake(w, until);
    atomic_store(&w->state, WORKER_DOWN);
}

static tenrec_status worker_begin(struct tenrec_worker *w, const struct group_entry *e,
                                  tenrec_error *err)
{
    uint32_t fresh = WORKER_NEW, down = WORKER_DOWN;
    tenrec_error why; /* also of failed tries before a success */
    tenrec_status st;

    if (!atomic_compare_exchange_strong(&w->state, &fresh, WORKER_STARTING) &&
        !atomic_compare_exchange_strong(&w->state, &down, WORKER_STARTING))
        return tenrec_fail(err, TENREC_EBUSY, "the worker is running already");
    /* A call from before the restart would answer along a route that now belongs to another. */
    if (active_calls_wait(&w->calls->active_calls, clock_now_ns(), &why) != TENREC_OK) {
        atomic_store(&w->state, WORKER_DOWN);
        return tenrec_fail(err, TENREC_EBUSY, "from before the shutdown: %s", why.text);
    }
    peers_finish(&w->peers);
    serve_resume(w);
    w->forks = forks_seen;
    atomic_store(&w->leaving, 0);
    atomic_store(&w->calls->counts.one_way, 0); /* their receivers may have left */
    atomic_store(&w->calls->counts.one_way_ended, 0);
    atomic_store(&w->calls->counts.jobs, 0);
    atomic_store(&w->calls->counts.jobs_ended, 0);
    st = worker_start(w, e, &why);
    if (st != TENREC_OK) {
        fail_with(err, &why);
        worker_stop(w, leave_until(e->until_ns));
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
    return worker_begin(w,
                        &(struct group_entry){ .options = block_of(w)->options,
                                               .until_ns = ms == TENREC_FOREVER
                                                               ? CLOCK_NEVER
                                                               : clock_deadline_ms(ms) },
                        err);
}

tenrec_status tenrec_worker_attach(struct tenrec_worker *w, const char *store, int64_t ms,
                                   tenrec_error *err)
{
    struct group_entry e = { .options = block_of(w)->options, .visits = true, .store = store };
    tenrec_status st = call_deadline(w, &ms, &e.until_ns, err);

    return st == TENREC_OK ? worker_begin(w, &e, err) : st;
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
        st = worker_part(w, until, err);
        if (st != TENREC_OK)
            tenrec_error_prefix(err, "graceful shutdown");
    }
    /* A function may still run and hold its arguments after its caller has timed out. */
    if (mode == TENREC_GRACEFUL && st == TENREC_OK)
        active_calls_wait(&w->calls->active_calls, until, NULL);
    leaked = rrefs_check(w, mode == TENREC_GRACEFUL, &leak);
    worker_leave(w);
    worker_stop(w, mode == TENREC_GRACEFUL ? until : leave_until(until));
    if (active_calls_wait(&w->calls->active_calls, until, &late) != TENREC_OK && st == TENREC_OK)
        st = fail_with(err, &late);
    services_ended(w);
    return leaked != TENREC_OK && st == TENREC_OK ? fail_with(err, &leak) : st;
}
