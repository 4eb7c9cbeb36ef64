/* SPDX-License-Identifier: Apache-2.0 */
/* debug_info.c - counters and states of a worker, for users and tests. */
#include "observe/profiler/profiler.h"

#include "core/base/memory.h"
#include "core/config/config.h"
#include "core/plugin/plugin.h"
#include "core/tensor/sharing.h"
#include "core/tensor/storage_pool.h"
#include "rpc/call/calls.h"
#include "rpc/call/service.h"
#include "rpc/future/pool.h"
#include "rpc/future/worker.h"

#include <stdlib.h>

/* ---- the parts ------------------------------------------------------------ */

/* The keys of "agent." are torch's. */
static void put_calls(struct tenrec_worker *w, const struct service_outlet *to)
{
    struct call_counts *c = &w->calls->counts;
    /* In this order: finished never exceeds calls. */
    uint64_t finished = atomic_load(&c->finished), served = atomic_load(&c->served),
             made = pending_added(&w->calls->pending, finished);

    service_put(to, "agent.client_active_calls", made - finished);
    service_put(to, "agent.server_active_calls", atomic_load(&c->taken) - served);
    service_put(to, "agent.server_active_async_calls",
                active_calls_count_later(&w->calls->active_calls));
    service_put(to, "calls.made", made);
    service_put(to, "calls.one_way", atomic_load(&c->one_way));
    service_put(to, "calls.timeouts", atomic_load(&c->timeouts));
    service_put(to, "calls.late_replies", atomic_load(&c->late_replies));
    service_put(to, "calls.stray_replies", atomic_load(&c->stray_replies));
    service_put(to, "calls.refused", atomic_load(&c->refused));
    service_put(to, "calls.served", served);
}

static void put_pool(struct tenrec_worker *w, const struct service_outlet *to)
{
    const struct pool_counts pool = pool_count(w->calls->pool);
    uint64_t size = (uint64_t)w->settings->num_worker_threads;
    uint64_t busy = pool.threads - pool.idle - pool.blocked;

    service_put(to, "agent.thread_pool_size", size);
    service_put(to, "agent.num_idle_threads", busy < size ? size - busy : 0);
    service_put(to, "pool.threads", pool.threads);
    service_put(to, "pool.idle_threads", pool.idle);
    service_put(to, "pool.blocked_threads", pool.blocked);
    service_put(to, "pool.queued", pool.queued);
}

/* Counts of the whole process: its workers share the memory of large tensors. */
static void put_memory(const struct service_outlet *to)
{
    const struct storage_counts c = storage_pool_count(storage_pool_of_process());
    const struct shared_counts own = shared_memory_count();
    const struct mapping_counts others = mapping_count();

    service_put(to, "memory.pool_limit_bytes", c.limit);
    service_put(to, "memory.pool_kept_bytes", c.kept_bytes);
    service_put(to, "memory.pool_kept_blocks", c.kept_blocks);
    service_put(to, "memory.pool_used_bytes", c.used_bytes);
    service_put(to, "memory.pool_used_blocks", c.used_blocks);
    service_put(to, "memory.pool_fresh", c.fresh);
    service_put(to, "memory.pool_reused", c.reused);
    service_put(to, "memory.shared_bytes", own.bytes);
    service_put(to, "memory.shared_blocks", own.blocks);
    service_put(to, "memory.shared_lent", sharing_lent());
    service_put(to, "memory.mapped_bytes", others.bytes);
    service_put(to, "memory.mapped_tensors", others.tensors);
}

/* For sources that give all values as text. */
static void put_either(void *arg, const char *key, const char *value)
{
    const struct service_outlet *to = arg;
    char *end = NULL;
    int64_t n = *value >= '0' && *value <= '9' ? strtoll(value, &end, 10) : 0;

    if (end && !*end)
        service_put(to, key, n);
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

static void debug_info_collect(struct tenrec_worker *w, const struct service_outlet *to)
{
    put_calls(w, to);
    put_memory(to);
    plugin_identity_list(to->text, to->arg);
    if (worker_enter(w, NULL) != TENREC_OK)
        return;
    put_pool(w, to);
    services_debug_info(w, to);
    chain_debug_info(w->chain, put_agents, (void *)(uintptr_t)to);
    worker_leave(w);
}

/* ---- as texts ------------------------------------------------------------- */

void debug_info_list(struct tenrec_worker *w, tenrec_sink_fn *sink, void *arg)
{
    debug_info_collect(w, &(struct service_outlet){ NULL, sink, arg });
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
    debug_info_collect(w, &(struct service_outlet){ map_number, map_text, m });
    if (!m->failed)
        return TENREC_OK;
    map_finish(m);
    return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu values of debug info", m->n);
}

tenrec_status debug_info_value(struct tenrec_worker *w, value_fn *fn, void *arg, tenrec_error *err)
{
    struct tenrec_value v;
    struct map m;
    tenrec_status st = map_fill(&m, w, err);

    if (st != TENREC_OK)
        return st;
    v = tenrec_value_map(m.entry, m.n);
    st = fn(arg, &v, err);
    map_finish(&m);
    return st;
}

tenrec_status debug_info_answer(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    (void)arg;
    return debug_info_value(tenrec_call_worker(call), function_return, call, err);
}
