/* SPDX-License-Identifier: Apache-2.0 */
#include "party.h"

#include "group/meeting/membership.h"
#include "group/membership/membership.h"
#include "rpc/future/worker.h"
#include "rpc/monitor/monitor.h"

#include "../testing.h"
#include "rpc/worker/worker.h"

#include <stdatomic.h>

static atomic_uint parties;
static struct tenrec_store *store;

void party_begin(void)
{
    char url[64];
    tenrec_error err;

    tenrec_store_close(store);
    snprintf(url, sizeof url, "memory://party%u", atomic_fetch_add(&parties, 1) + 1);
    if (tenrec_store_open(url, CLUSTER_LONG_MS, &store, &err) != TENREC_OK)
        fail_msg("%s", err.text);
}

struct tenrec_store *party_store(void)
{
    return store;
}

static void set(struct tenrec_config *config, const char *key, const char *value)
{
    tenrec_error err;

    if (tenrec_config_set(config, key, value, &err) != TENREC_OK)
        fail_msg("%s: %s", key, err.text);
}

struct tenrec_worker *party_worker(int rank, const char *name, const char *const *extra,
                                   cluster_setup_fn *setup)
{
    struct tenrec_config *config = cluster_config();
    struct tenrec_worker *w = NULL;
    char text[128];
    tenrec_error err;

    if (rank >= 0)
        snprintf(text, sizeof text, "memory://party%u?rank=%d", atomic_load(&parties), rank);
    else
        snprintf(text, sizeof text, "memory://party%u", atomic_load(&parties));
    set(config, "init_method", text);
    snprintf(text, sizeof text, "party%u", atomic_load(&parties));
    set(config, "backends.inproc.options.group", text);
    /* 4 s: a busy machine keeps a thread from running for more than a second. */
    set(config, "worker.heartbeat", "100ms");
    set(config, "worker.heartbeat_misses", "40");
    snprintf(text, sizeof text, "%lums", 2000 * testing_slow());
    set(config, "worker.group_lease", text);
    if (name)
        set(config, "worker.name", name);
    for (; extra && *extra; extra++) {
        const char *eq = strchr(*extra, '=');
        snprintf(text, sizeof text, "%.*s", (int)(eq - *extra), *extra);
        set(config, text, eq + 1);
    }
    if (tenrec_worker_new(config, &w, &err) != TENREC_OK)
        fail_msg("%s", err.text);
    tenrec_config_drop(config);
    if (setup)
        setup(w, rank < 0 ? 0 : (size_t)rank);
    return w;
}

struct tenrec_worker *party_join(int rank, const char *name, cluster_setup_fn *setup)
{
    struct tenrec_worker *w = party_worker(rank, name, NULL, setup);
    tenrec_error err;

    if (tenrec_init_rpc(w, &err) != TENREC_OK)
        fail_msg("joining: %s: %s", tenrec_status_name(err.code), err.text);
    return w;
}

void party_leave(struct tenrec_worker *w)
{
    tenrec_error err;

    if (tenrec_shutdown(w, TENREC_GRACEFUL, CLUSTER_LONG_MS, &err) != TENREC_OK)
        fail_msg("leaving: %s: %s", tenrec_status_name(err.code), err.text);
    tenrec_worker_drop(w);
}

void party_die(struct tenrec_worker *w)
{
    monitor_stop(w);
    chain_shutdown(w->chain);
}

void party_clear_away(struct tenrec_worker *w)
{
    tenrec_error err;

    membership_list_of(group_of(w)->membership)->joined = false;
    tenrec_shutdown(w, TENREC_IMMEDIATE, CLUSTER_LONG_MS, &err);
    tenrec_worker_drop(w);
}

tenrec_peer party_id(struct tenrec_worker *w)
{
    struct tenrec_worker_info me;
    tenrec_error err;

    if (tenrec_get_worker_info(w, NULL, &me, &err) != TENREC_OK)
        fail_msg("%s", err.text);
    return me.id;
}

void party_await(struct tenrec_worker *w, size_t n)
{
    struct tenrec_group_view *v = NULL;
    tenrec_error err;

    for (uint64_t version = 0;; version++) {
        if (tenrec_group_wait_version(w, version, CLUSTER_LONG_MS, &err) != TENREC_OK ||
            tenrec_group_view_get(w, &v, &err) != TENREC_OK)
            fail_msg("waiting for %zu members: %s", n, err.text);
        version = v->version;
        if (v->n == n)
            break;
        tenrec_group_view_drop(v);
    }
    tenrec_group_view_drop(v);
}
