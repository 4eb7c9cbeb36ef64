/* SPDX-License-Identifier: Apache-2.0 */
/* fork_test.c - forks in functions and callbacks, on the backend named in argv: the child neither
 * answers nor serves, and ends where it returns to Tenrec. */
#include "../support/cluster.h"
#include "../support/functions.h"
#include "../support/tensors.h"
#include "../testing.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FAILED = 42 }; /* the exit status of a child that has seen something wrong */

static atomic_int ended; /* status of the last child, as waitpid reports it; -1: none has ended */

/* Waits for the child, which ends soon or is killed. */
static int child_end(pid_t child)
{
    int status = -1;

    for (unsigned long left = testing_looks(); waitpid(child, &status, WNOHANG) == 0; left--) {
        if (left == 0)
            kill(child, SIGKILL);
        poll(NULL, 0, 1);
    }
    return status;
}

/* Forks. Returns true in the child; in the parent when that has ended. */
static bool fork_here(void)
{
    const pid_t child = fork();

    if (child > 0)
        atomic_store(&ended, child_end(child));
    return child == 0;
}

static tenrec_status answer(struct tenrec_call *c, bool child, tenrec_error *err)
{
    const struct tenrec_value v = tenrec_value_int(child ? -1 : atomic_load(&ended));

    return tenrec_call_return(c, &v, err);
}

static tenrec_status fork_function(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    (void)arg;
    return answer(c, fork_here(), err);
}

static tenrec_status fork_and_fail(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    const bool child = fork_here();

    (void)arg;
    return child ? tenrec_fail(err, TENREC_EINVAL, "in the child") : answer(c, false, err);
}

static void *finish_later(void *arg)
{
    struct tenrec_call *c = arg;
    const bool child = fork_here();

    answer(c, child, NULL);
    tenrec_call_finish(c, NULL);
    if (child)
        _exit(0);
    return NULL;
}

static tenrec_status fork_later(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    pthread_t thread;

    (void)arg;
    if (pthread_create(&thread, NULL, finish_later, c) != 0)
        return tenrec_fail(err, TENREC_EOS, "no thread");
    pthread_detach(thread);
    return TENREC_OK;
}

/* A wait in the child for a call of the parent ends at once. */
static tenrec_status fork_and_wait(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    struct tenrec_worker *w = tenrec_call_worker(c);
    struct tenrec_future *f = functions_hold(w, "worker0"), *g = NULL;
    const pid_t child = fork();

    (void)arg;
    if (child == 0)
        _exit(tenrec_future_wait(f, TENREC_TIMEOUT_NONE, NULL) == TENREC_ESHUTDOWN &&
                      tenrec_rpc_async(w, "worker0", "noop", NULL, 0, NULL, &g, NULL) ==
                          TENREC_ESHUTDOWN &&
                      tenrec_call_return(c, NULL, NULL) == TENREC_ESHUTDOWN
                  ? 0
                  : FAILED);
    atomic_store(&ended, child_end(child));
    functions_open_gate();
    tenrec_future_wait(f, CLUSTER_LONG_MS, NULL);
    tenrec_future_drop(f);
    return answer(c, false, err);
}

static void set_up(struct tenrec_worker *w, size_t rank)
{
    static const struct {
        const char *name;
        tenrec_function_fn *fn;
        uint32_t flags;
    } function[] = {
        { "fork", fork_function, TENREC_POOL },
        { "fork_inline", fork_function, TENREC_INLINE },
        { "fork_and_fail", fork_and_fail, TENREC_POOL },
        { "fork_later", fork_later, TENREC_LATER },
        { "fork_and_wait", fork_and_wait, TENREC_POOL },
    };
    tenrec_error err;

    functions_register(w, rank);
    for (size_t i = 0; i < sizeof function / sizeof function[0]; i++)
        assert_status(tenrec_worker_register_function(w, function[i].name, function[i].fn, NULL,
                                                      function[i].flags, &err),
                      &err);
}

static struct cluster pair;

static void open_pair(void)
{
    cluster_open(&pair, 2, NULL, set_up);
}

static void close_pair(void)
{
    cluster_close(&pair, TENREC_GRACEFUL);
}

/* The parent answers, with the exit status of its child: 0. */
static void parent_answers(const char *function)
{
    struct tenrec_value *got = NULL;
    tenrec_error err;

    atomic_store(&ended, -1);
    assert_status(tenrec_rpc_sync(pair.worker[0], "worker1", function, NULL, 0, NULL, &got, &err),
                  &err);
    assert_int_equal(got->u.integer, 0);
    tenrec_value_drop(got);
    for (int i = 0; i < 20; i++)
        functions_must_call_add(pair.worker[0], "worker1");
}

TEST(child_does_not_answer_when_its_function_returns)
{
    parent_answers("fork");
}

TEST(child_does_not_answer_when_its_inline_function_returns)
{
    parent_answers("fork_inline");
}

TEST(child_does_not_answer_when_its_function_fails)
{
    parent_answers("fork_and_fail");
}

TEST(child_does_not_answer_when_it_finishes_a_call)
{
    parent_answers("fork_later");
}

TEST(child_is_refused_by_calls_and_waits_of_its_parent)
{
    parent_answers("fork_and_wait");
}

static void fork_callback(struct tenrec_future *f, void *arg)
{
    (void)f, (void)arg;
    fork_here();
}

static tenrec_status fork_then(struct tenrec_future *f, void *arg, struct tenrec_value *ret,
                               tenrec_error *err)
{
    (void)f, (void)arg, (void)ret, (void)err;
    fork_here();
    return TENREC_OK;
}

TEST(child_ends_when_its_callback_returns)
{
    struct tenrec_future *f = functions_hold(pair.worker[0], "worker1"), *then = NULL;

    atomic_store(&ended, -1);
    assert_int_equal(tenrec_future_add_callback(f, fork_callback, NULL, NULL), TENREC_OK);
    functions_open_gate();
    assert_becomes(atomic_load(&ended) == 0);
    atomic_store(&ended, -1);
    assert_int_equal(tenrec_future_then(f, fork_then, NULL, &then, NULL), TENREC_OK);
    assert_int_equal(tenrec_future_wait(then, CLUSTER_LONG_MS, NULL), TENREC_OK);
    assert_int_equal(atomic_load(&ended), 0);
    tenrec_future_drop(f);
    tenrec_future_drop(then);
    functions_must_call_add(pair.worker[0], "worker1");
}

static void fork_free(void *arg, void *data)
{
    (void)arg, (void)data;
    fork_here();
}

TEST(child_ends_when_its_free_function_returns)
{
    struct tenrec_tensor *t = NULL;
    static float data[1];
    const int64_t shape = 1;

    atomic_store(&ended, -1);
    assert_int_equal(
        tensors_owned(data, sizeof data, TENREC_FLOAT32, &shape, fork_free, NULL, &t, NULL),
        TENREC_OK);
    tenrec_tensor_drop(t);
    assert_int_equal(atomic_load(&ended), 0);
}

/* ---- lost peers --------------------------------------------------------------------------- */

static void fork_lost(struct tenrec_worker *w, tenrec_peer id, const tenrec_error *why, void *arg)
{
    (void)w, (void)id, (void)why, (void)arg;
    fork_here();
}

TEST(child_ends_when_its_callback_for_lost_peers_returns)
{
    struct cluster c;

    cluster_open(&c, 2, NULL, functions_register);
    functions_must_call_add(c.worker[0], "worker1");
    tenrec_worker_set_peer_lost_callback(c.worker[0], fork_lost, NULL);
    atomic_store(&ended, -1);
    assert_int_equal(tenrec_shutdown(c.worker[1], TENREC_IMMEDIATE, CLUSTER_LONG_MS, NULL),
                     TENREC_OK);
    assert_becomes(atomic_load(&ended) == 0);
    tenrec_shutdown(c.worker[0], TENREC_IMMEDIATE, CLUSTER_LONG_MS, NULL);
    tenrec_worker_drop(c.worker[0]);
    tenrec_worker_drop(c.worker[1]);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cluster_use(argv[1]);
    return testing_run(open_pair, close_pair);
}
