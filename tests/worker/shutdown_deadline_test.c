/* SPDX-License-Identifier: Apache-2.0 */
/* shutdown_deadline_test.c - all store operations of a shutdown have one deadline, that of the
 * shutdown: recorded at the store. */
#include "../support/cluster.h"
#include "../testing.h"
#include "core/base/clock.h"
#include "group/store/store.h"

#include <pthread.h>

/* ---- what is recorded ------------------------------------------------------------------ */

static struct {
    pthread_mutex_t lock;
    bool on;
    size_t n;
    uint64_t first_ns, last_ns; /* the first deadline, and the latest */
} seen = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void record(uint64_t deadline_ns)
{
    pthread_mutex_lock(&seen.lock);
    if (seen.on && seen.n++ == 0)
        seen.first_ns = seen.last_ns = deadline_ns;
    if (seen.on && deadline_ns > seen.last_ns)
        seen.last_ns = deadline_ns;
    pthread_mutex_unlock(&seen.lock);
}

static void record_begin(void)
{
    pthread_mutex_lock(&seen.lock);
    seen.on = true;
    seen.n = 0;
    pthread_mutex_unlock(&seen.lock);
}

static void record_end(void)
{
    pthread_mutex_lock(&seen.lock);
    seen.on = false;
    pthread_mutex_unlock(&seen.lock);
}

#define WRAP(name, params, args)                                                                   \
    tenrec_status __real_##name params;                                                            \
    tenrec_status __wrap_##name params;                                                            \
    tenrec_status __wrap_##name params                                                             \
    {                                                                                              \
        record(deadline_ns);                                                                       \
        return __real_##name args;                                                                 \
    }

WRAP(store_set,
     (struct tenrec_store * s, const char *key, const void *data, size_t len, uint64_t deadline_ns,
      tenrec_error *err),
     (s, key, data, len, deadline_ns, err))
WRAP(store_add,
     (struct tenrec_store * s, const char *key, int64_t delta, uint64_t deadline_ns, int64_t *ret,
      tenrec_error *err),
     (s, key, delta, deadline_ns, ret, err))
WRAP(store_num_keys,
     (struct tenrec_store * s, uint64_t deadline_ns, int64_t *ret, tenrec_error *err),
     (s, deadline_ns, ret, err))
WRAP(store_check_all,
     (struct tenrec_store * s, const char *const *keys, size_t n, uint64_t deadline_ns,
      bool *missing, tenrec_error *err),
     (s, keys, n, deadline_ns, missing, err))
WRAP(store_get_all,
     (struct tenrec_store * s, const char *const *keys, size_t n, uint64_t deadline_ns,
      struct store_value *ret, bool *missing, tenrec_error *err),
     (s, keys, n, deadline_ns, ret, missing, err))
WRAP(store_remove_all,
     (struct tenrec_store * s, const char *const *keys, size_t n, uint64_t deadline_ns, size_t *ret,
      tenrec_error *err),
     (s, keys, n, deadline_ns, ret, err))
WRAP(store_remove,
     (struct tenrec_store * s, const char *key, uint64_t deadline_ns, tenrec_error *err),
     (s, key, deadline_ns, err))

/* ---- two workers whose store is served by the first ------------------------------------- */

struct life {
    struct tenrec_worker *w;
    tenrec_status status;
    tenrec_error err;
};

static void *life_start(void *arg)
{
    struct life *l = arg;

    l->status = tenrec_init_rpc(l->w, &l->err);
    return NULL;
}

static void *life_stop(void *arg)
{
    struct life *l = arg;

    l->status = tenrec_shutdown(l->w, TENREC_GRACEFUL, CLUSTER_LONG_MS, &l->err);
    return NULL;
}

static uint16_t free_port(void)
{
    struct tenrec_store_server *server;
    tenrec_error err;
    uint16_t port;

    assert_status(tenrec_store_server_new("127.0.0.1", 0, &server, &port, &err), &err);
    tenrec_store_server_drop(server);
    return port;
}

static void both(struct life *l, void *(*fn)(void *))
{
    pthread_t thread[2];

    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, fn, &l[i]), 0);
    for (size_t i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    for (size_t i = 0; i < 2; i++)
        assert_status(l[i].status, &l[i].err);
}

static void open_both(struct life *l)
{
    const uint16_t port = free_port();
    tenrec_error err;

    for (size_t i = 0; i < 2; i++) {
        struct tenrec_config *config = cluster_config();
        char text[80];
        snprintf(text, sizeof text, "tcp://127.0.0.1:%u?rank=%zu&world_size=2", port, i);
        assert_status(tenrec_config_set(config, "init_method", text, &err), &err);
        assert_status(tenrec_worker_new(config, &l[i].w, &err), &err);
        tenrec_config_drop(config);
    }
    both(l, life_start);
}

/* Every step of a shutdown has the same deadline: none adds to it. */
static void leave_alone(size_t who)
{
    struct life l[2];
    tenrec_error err;

    open_both(l);
    record_begin();
    assert_int_equal(tenrec_shutdown(l[who].w, TENREC_GRACEFUL, 50, &err), TENREC_ETIMEDOUT);
    record_end();
    assert_true(seen.n >= 3);
    assert_true(seen.last_ns == seen.first_ns);
    tenrec_worker_drop(l[who].w);
    tenrec_worker_drop(l[1 - who].w);
}

TEST(shutdown_that_times_out_has_one_deadline)
{
    leave_alone(0);
    leave_alone(1);
}

TEST(shutdown_is_graceful_when_both_workers_come)
{
    struct life l[2];

    open_both(l);
    both(l, life_stop);
    for (size_t i = 0; i < 2; i++)
        tenrec_worker_drop(l[i].w);
}
