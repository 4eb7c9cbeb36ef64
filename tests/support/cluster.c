/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster.h"
#include "../testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* Messages whose duplicates must change nothing: all but the calls of the program. */
#define TWICE                                                                                      \
    "[RESPONSE, REMOTE_CALL, RREF_FETCH_CALL, RREF_USER_DELETE, RREF_FORK_REQUEST, "               \
    "RREF_CHILD_ACCEPT, GATHER, GATHER_RET, BULK_READ, BULK_WRITE]"

static const char *const yaml =
    "worker: { rpc_timeout: 20s }\n"
    "backend: inproc\n"
    "backends:\n"
    "  inproc: { plugin: inproc }\n"
    "  tensorpipe: { plugin: tensorpipe }\n"
    "  ucx: { plugin: ucx }\n"
    "  faulty_inproc: { plugin: faulty, wraps: inproc }\n"
    "  faulty_tensorpipe: { plugin: faulty, wraps: tensorpipe }\n"
    "  faulty_ucx: { plugin: faulty, wraps: ucx }\n"
    "  two_faulty_tensorpipe: { plugin: faulty, wraps: faulty_tensorpipe }\n"
    "  two_faulty_ucx: { plugin: faulty, wraps: faulty_ucx }\n"
    "  two_faulty_inproc: { plugin: faulty, wraps: faulty_inproc }\n"
    "  doubling_inproc: { plugin: faulty, wraps: inproc, options: { rules: [{ do: duplicate, "
    "on: " TWICE " }, { do: duplicate, from: ['*'], on: " TWICE " }] } }\n"
    "  twice_inproc: { plugin: faulty, wraps: inproc, options: { rules: [{ do: duplicate }, "
    "{ do: duplicate, from: ['*'] }] } }\n"
    "  shuffling_tensorpipe: { plugin: faulty, wraps: tensorpipe, options: { seed: 1, rules: ["
    "{ do: reorder, by: 5ms, probability: 0.3 },"
    " { do: reorder, by: 5ms, from: ['*'], probability: 0.3 }] } }\n"
    "  limit_inproc: { plugin: limit, wraps: inproc }\n"
    "  limit_tensorpipe: { plugin: limit, wraps: tensorpipe }\n"
    "  meter_inproc: { plugin: meter, wraps: limit_inproc }\n"
    "  meter_tensorpipe: { plugin: meter, wraps: limit_tensorpipe }\n"
    "  forging_inproc: { plugin: forger, wraps: inproc }\n"
    "  forging_tensorpipe: { plugin: forger, wraps: tensorpipe }\n"
    "  torture_inproc: { plugin: torture, wraps: inproc }\n"
    "  torture_tensorpipe: { plugin: torture, wraps: tensorpipe }\n";

struct job {
    struct tenrec_worker *worker;
    enum tenrec_shutdown_mode mode;
    tenrec_status status;
    tenrec_error err;
};

static const char *backend = "inproc";

void cluster_use(const char *name)
{
    backend = name;
}

const char *cluster_backend(void)
{
    return backend;
}

static void *start(void *arg)
{
    struct job *j = arg;

    j->status = tenrec_init_rpc(j->worker, &j->err);
    return NULL;
}

static void *stop(void *arg)
{
    struct job *j = arg;

    j->status = tenrec_shutdown(j->worker, j->mode, CLUSTER_LONG_MS, &j->err);
    return NULL;
}

/* One thread per worker, all at once; fails the test when one fails. */
static void all(struct cluster *c, void *(*fn)(void *), enum tenrec_shutdown_mode mode)
{
    struct job job[CLUSTER_MAX];
    pthread_t thread[CLUSTER_MAX];

    for (size_t i = 0; i < c->n; i++) {
        job[i] = (struct job){ .worker = c->worker[i], .mode = mode };
        assert_int_equal(pthread_create(&thread[i], NULL, fn, &job[i]), 0);
    }
    for (size_t i = 0; i < c->n; i++)
        pthread_join(thread[i], NULL);
    for (size_t i = 0; i < c->n; i++)
        if (job[i].status != TENREC_OK)
            fail_msg("worker %zu: %s: %s", i, tenrec_status_name(job[i].status), job[i].err.text);
}

static void set(struct tenrec_config *config, const char *key, const char *value)
{
    tenrec_error err;

    if (tenrec_config_set(config, key, value, &err) != TENREC_OK)
        fail_msg("%s: %s", key, err.text);
}

struct tenrec_config *cluster_config(void)
{
    struct tenrec_config *config = NULL;
    tenrec_error err;

    if (tenrec_config_parse(yaml, "cluster.yaml", &config, &err) != TENREC_OK)
        fail_msg("%s", err.text);
    set(config, "backend", cluster_backend());
    return config;
}

static struct tenrec_config *make_config(size_t rank, size_t n, unsigned store,
                                         const char *const *extra)
{
    struct tenrec_config *config = cluster_config();
    char text[128];

    snprintf(text, sizeof text, "memory://cluster%u?rank=%zu&world_size=%zu", store, rank, n);
    set(config, "init_method", text);
    snprintf(text, sizeof text, "cluster%u", store);
    set(config, "backends.inproc.options.group", text);
    for (; extra && *extra; extra++) {
        const char *eq = strchr(*extra, '=');
        snprintf(text, sizeof text, "%.*s", (int)(eq - *extra), *extra);
        set(config, text, eq + 1);
    }
    return config;
}

void cluster_open(struct cluster *c, size_t n, const char *const *extra, cluster_setup_fn *setup)
{
    static atomic_uint stores;
    unsigned store = atomic_fetch_add(&stores, 1);
    tenrec_error err;

    *c = (struct cluster){ .n = n };
    for (size_t i = 0; i < n; i++) {
        struct tenrec_config *config = make_config(i, n, store, extra);
        if (tenrec_worker_new(config, &c->worker[i], &err) != TENREC_OK)
            fail_msg("worker %zu: %s", i, err.text);
        tenrec_config_drop(config);
        if (setup)
            setup(c->worker[i], i);
    }
    all(c, start, TENREC_GRACEFUL);
}

void cluster_close(struct cluster *c, enum tenrec_shutdown_mode mode)
{
    all(c, stop, mode);
    for (size_t i = 0; i < c->n; i++)
        tenrec_worker_drop(c->worker[i]);
    c->n = 0;
}
