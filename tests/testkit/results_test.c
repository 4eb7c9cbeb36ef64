/* SPDX-License-Identifier: Apache-2.0 */
/* results_test.c - what a public function that fails leaves in its results: NULL, 0 or false
 * (error.h). tests/checks/results.py compares the functions here with the headers. */
#include "../support/cluster.h"
#include "../support/functions.h"
#include "../support/tensors.h"
#include "../testing.h"

#include <dlpack/dlpack.h>
#include <sys/resource.h>
#include <tenrec/chain.h>
#include <tenrec/link.h>
#include <tenrec/observe.h>
#include <tenrec/profiler.h>
#include <tenrec/region.h>
#include <tenrec/store.h>
#include <tenrec/testkit.h>
#include <tenrec/torch.h>
#include <tenrec/trace.h>
#include <tenrec/weights.h>

/* The call fails, and leaves zeroes where there was something before. */
#define FAILS(result, call)                                                                        \
    do {                                                                                           \
        memset(&(result), 0xa5, sizeof(result));                                                   \
        assert_true((call) != TENREC_OK);                                                          \
        assert_true(is_zero(&(result), sizeof(result)));                                           \
    } while (0)

static bool is_zero(const void *data, size_t n)
{
    const unsigned char *byte = data;

    while (n > 0 && byte[n - 1] == 0)
        n--;
    return n == 0;
}

/* ---- memory that fails -------------------------------------------------------------------- */

static bool memory_fails;

void *__real_memory_new(size_t n, size_t size);
void *__wrap_memory_new(size_t n, size_t size);
void *__wrap_memory_new(size_t n, size_t size)
{
    return memory_fails ? NULL : __real_memory_new(n, size);
}

#define FAILS_WITHOUT_MEMORY(result, call)                                                         \
    do {                                                                                           \
        memory_fails = true;                                                                       \
        FAILS(result, call);                                                                       \
        memory_fails = false;                                                                      \
    } while (0)

/* ---- cases -------------------------------------------------------------------------------- */

static const struct tenrec_device cuda = { TENREC_CUDA, 7 };
static const int64_t shape[] = { 2, -1 };
static const struct tenrec_call_options bad = { .size = sizeof bad, .timeout_ms = -1 };
static tenrec_error err;

TEST(results_of_configurations_are_null_after_an_error)
{
    struct tenrec_config *c;

    FAILS(c, tenrec_config_load("/nonexistent", &c, &err));
    FAILS(c, tenrec_config_parse("{", "text", &c, &err));
}

TEST(results_of_backends_are_null_after_an_error)
{
    struct tenrec_chain_options *o;
    struct tenrec_store *s;
    struct tenrec_chain *c;

    FAILS(o, tenrec_chain_options_new(NULL, &o, &err));
    FAILS(s, tenrec_store_open_with(NULL, "memory://", 1, &s, &err));
    FAILS(c, tenrec_chain_new(NULL, NULL, NULL, 1, &c, &err));
}

TEST(results_of_devices_are_zero_after_an_error)
{
    struct tenrec_tensor_desc desc = { .ndim = TENREC_MAX_DIMS + 1 };
    struct tenrec_stream stream;
    struct tenrec_tensor *t, *host = NULL;

    FAILS(stream, tenrec_stream_get(cuda, &stream, &err));
    FAILS(t, tensors_new_on(cuda, TENREC_FLOAT32, 1, shape, &t, &err));
    FAILS(t, tenrec_tensor_from_desc(&desc, NULL, NULL, &t, &err));
    assert_int_equal(tenrec_tensor_new(TENREC_FLOAT32, 1, shape, &host, &err), TENREC_OK);
    FAILS(t, tenrec_tensor_to(host, cuda, &t, &err));
    tenrec_tensor_drop(host);
}

TEST(results_of_tensors_are_null_after_an_error)
{
    const struct tenrec_tensor_options unknown = { .size = sizeof unknown, .flags = 0xff };
    DLManagedTensor *exported, foreign = { .dl_tensor = { .ndim = -1 } };
    const float *data;
    size_t n;
    struct tenrec_tensor *t, *host = NULL;

    FAILS(t, tenrec_tensor_new(TENREC_FLOAT32, 2, shape, &t, &err));
    FAILS(t, tenrec_tensor_new_with(TENREC_FLOAT32, 1, shape, &unknown, &t, &err));
    FAILS(t, tensors_view(NULL, 8, TENREC_FLOAT32, 1, shape, NULL, &t, &err));
    FAILS(t, tenrec_tensor_from_dlpack(&foreign, &t, &err));
    assert_int_equal(tenrec_tensor_new(TENREC_FLOAT32, 1, shape, &host, &err), TENREC_OK);
    FAILS(data, tenrec_tensor_expect(host, TENREC_INT32, -1, &data, NULL, &err));
    FAILS(n, tenrec_tensor_expect(host, TENREC_INT32, -1, NULL, &n, &err));
    FAILS_WITHOUT_MEMORY(exported, tenrec_tensor_to_dlpack(host, &exported, &err));
    tenrec_tensor_drop(host);
}

static void keep(void *arg, void *data)
{
    (void)arg, (void)data;
}

/* Memory of a device is not copied here. */
TEST(results_of_copies_are_null_after_an_error)
{
    static float data[4];
    struct tenrec_tensor_desc desc = { .dtype = TENREC_FLOAT32,
                                       .device = cuda,
                                       .data = data,
                                       .bytes = sizeof data,
                                       .ndim = 1,
                                       .shape = { 2 },
                                       .strides = { 2 } };
    struct tenrec_tensor *t, *far = NULL;

    assert_status(tenrec_tensor_from_desc(&desc, keep, NULL, &far, &err), &err);
    FAILS(t, tenrec_tensor_copy(far, &t, &err));
    FAILS(t, tenrec_tensor_contiguous(far, &t, &err));
    tenrec_tensor_drop(far);
}

TEST(results_of_futures_are_null_after_an_error)
{
    struct tenrec_future *f = NULL, *g;
    size_t at;

    FAILS_WITHOUT_MEMORY(g, tenrec_future_new(&g, &err));
    FAILS(g, tenrec_future_new_on(&(struct tenrec_device){ TENREC_CPU, 0 }, 1, &g, &err));
    assert_int_equal(tenrec_future_new(&f, &err), TENREC_OK);
    FAILS(g, tenrec_future_then(f, NULL, NULL, &g, &err));
    FAILS(at, tenrec_future_wait_any(&f, 1, 1, &at, &err));
    tenrec_future_drop(f);
}

TEST(results_of_values_are_null_after_an_error)
{
    const struct tenrec_value none = tenrec_value_nil(), odd = { .type = 99 };
    const struct tenrec_object_type type = { .size = sizeof type, .name = "thing" },
                                    no_type = { 0 };
    struct tenrec_object *o;
    struct tenrec_value *v;
    void *data;

    FAILS(v, tenrec_value_copy(&odd, &v, &err));
    FAILS(o, tenrec_object_new(&no_type, NULL, &o, &err));
    FAILS(data, tenrec_object_get(&none, &type, &data, &err));
}

TEST(results_of_traces_are_zero_after_an_error)
{
    struct tenrec_trace_scope scope;

    FAILS(scope, tenrec_trace_enter("no trace", &scope, &err));
}

TEST(results_of_stores_are_zero_after_an_error)
{
    struct tenrec_store_server *server = NULL, *second;
    struct tenrec_process_group *pg;
    struct tenrec_store *s = NULL, *other;
    int64_t number;
    uint16_t port = 0, second_port;
    size_t len;
    void *data;
    bool is;

    FAILS(s, tenrec_store_open("nothing://", 1, &s, &err));
    assert_status(tenrec_store_server_new("127.0.0.1", 0, &server, &port, &err), &err);
    FAILS(second, tenrec_store_server_new("127.0.0.1", port, &second, &second_port, &err));
    FAILS(second_port, tenrec_store_server_new("127.0.0.1", port, &second, &second_port, &err));
    assert_status(tenrec_store_open("memory://results", 1000, &s, &err), &err);
    FAILS(other, tenrec_store_open_prefix(s, "", &other, &err));
    FAILS(data, tenrec_store_get(s, "absent", -1, &data, &len, &err));
    FAILS(len, tenrec_store_get(s, "absent", -1, &data, &len, &err));
    FAILS(number, tenrec_store_add(s, "n", 1, -1, &number, &err));
    FAILS(data, tenrec_store_compare_set(s, "k", "", 0, "v", 1, -1, &data, &len, &err));
    FAILS(len, tenrec_store_compare_set(s, "k", "", 0, "v", 1, -1, &data, &len, &err));
    FAILS(is, tenrec_store_check(s, (const char *const[]){ "k" }, 1, -1, &is, &err));
    FAILS(is, tenrec_store_delete(s, "k", -1, &is, &err));
    FAILS(number, tenrec_store_num_keys(s, -1, &number, &err));
    FAILS(pg, tenrec_process_group_new(s, 3, 2, "pg", &pg, &err));
    tenrec_store_close(s);
    tenrec_store_server_drop(server);
}

TEST(results_of_regions_are_null_after_an_error)
{
    struct tenrec_config *config = cluster_config();
    struct tenrec_future *f, *visible, *is_free;
    const struct tenrec_bulk_options o = { .size = sizeof o,
                                           .ret_visible = &visible,
                                           .ret_free = &is_free };
    struct tenrec_worker *w;
    struct tenrec_region *r;

    assert_status(tenrec_worker_new(config, &w, &err), &err);
    FAILS(r, tenrec_region_new(w, NULL, TENREC_REGION_READ, &r, &err));
    FAILS(f, tenrec_bulk_async(w, NULL, 0, NULL, &f, &err));
    FAILS(visible, tenrec_bulk_async(w, NULL, 1, &o, &f, &err));
    FAILS(is_free, tenrec_bulk_async(w, NULL, 1, &o, &f, &err));
    tenrec_worker_drop(w);
    tenrec_config_drop(config);
}

TEST(results_of_links_are_null_after_an_error)
{
    struct tenrec_config *config = cluster_config();
    unsigned char record[TENREC_LINK_RECORD_MAX];
    struct tenrec_worker *w;
    struct tenrec_link *l;
    size_t len;

    assert_status(tenrec_worker_new(config, &w, &err), &err);
    FAILS(len, tenrec_link_bind(w, 0, record, &len, &err));
    FAILS(l, tenrec_link_connect(w, record, 0, &l, &err));
    tenrec_worker_drop(w);
    tenrec_config_drop(config);
}

TEST(results_of_weights_are_null_after_an_error)
{
    struct tenrec_config *config = cluster_config();
    struct tenrec_weights *s, *none;
    struct tenrec_value *v;
    struct tenrec_worker *w;
    int64_t version;

    assert_status(tenrec_worker_new(config, &w, &err), &err);
    FAILS(none, tenrec_weights_open(w, "", "keeper", &none, &err));
    assert_status(tenrec_weights_open(w, "set", "keeper", &s, &err), &err);
    FAILS(version, tenrec_weights_pull(s, 1, NULL, 0, NULL, &version, &err));
    FAILS(v, tenrec_weights_wait(s, 1, 0, 1, &v, &err));
    tenrec_weights_close(s);
    tenrec_worker_drop(w);
    tenrec_config_drop(config);
}

TEST(results_of_a_worker_that_does_not_run_are_zero)
{
    struct tenrec_config *config = cluster_config();
    struct tenrec_worker *w = NULL, *none;
    struct tenrec_worker_info info;
    struct tenrec_device device;
    struct tenrec_group_view *view;
    struct tenrec_call *call;
    struct tenrec_profiler *profiler;
    struct tenrec_future *f;
    struct tenrec_value *v;
    struct tenrec_rref *r;
    size_t n;

    FAILS_WITHOUT_MEMORY(none, tenrec_worker_new(config, &none, &err));
    assert_status(tenrec_worker_new(config, &w, &err), &err);
    FAILS(info, tenrec_get_worker_info(w, NULL, &info, &err));
    FAILS(info, tenrec_worker_get_info_by_id(w, 0, &info, &err));
    FAILS(n, tenrec_worker_get_infos(w, &info, 1, &n, &err));
    FAILS(n, tenrec_worker_get_devices(w, &device, 1, &n, &err));
    FAILS(v, tenrec_rpc_sync(w, "a", "f", NULL, 0, NULL, &v, &err));
    FAILS(f, tenrec_rpc_async(w, "a", "f", NULL, 0, NULL, &f, &err));
    FAILS(r, tenrec_remote(w, "a", "f", NULL, 0, NULL, &r, &err));
    FAILS(r, tenrec_rref_new(w, NULL, &r, &err));
    FAILS(v, tenrec_worker_all_gather(w, NULL, NULL, 0, 1, &v, &err));
    FAILS(v, tenrec_worker_inspect(w, "a", TENREC_INSPECT_DEBUG_INFO, NULL, &v, &err));
    FAILS(v, tenrec_worker_inspect(w, "a", TENREC_INSPECT_METRICS, NULL, &v, &err));
    FAILS(v, tenrec_worker_inspect(w, "a", TENREC_INSPECT_DUMP, NULL, &v, &err));
    FAILS(call, tenrec_worker_receive(w, "none", 1, &call, &err));
    FAILS(view, tenrec_group_view_get(w, &view, &err));
    FAILS(profiler, tenrec_profiler_start(NULL, NULL, &profiler, &err));
    tenrec_worker_drop(w);
    tenrec_config_drop(config);
}

/* Without a descriptor left. */
TEST(result_for_an_event_loop_is_no_descriptor_after_an_error)
{
    struct tenrec_config *config = cluster_config();
    struct tenrec_worker *w = NULL;
    struct rlimit before, none;
    tenrec_status st;
    int fd = 99;

    assert_status(tenrec_worker_new(config, &w, &err), &err);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){ 0, before.rlim_max };
    setrlimit(RLIMIT_NOFILE, &none);
    st = tenrec_worker_get_fd(w, &fd, &err);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(st, TENREC_EOS);
    assert_int_equal(fd, -1);
    tenrec_worker_drop(w);
    tenrec_config_drop(config);
}

TEST(results_of_references_are_null_after_an_error)
{
    const struct tenrec_value *here;
    struct tenrec_rref *r = NULL, *own = NULL, *other;
    struct tenrec_future *f;
    struct tenrec_value *v;
    struct cluster c;

    cluster_open(&c, 2, NULL, functions_register);
    assert_status(tenrec_rref_new(c.worker[0], NULL, &own, &err), &err);
    assert_status(tenrec_remote(c.worker[0], "worker1", "noop", NULL, 0, NULL, &r, &err), &err);
    FAILS(f, tenrec_rref_future(own, &f, &err));
    FAILS(v, tenrec_rref_to_here(r, &bad, &v, &err));
    FAILS(f, tenrec_rref_to_here_async(r, &bad, &f, &err));
    FAILS(here, tenrec_rref_local_value(r, 1, &here, &err));
    FAILS(v, tenrec_rref_rpc_sync(r, "none", NULL, 0, &bad, &v, &err));
    FAILS(f, tenrec_rref_rpc_async(r, "none", NULL, 0, &bad, &f, &err));
    FAILS(other, tenrec_rref_remote(r, "none", NULL, 0, &bad, &other, &err));
    tenrec_rref_drop(own);
    tenrec_rref_drop(r);
    cluster_close(&c, TENREC_GRACEFUL);
}

TEST(results_of_a_member_of_torch_are_null_after_an_error)
{
    struct tenrec_config *config = NULL;
    struct tenrec_torch_member *m = NULL, *none;
    struct tenrec_worker_info info;
    struct tenrec_future *f;
    struct tenrec_value *v;
    struct tenrec_rref *r;
    size_t n;

    assert_status(tenrec_config_parse("worker: {group_protocol: torch, name: c0, rank: 0}\n", NULL,
                                      &config, &err),
                  &err);
    assert_status(tenrec_config_set(config, "security.mode", "none", &err), &err);
    FAILS_WITHOUT_MEMORY(none, tenrec_torch_member_new(config, &none, &err));
    assert_status(tenrec_torch_member_new(config, &m, &err), &err);
    FAILS(n, tenrec_torch_member_get_infos(m, &info, 1, &n, &err));
    FAILS(v, tenrec_torch_call(m, "a", "f", NULL, 0, 1, &v, &err));
    FAILS(f, tenrec_torch_call_async(m, "a", "f", NULL, 0, 1, &f, &err));
    FAILS(r, tenrec_torch_remote(m, "a", "f", NULL, 0, 1, &r, &err));
    FAILS(r, tenrec_torch_rref_new(m, NULL, &r, &err));
    FAILS(v, tenrec_torch_rref_to_here(m, NULL, 1, &v, &err));
    FAILS(f, tenrec_torch_rref_to_here_async(m, NULL, 1, &f, &err));
    tenrec_torch_member_drop(m);
    tenrec_config_drop(config);
}

static tenrec_status make_no_config(const struct tenrec_test *t, tenrec_error *why)
{
    struct tenrec_config *config;

    (void)why;
    FAILS_WITHOUT_MEMORY(config, tenrec_test_make_config(t, &config, &err));
    return TENREC_OK;
}

TEST(results_of_the_test_kit_are_null_after_an_error)
{
    struct tenrec_test_options o = { .size = sizeof o,
                                     .mode = TENREC_TEST_THREADS,
                                     .flags = TENREC_TEST_NO_RPC,
                                     .world_size = 1,
                                     .body = make_no_config };
    struct tenrec_config *config = cluster_config();
    struct tenrec_profiler *profiler = NULL;
    const struct tenrec_event *event;
    struct tenrec_process_group *pg;
    struct tenrec_test_group *group;
    struct tenrec_worker *w = NULL;
    int64_t owners, forks;

    FAILS(group, tenrec_test_group_open(&o, &group, &err));
    assert_status(tenrec_test_dist_init(&o, &err), &err);
    FAILS(pg, tenrec_test_initialize_pg("nothing://", 0, 1, &pg, &err));
    assert_status(tenrec_worker_new(config, &w, &err), &err);
    FAILS(owners, tenrec_test_get_num_owners_and_forks(w, 0, &owners, &forks, &err));
    FAILS(forks, tenrec_test_get_num_owners_and_forks(w, 0, &owners, &forks, &err));
    assert_status(tenrec_profiler_start(w, NULL, &profiler, &err), &err);
    FAILS(event, tenrec_test_get_function_event(profiler, "none", &event, &err));
    tenrec_profiler_drop(profiler);
    tenrec_worker_drop(w);
    tenrec_config_drop(config);
}
