/* SPDX-License-Identifier: Apache-2.0 */
/* debug_info.c - counters and states of a worker, for users and tests. */
#include <tenrec/observe.h>

#include "core/base/arena.h"
#include "core/base/memory.h"
#include "core/config/config.h"
#include "core/plugin/plugin_identity.h"
#include "core/tensor/mapping.h"
#include "core/tensor/shared_memory.h"
#include "core/tensor/sharing.h"
#include "core/tensor/storage_pool.h"
#include "observe/profiler/builtin.h"
#include "rpc/call/active_calls.h"
#include "rpc/call/pending.h"
#include "rpc/future/enter.h"
#include "rpc/future/pool.h"
#include "rpc/future/worker.h"
#include "rpc/member/membership.h"
#include "rpc/rref/rref_context.h"
#include "rpc/value/trace_span.h"

#include <inttypes.h>
#include <stdlib.h>

/* Receives the pairs. A map stores numbers separately; without `number` they become texts. */
struct outlet {
    void (*number)(void *arg, const char *key, int64_t n);
    tenrec_sink_fn *text;
    void *arg;
};

static void debug_info_put(const struct outlet *to, const char *key, int64_t n)
{
    char text[24];

    if (to->number) {
        to->number(to->arg, key, n);
        return;
    }
    snprintf(text, sizeof text, "%" PRId64, n);
    to->text(to->arg, key, text);
}

/* ---- the parts ------------------------------------------------------------ */

/* The keys of "agent." are torch's. */
static void put_calls(struct tenrec_worker *w, const struct outlet *to)
{
    struct worker_counts *c = &w->counts;
    /* In this order: finished never exceeds calls. */
    uint64_t finished = atomic_load(&c->finished), served = atomic_load(&c->served),
             made = pending_added(w->pending, finished);

    debug_info_put(to, "agent.client_active_calls", made - finished);
    debug_info_put(to, "agent.server_active_calls", atomic_load(&c->taken) - served);
    debug_info_put(to, "agent.server_active_async_calls",
                   active_calls_count_later(w->active_calls));
    debug_info_put(to, "calls.made", made);
    debug_info_put(to, "calls.one_way", atomic_load(&c->one_way));
    debug_info_put(to, "calls.timeouts", atomic_load(&c->timeouts));
    debug_info_put(to, "calls.late_replies", atomic_load(&c->late_replies));
    debug_info_put(to, "calls.stray_replies", atomic_load(&c->stray_replies));
    debug_info_put(to, "calls.refused", atomic_load(&c->refused));
    debug_info_put(to, "calls.served", served);
}

static void put_pool(struct tenrec_worker *w, const struct outlet *to)
{
    const struct pool_counts pool = pool_count(w->pool);
    uint64_t size = (uint64_t)w->settings->num_worker_threads;
    uint64_t busy = pool.threads - pool.idle - pool.blocked;

    debug_info_put(to, "agent.thread_pool_size", size);
    debug_info_put(to, "agent.num_idle_threads", busy < size ? size - busy : 0);
    debug_info_put(to, "pool.threads", pool.threads);
    debug_info_put(to, "pool.idle_threads", pool.idle);
    debug_info_put(to, "pool.blocked_threads", pool.blocked);
    debug_info_put(to, "pool.queued", pool.queued);
}

/* Counts of the whole process: its workers share the memory of large tensors. */
static void put_memory(const struct outlet *to)
{
    const struct storage_counts c = storage_pool_count(storage_pool_of_process());
    const struct shared_counts own = shared_memory_count();
    const struct mapping_counts others = mapping_count();

    debug_info_put(to, "memory.pool_limit_bytes", c.limit);
    debug_info_put(to, "memory.pool_kept_bytes", c.kept_bytes);
    debug_info_put(to, "memory.pool_kept_blocks", c.kept_blocks);
    debug_info_put(to, "memory.pool_used_bytes", c.used_bytes);
    debug_info_put(to, "memory.pool_used_blocks", c.used_blocks);
    debug_info_put(to, "memory.pool_fresh", c.fresh);
    debug_info_put(to, "memory.pool_reused", c.reused);
    debug_info_put(to, "memory.shared_bytes", own.bytes);
    debug_info_put(to, "memory.shared_blocks", own.blocks);
    debug_info_put(to, "memory.shared_lent", sharing_lent());
    debug_info_put(to, "memory.mapped_bytes", others.bytes);
    debug_info_put(to, "memory.mapped_tensors", others.tensors);
}

static void put_traces(struct tenrec_worker *w, const struct outlet *to)
{
    if (!w->traces)
        return;
    debug_info_put(to, "traces.sent", (int64_t)atomic_load(&w->traces->sent));
    debug_info_put(to, "traces.dropped", (int64_t)atomic_load(&w->traces->dropped));
}

static void put_group(struct tenrec_worker *w, const struct outlet *to)
{
    const struct membership *m = w->membership;
    tenrec_error unused;
    size_t n;

    /* The present size of a dynamic group. */
    if (tenrec_worker_get_infos(w, NULL, 0, &n, &unused) != TENREC_OK)
        n = membership_world(m);
    to->text(to->arg, "worker.name", w->self.name);
    debug_info_put(to, "worker.id", w->self.id);
    to->text(to->arg, "worker.backend", chain_name(w->chain, 0));
    to->text(to->arg, "group.name", membership_group(m));
    debug_info_put(to, "group.size", n);
    debug_info_put(to, "group.incarnation", membership_incarnation(m));
    to->text(to->arg, "store.name", membership_store_name(m));
    debug_info_put(to, "store.served_here", membership_serves(m));
}

static void put_rrefs(struct tenrec_worker *w, const struct outlet *to)
{
    const struct rref_counts c = rref_context_count(w->rrefs);

    debug_info_put(to, "rref.num_owner_rrefs", c.num_owner_rrefs);
    debug_info_put(to, "rref.num_forks", c.num_forks);
    debug_info_put(to, "rref.num_pending_users", c.num_pending_users);
    debug_info_put(to, "rref.num_confirmed_users", c.num_confirmed_users);
    debug_info_put(to, "rref.num_pending_children", c.num_pending_children);
    debug_info_put(to, "rref.num_pending_owners", c.num_pending_owners);
    debug_info_put(to, "rref.num_pending_futures", c.num_pending_futures);
    debug_info_put(to, "rref.num_tombstones", c.num_tombstones);
}

/* For sources that give all values as text. */
static void put_either(void *arg, const char *key, const char *value)
{
    const struct outlet *to = arg;
    char *end = NULL;
    int64_t n = *value >= '0' && *value <= '9' ? strtoll(value, &end, 10) : 0;

    if (end && !*end)
        debug_info_put(to, key, n);
    else
        to->text(to->arg, key, value);
}

/* Prefixes the keys of a backend whose name in the configuration is one of our prefixes. */
static void put_agents(void *arg, const char *key, const char *value)
{
    static const char *const ours[] = { "agent.",
                                        "calls.",
                                        "group.",
                                        "memory.",
                                        "pool.",
                                        "rref.",
                                        "store.",
                                        "traces.",
                                        "worker.",
                                        PLUGIN_IDENTITY_LIBRARY,
                                        PLUGIN_IDENTITY_PLUGIN };
    char apart[320];

    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (strncmp(key, ours[i], strlen(ours[i])) == 0) {
            snprintf(apart, sizeof apart, "backend.%s", key);
            put_either(arg, apart, value);
            return;
        }
    put_either(arg, key, value);
}

static void debug_info_collect(struct tenrec_worker *w, const struct outlet *to)
{
    put_calls(w, to);
    put_memory(to);
    plugin_identity_list(to->text, to->arg);
    if (worker_enter(w, NULL) != TENREC_OK)
        return;
    put_pool(w, to);
    put_group(w, to);
    put_rrefs(w, to);
    put_traces(w, to);
    chain_debug_info(w->chain, put_agents, (void *)(uintptr_t)to);
    worker_leave(w);
}

/* ---- as texts ------------------------------------------------------------- */

void tenrec_worker_list_debug_info(struct tenrec_worker *w, tenrec_sink_fn *sink, void *arg)
{
    debug_info_collect(w, &(struct outlet){ NULL, sink, arg });
}

/* ---- as a map ------------------------------------------------------------- */

struct map {
    struct arena texts; /* and keys */
    struct tenrec_entry *entry;
    size_t n, room;
    bool failed; /* no memory */
};

static void map_add(struct map *m, const char *key, const struct tenrec_value *v)
{
    struct tenrec_entry *entry = memory_grow(m->entry, m->n, &m->room, sizeof *entry);
    const char *copy = arena_text(&m->texts, key);

    if (entry)
        m->entry = entry;
    if (entry && copy)
        m->entry[m->n++] = (struct tenrec_entry){ copy, *v };
    else
        m->failed = true;
}

static void map_number(void *arg, const char *key, int64_t n)
{
    struct tenrec_value v = tenrec_value_int(n);

    map_add(arg, key, &v);
}

static void map_text(void *arg, const char *key, const char *text)
{
    struct map *m = arg;
    const char *copy = arena_text(&m->texts, text);
    struct tenrec_value v = tenrec_value_text(copy ? copy : "");

    m->failed = m->failed || !copy;
    map_add(m, key, &v);
}

static void map_finish(struct map *m)
{
    arena_finish(&m->texts);
    free(m->entry);
}

static tenrec_status map_fill(struct map *m, struct tenrec_worker *w, tenrec_error *err)
{
    *m = (struct map){ .n = 0 };
    debug_info_collect(w, &(struct outlet){ map_number, map_text, m });
    if (!m->failed)
        return TENREC_OK;
    map_finish(m);
    return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu values of debug info", m->n);
}

tenrec_status debug_info_answer(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct tenrec_value v;
    struct map m;
    tenrec_status st = map_fill(&m, tenrec_call_worker(call), err);

    (void)arg;
    if (st != TENREC_OK)
        return st;
    v = tenrec_value_map(m.entry, m.n);
    st = tenrec_call_return(call, &v, err);
    map_finish(&m);
    return st;
}

tenrec_status tenrec_worker_get_debug_info(struct tenrec_worker *w, const char *to,
                                           const struct tenrec_call_options *options,
                                           struct tenrec_value **ret, tenrec_error *err)
{
    struct tenrec_value v;
    tenrec_status st;
    struct map m;

    if (!ret)
        return tenrec_fail(err, TENREC_EINVAL, "debug_info: ret is NULL");
    *ret = NULL;
    if (to)
        return tenrec_rpc_sync(w, to, DEBUG_INFO_FUNCTION, NULL, 0, options, ret, err);
    if ((st = map_fill(&m, w, err)) != TENREC_OK)
        return st;
    v = tenrec_value_map(m.entry, m.n);
    st = tenrec_value_copy(&v, ret, err);
    map_finish(&m);
    return st;
}
