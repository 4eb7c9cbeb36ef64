/* SPDX-License-Identifier: Apache-2.0 */
/* limits_test.c - what is larger than a worker takes, in each kind of message, on the backend named
 * in argv. */
#include "../support/cluster.h"
#include "../support/functions.h"
#include "../testing.h"

#include <pthread.h>
#include <stdlib.h>

#define LIMIT (64u << 10)

static struct cluster c;
static struct tenrec_future *held;
static char bytes[2 * LIMIT];

/* Bytes of that number. */
static tenrec_status many(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    int64_t n;
    tenrec_status st = tenrec_call_get_args(call, err, "i", &n);
    struct tenrec_value v;

    (void)arg;
    if (st)
        return st;
    v = tenrec_value_bytes(bytes, (size_t)n);
    return tenrec_call_return(call, &v, err);
}

static void register_many(struct tenrec_worker *w, size_t rank)
{
    functions_register(w, rank);
    assert_int_equal(tenrec_worker_register_function(w, "many", many, NULL, TENREC_POOL, NULL),
                     TENREC_OK);
}

/* A call of worker0 waits at worker1 meanwhile, which nothing that is refused may end. */
static void open_narrow(void)
{
    const char *name = cluster_backend();
    char limit[80];
    const char *const extra[] = { "worker.num_worker_threads=2", limit, NULL };

    if (strncmp(name, "faulty_", 7) == 0)
        name += 7;
    snprintf(limit, sizeof limit, "backends.%s.options.max_message=%u", name, LIMIT);
    cluster_open(&c, 2, extra, register_many);
    held = functions_hold(c.worker[0], "worker1");
}

static void close_narrow(void)
{
    tenrec_error err;

    assert_false(tenrec_future_done(held));
    functions_must_call_add(c.worker[0], "worker1");
    functions_open_gate();
    if (tenrec_future_wait(held, CLUSTER_LONG_MS, &err))
        fail_msg("the call beside failed: %s", err.text);
    tenrec_future_drop(held);
    cluster_close(&c, TENREC_GRACEFUL);
}

static void assert_too_big(tenrec_status st, const tenrec_error *err, const char *size)
{
    if (st != TENREC_ETOOBIG)
        fail_msg("%s: %s", tenrec_status_name(st), st ? err->text : "went well");
    assert_text_has(err->text, "max_message");
    assert_text_has(err->text, "65536");
    assert_text_has(err->text, size);
}

static tenrec_status call_with(const char *fn, struct tenrec_value arg, tenrec_error *err)
{
    struct tenrec_value *got = NULL;
    tenrec_status st = tenrec_rpc_sync(c.worker[0], "worker1", fn, &arg, 1, NULL, &got, err);

    tenrec_value_drop(got);
    return st;
}

static struct tenrec_tensor *make_tensor(int64_t n)
{
    struct tenrec_tensor *t = NULL;

    assert_int_equal(tenrec_tensor_new(TENREC_UINT8, 1, &n, &t, NULL), TENREC_OK);
    return t;
}

TEST_WITH(limit_refuses_bytes_in_a_call, open_narrow, close_narrow)
{
    tenrec_error err;
    tenrec_status st = call_with("identity", tenrec_value_bytes(bytes, LIMIT), &err);

    assert_too_big(st, &err, "a message of 65");
    assert_text_has(err.text, "worker \"worker1\"");
}

TEST_WITH(limit_refuses_tensors_in_a_call, open_narrow, close_narrow)
{
    struct tenrec_tensor *t = make_tensor(LIMIT);
    tenrec_error err;
    tenrec_status st = call_with("identity", tenrec_value_tensor(t), &err);

    tenrec_tensor_drop(t);
    assert_too_big(st, &err, "a message of 65");
}

TEST_WITH(limit_refuses_bytes_in_an_answer, open_narrow, close_narrow)
{
    tenrec_error err;
    tenrec_status st = call_with("many", tenrec_value_int(2 * LIMIT), &err);

    assert_too_big(st, &err, "a message of 131");
    assert_text_has(err.text, "answer");
}

TEST_WITH(limit_refuses_tensors_in_an_answer, open_narrow, close_narrow)
{
    tenrec_error err;
    tenrec_status st = call_with("range", tenrec_value_int(LIMIT), &err);

    assert_too_big(st, &err, "a message of 262");
}

TEST_WITH(limit_refuses_the_copy_of_a_referenced_value, open_narrow, close_narrow)
{
    const struct tenrec_value size = tenrec_value_int(LIMIT);
    struct tenrec_value *got = NULL;
    struct tenrec_rref *r = NULL;
    tenrec_error err;
    tenrec_status st;

    assert_int_equal(tenrec_remote(c.worker[0], "worker1", "range", &size, 1, NULL, &r, &err),
                     TENREC_OK);
    st = tenrec_rref_to_here(r, NULL, &got, &err);
    assert_too_big(st, &err, "a message of 262");
    st = tenrec_rref_rpc_sync(r, "noop", NULL, 0, NULL, &got, &err);
    if (st)
        fail_msg("a call on the value: %s", err.text);
    tenrec_value_drop(got);
    tenrec_rref_drop(r);
}

TEST_WITH(limit_refuses_the_arguments_of_a_creation, open_narrow, close_narrow)
{
    const struct tenrec_value arg = tenrec_value_bytes(bytes, LIMIT);
    struct tenrec_value *got = NULL;
    struct tenrec_rref *r = NULL;
    tenrec_error err;
    tenrec_status st;

    st = tenrec_remote(c.worker[0], "worker1", "identity", &arg, 1, NULL, &r, &err);
    if (!st) {
        st = tenrec_rref_to_here(r, NULL, &got, &err);
        tenrec_rref_drop(r);
    }
    assert_too_big(st, &err, "a message of 65");
}

static const char *const both[] = { "worker0", "worker1" };

struct part {
    struct tenrec_worker *w;
    tenrec_status st;
    tenrec_error err;
};

static void *gather(void *arg)
{
    struct tenrec_value mine = tenrec_value_bytes(bytes, LIMIT - 4096), *all = NULL;
    struct part *part = arg;

    part->st = tenrec_worker_all_gather(part->w, &mine, both, 2, CLUSTER_LONG_MS, &all, &part->err);
    tenrec_value_drop(all);
    return NULL;
}

/* Both values fit into messages, and their map does not. */
TEST_WITH(limit_refuses_what_was_gathered, open_narrow, close_narrow)
{
    struct part leader = { .w = c.worker[0] }, follower = { .w = c.worker[1] };
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, gather, &leader), 0);
    gather(&follower);
    pthread_join(thread, NULL);
    assert_too_big(follower.st, &follower.err, "a message of 122");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cluster_use(argv[1]);
    return testing_run(NULL, NULL);
}
