/* SPDX-License-Identifier: Apache-2.0 */
/* traffic_test.c - a member that receives for longer than its heartbeats may stay unanswered. */
#include "../support/party.h"
#include "../testing.h"
#include "core/base/clock.h"
#include "rpc/future/future.h"
#include "rpc/future/worker.h"
#include "rpc/monitor/monitor_inside.h"

#include <pthread.h>
#include <stdatomic.h>
#include <tenrec/tensor.h>

/* A death takes 100 ms * 15 = 1.5 s, the transfer N * PACE = 4 s; longer where the run is slow, as
 * its answers are. */
enum { MEMBERS = 4, N = 80, PACE_MS = 50, BYTES = 16 << 20, LONG_MS = 30000 };

static struct tenrec_worker *member[MEMBERS];

/* Occupies the thread that reads the connection, as a slow link does. */
static tenrec_status swallow(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never;
    const uint64_t until_ns = clock_deadline_ms(PACE_MS * testing_slow());

    (void)c, (void)arg, (void)err;
    clock_cond_init(&never);
    pthread_mutex_lock(&lock);
    while (clock_cond_wait(&never, &lock, until_ns))
        ;
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&never);
    return TENREC_OK;
}

/* The turns of two callers. */
static struct {
    atomic_bool asked; /* the second has called */
    atomic_int n_swallowed, n_before;
} turns;

/* The first call waits until the second caller has called, too. */
static tenrec_status swallow_in_turn(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    if (atomic_fetch_add(&turns.n_swallowed, 1) == 0)
        for (int i = 0; i < LONG_MS / PACE_MS && !atomic_load(&turns.asked); i++)
            swallow(c, arg, err);
    return swallow(c, arg, err);
}

static tenrec_status note_turn(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    (void)c, (void)arg, (void)err;
    atomic_store(&turns.n_before, atomic_load(&turns.n_swallowed));
    return TENREC_OK;
}

static void functions(struct tenrec_worker *w, size_t rank)
{
    static const struct {
        const char *name;
        tenrec_function_fn *fn;
    } list[] = { { "swallow", swallow },
                 { "swallow_in_turn", swallow_in_turn },
                 { "note_turn", note_turn } };
    tenrec_error err;

    (void)rank;
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        assert_status(
            tenrec_worker_register_function(w, list[i].name, list[i].fn, NULL, TENREC_INLINE, &err),
            &err);
}

/* Settings of the backend, the last of them NULL. */
static void join(const char *queue, const char *transports, const char *channels)
{
    char heartbeat[48], timeout[48];
    const char *const extra[] = {
        heartbeat, "worker.heartbeat_misses=15", timeout, queue, transports, channels, NULL
    };
    tenrec_error err;

    snprintf(heartbeat, sizeof heartbeat, "worker.heartbeat=%lums", 100 * testing_slow());
    snprintf(timeout, sizeof timeout, "worker.rpc_timeout=%lums", LONG_MS * testing_slow());
    party_begin();
    for (int i = 0; i < MEMBERS; i++) {
        member[i] = party_worker(i, NULL, extra, functions);
        assert_status(tenrec_init_rpc(member[i], &err), &err);
    }
    for (int i = 0; i < MEMBERS; i++)
        party_await(member[i], MEMBERS);
}

static void leave(void)
{
    for (int i = 0; i < MEMBERS; i++)
        party_leave(member[i]);
}

/* Worker 0 polls worker 1, behind all that it has sent; worker 1 polls two others. */
static void must_outlive_its_heartbeats(void)
{
    struct tenrec_tensor *t = NULL;
    struct tenrec_future *f[N];
    struct tenrec_value arg;
    tenrec_error err;

    assert_status(tenrec_tensor_new(TENREC_UINT8, 1, (const int64_t[]){ BYTES }, &t, &err), &err);
    arg = tenrec_value_tensor(t);
    for (int i = 0; i < N; i++)
        assert_status(tenrec_rpc_async(member[0], "worker1", "swallow", &arg, 1, NULL, &f[i], &err),
                      &err);
    for (int i = 0; i < N; i++) {
        assert_status(tenrec_future_wait(f[i], LONG_MS * testing_slow(), &err), &err);
        tenrec_future_drop(f[i]);
    }
    tenrec_tensor_drop(t);
    for (int i = 0; i < MEMBERS; i++) {
        struct tenrec_group_view *v;
        assert_status(tenrec_group_view_get(member[i], &v, &err), &err);
        assert_int_equal(v->version, MEMBERS);
        tenrec_group_view_drop(v);
    }
}

/* Calls of one member that take long, one behind the other, let that of another have its turn.
 * bytes: of the tensor of each; 0: none, so that one buffer has all calls */
static void must_take_turns(int64_t bytes)
{
    enum { CALLS = 20, BEFORE = 15 };
    struct tenrec_tensor *t = NULL;
    struct tenrec_future *f[CALLS + 1];
    struct tenrec_value arg;
    tenrec_error err;

    /* The connection is made, which takes some turns over TLS. */
    assert_status(tenrec_rpc_async(member[2], "worker1", "note_turn", NULL, 0, NULL, &f[0], &err),
                  &err);
    assert_status(tenrec_future_wait(f[0], LONG_MS * testing_slow(), &err), &err);
    tenrec_future_drop(f[0]);
    turns.n_swallowed = turns.n_before = 0;
    turns.asked = false;
    assert_status(tenrec_tensor_new(TENREC_UINT8, 1, &bytes, &t, &err), &err);
    arg = tenrec_value_tensor(t);
    for (int i = 0; i < CALLS; i++)
        assert_status(tenrec_rpc_async(member[0], "worker1", "swallow_in_turn", &arg, bytes > 0,
                                       NULL, &f[i], &err),
                      &err);
    assert_becomes(atomic_load(&turns.n_swallowed) == 1);
    assert_status(
        tenrec_rpc_async(member[2], "worker1", "note_turn", NULL, 0, NULL, &f[CALLS], &err), &err);
    turns.asked = true;
    for (int i = 0; i <= CALLS; i++) {
        assert_status(tenrec_future_wait(f[i], LONG_MS * testing_slow(), &err), &err);
        tenrec_future_drop(f[i]);
    }
    tenrec_tensor_drop(t);
    assert_in_range(turns.n_before, 1, BEFORE);
}

static bool over_ucx(void)
{
    return strstr(cluster_backend(), "ucx") != NULL;
}

static bool over_tensorpipe(void)
{
    return !over_ucx();
}

#define TENSORPIPE_QUEUE "backends.tensorpipe.options.max_queued_bytes=2GiB"

TEST_WHEN(traffic_over_tcp_keeps_a_member_alive, over_tensorpipe, NULL, NULL)
{
    join(TENSORPIPE_QUEUE, "backends.tensorpipe.options.transports=[uv]",
         "backends.tensorpipe.options.channels=[basic]");
    must_outlive_its_heartbeats();
    leave();
}

TEST_WHEN(traffic_over_rings_keeps_a_member_alive, over_tensorpipe, NULL, NULL)
{
    join(TENSORPIPE_QUEUE, "backends.tensorpipe.options.transports=[shm]",
         "backends.tensorpipe.options.channels=[basic]");
    must_outlive_its_heartbeats();
    leave();
}

TEST_WHEN(traffic_out_of_the_senders_memory_keeps_a_member_alive, over_tensorpipe, NULL, NULL)
{
    join(TENSORPIPE_QUEUE, "backends.tensorpipe.options.transports=[shm, uv]",
         "backends.tensorpipe.options.channels=[cma, basic]");
    must_outlive_its_heartbeats();
    leave();
}

TEST_WHEN(traffic_of_one_member_leaves_turns_to_others, over_tensorpipe, NULL, NULL)
{
    join(TENSORPIPE_QUEUE, "backends.tensorpipe.options.transports=[uv]",
         "backends.tensorpipe.options.channels=[basic]");
    must_take_turns(1 << 20);
    leave();
}

TEST_WHEN(traffic_of_small_calls_leaves_turns_to_others, over_tensorpipe, NULL, NULL)
{
    join(TENSORPIPE_QUEUE, "backends.tensorpipe.options.transports=[uv]",
         "backends.tensorpipe.options.channels=[basic]");
    must_take_turns(0);
    leave();
}

TEST_WHEN(traffic_over_ucx_keeps_a_member_alive, over_ucx, NULL, NULL)
{
    join("backends.ucx.options.max_queued_bytes=2GiB", NULL, NULL);
    must_outlive_its_heartbeats();
    leave();
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cluster_use(argv[1]);
    return testing_run(NULL, NULL);
}
