/* SPDX-License-Identifier: Apache-2.0 */
/* attach_test.c - calling a group without being of it, on the backend named in
 * argv (one that reaches other processes). */
#include <tenrec/agent.h>
#include <tenrec/observe.h>

#include "../support/cluster.h"
#include "../support/functions.h"
#include "../testing.h"

#define STORE "memory://cluster0" /* of the first cluster of a process */

static struct cluster two;

static void open_two(void)
{
    cluster_open(&two, 2, NULL, functions_register);
}

static void close_two(void)
{
    functions_open_gate();
    cluster_close(&two, TENREC_GRACEFUL);
}

static struct tenrec_worker *make_worker(const char *group)
{
    struct tenrec_config *config = NULL;
    struct tenrec_worker *w = NULL;
    tenrec_error err;

    assert_status(tenrec_config_parse("backends: { tensorpipe: { plugin: tensorpipe } }\n",
                                      "attach.yaml", &config, &err),
                  &err);
    assert_status(tenrec_config_set(config, "backend", cluster_backend(), &err), &err);
    assert_status(tenrec_config_set(config, "worker.group", group, &err), &err);
    assert_status(tenrec_worker_new(config, &w, &err), &err);
    tenrec_config_drop(config);
    return w;
}

static struct tenrec_worker *attach(void)
{
    struct tenrec_worker *w = make_worker("default");
    tenrec_error err;

    assert_status(tenrec_worker_attach(w, STORE, CLUSTER_LONG_MS, &err), &err);
    return w;
}

static void drop(struct tenrec_worker *w)
{
    tenrec_error err;

    assert_status(tenrec_shutdown(w, TENREC_GRACEFUL, CLUSTER_LONG_MS, &err), &err);
    tenrec_worker_drop(w);
}

TEST(attach_calls_without_being_a_member)
{
    const struct tenrec_value args[] = { tenrec_value_int(40), tenrec_value_int(2) };
    struct tenrec_worker *w = attach();
    struct tenrec_value *got = NULL;
    tenrec_error err;

    for (int i = 0; i < 2; i++) {
        assert_status(
            tenrec_rpc_sync(w, i ? "worker1" : "worker0", "add", args, 2, NULL, &got, &err), &err);
        assert_int_equal(got->u.integer, 42);
        tenrec_value_drop(got);
    }
    assert_status(tenrec_rpc_sync(w, "worker1", "who", NULL, 0, NULL, &got, &err), &err);
    assert_string_equal(got->u.array[0].u.text, "");
    assert_int_equal(got->u.array[1].u.integer, TENREC_ANONYMOUS);
    tenrec_value_drop(got);
    drop(w);
}

TEST(attach_carries_tensors_and_errors)
{
    struct tenrec_value arg = tenrec_value_int(100000), text = tenrec_value_text("no"),
                        *range = NULL, *sum = NULL;
    struct tenrec_worker *w = attach();
    tenrec_error err;

    assert_status(tenrec_rpc_sync(w, "worker1", "range", &arg, 1, NULL, &range, &err), &err);
    assert_status(tenrec_rpc_sync(w, "worker0", "sum", range, 1, NULL, &sum, &err), &err);
    tenrec_value_drop(range);
    tenrec_value_drop(sum);
    assert_int_equal(tenrec_rpc_sync(w, "worker1", "fail", &text, 1, NULL, NULL, &err),
                     TENREC_EINVAL);
    assert_string_equal(err.worker_name, "worker1");
    drop(w);
}

TEST(attach_knows_the_members_and_has_no_name_of_its_own)
{
    struct tenrec_worker *w = attach();
    struct tenrec_worker_info info[3];
    struct tenrec_value *map = NULL;
    tenrec_error err;
    size_t n;

    assert_status(tenrec_worker_get_infos(w, info, 3, &n, &err), &err);
    assert_int_equal(n, 2);
    assert_string_equal(info[1].name, "worker1");
    assert_int_equal(tenrec_get_worker_info(w, NULL, info, &err), TENREC_EPEER_UNKNOWN);
    assert_status(tenrec_worker_inspect(w, NULL, TENREC_INSPECT_DEBUG_INFO, NULL, &map, &err),
                  &err);
    assert_int_equal(tenrec_value_find(map, "worker.id")->u.integer, TENREC_ANONYMOUS);
    assert_int_equal(tenrec_value_find(map, "group.size")->u.integer, 2);
    tenrec_value_drop(map);
    drop(w);
}

TEST(attach_names_transport_and_channel_of_each_peer)
{
    struct tenrec_worker *w = attach();
    struct tenrec_value *map = NULL;
    tenrec_error err;

    assert_status(tenrec_rpc_sync(w, "worker1", "tenrec.ping", NULL, 0, NULL, NULL, &err), &err);
    assert_status(tenrec_worker_inspect(w, NULL, TENREC_INSPECT_DEBUG_INFO, NULL, &map, &err),
                  &err);
    assert_string_equal(tenrec_value_find(map, "tensorpipe.peer.1.transport")->u.text,
                        "tenrec_ring");
    assert_string_equal(tenrec_value_find(map, "tensorpipe.peer.1.channel")->u.text, "tenrec_host");
    assert_string_equal(tenrec_value_find(map, "tensorpipe.peer.0.transport")->u.text, "none");
    tenrec_value_drop(map);
    drop(w);
}

TEST(attach_refuses_operations_that_need_membership)
{
    const struct tenrec_value nothing = tenrec_value_nil();
    struct tenrec_worker *w = attach();
    struct tenrec_value *got = NULL;
    struct tenrec_rref *r = NULL;
    tenrec_error err;

    assert_int_equal(tenrec_worker_barrier(w, NULL, 0, CLUSTER_LONG_MS, &err), TENREC_EINVAL);
    assert_int_equal(tenrec_worker_all_gather(w, &nothing, NULL, 0, CLUSTER_LONG_MS, &got, &err),
                     TENREC_EINVAL);
    assert_int_equal(tenrec_remote(w, "worker1", "noop", NULL, 0, NULL, &r, &err),
                     TENREC_EUNSUPPORTED);
    drop(w);
}

TEST(attach_is_not_waited_for_by_the_group)
{
    struct tenrec_worker *w = make_worker("default");
    struct tenrec_future *f = NULL;
    struct cluster one;
    char store[64];
    tenrec_error err;

    /* The cases before opened one cluster, and this is the second. */
    cluster_open(&one, 1, NULL, functions_register);
    snprintf(store, sizeof store, "memory://cluster1");
    assert_status(tenrec_worker_attach(w, store, CLUSTER_LONG_MS, &err), &err);
    functions_close_gate();
    assert_status(tenrec_rpc_async(w, "worker0", "wait_gate", NULL, 0, NULL, &f, &err), &err);
    assert_becomes(functions_waiting() == 1);
    functions_open_gate();
    cluster_close(&one, TENREC_GRACEFUL);
    /* Answered, or lost with the worker: it ends. */
    assert_int_not_equal(tenrec_future_wait(f, CLUSTER_LONG_MS, &err), TENREC_ETIMEDOUT);
    tenrec_future_drop(f);
    drop(w);
}

TEST(attach_can_be_done_again_but_not_twice)
{
    struct tenrec_worker *w = attach();
    tenrec_error err;

    assert_int_equal(tenrec_worker_attach(w, STORE, CLUSTER_LONG_MS, &err), TENREC_EBUSY);
    assert_int_equal(tenrec_init_rpc(w, &err), TENREC_EBUSY);
    assert_status(tenrec_shutdown(w, TENREC_IMMEDIATE, CLUSTER_LONG_MS, &err), &err);
    assert_status(tenrec_worker_attach(w, STORE, CLUSTER_LONG_MS, &err), &err);
    assert_status(tenrec_rpc_sync(w, "worker0", "noop", NULL, 0, NULL, NULL, &err), &err);
    drop(w);
}

TEST(attach_names_the_group_that_is_not_there)
{
    struct tenrec_worker *w = make_worker("defaul");
    tenrec_error err;

    assert_int_equal(tenrec_worker_attach(w, STORE, CLUSTER_LONG_MS, &err), TENREC_EGROUP);
    assert_text_has(err.text, "did you mean 'default'");
    tenrec_worker_drop(w);
}

TEST(attach_refuses_a_backend_that_reaches_only_itself)
{
    struct tenrec_config *config = NULL;
    struct tenrec_worker *w = NULL;
    tenrec_error err;

    assert_status(
        tenrec_config_parse("backend: faulty\nbackends: { echo: { plugin: echo }, faulty: "
                            "{ plugin: faulty, wraps: echo } }\n",
                            "attach.yaml", &config, &err),
        &err);
    assert_status(tenrec_worker_new(config, &w, &err), &err);
    tenrec_config_drop(config);
    assert_int_equal(tenrec_worker_attach(w, STORE, CLUSTER_LONG_MS, &err), TENREC_EUNSUPPORTED);
    assert_text_has(err.text, "backend 'echo' reaches only this process");
    tenrec_worker_drop(w);
}

TEST(attach_names_the_error_of_the_store)
{
    static const struct {
        const char *store;
        tenrec_status status;
        const char *part;
    } bad[] = {
        { "file:///nowhere/store", TENREC_ENOTFOUND, "no store at \"/nowhere/store\"" },
        { "tcp://127.0.0.1:x", TENREC_EINVAL, "port \"x\"" },
        { "somewhere", TENREC_EINVAL, "expected env://, tcp://host:port" },
        { "memory://empty", TENREC_EGROUP, "has no group of workers" },
    };
    struct tenrec_worker *w = make_worker("default");
    tenrec_error err;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(tenrec_worker_attach(w, bad[i].store, CLUSTER_LONG_MS, &err),
                         bad[i].status);
        assert_text_has(err.text, bad[i].part);
    }
    assert_int_equal(tenrec_worker_attach(w, STORE, -5, &err), TENREC_EINVAL);
    tenrec_worker_drop(w);
}

TEST_MAIN(cluster_use(argv[1]), open_two, close_two)
