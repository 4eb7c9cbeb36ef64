/* SPDX-License-Identifier: Apache-2.0 */
/* member_test.c - a member of torch's group that is not chosen, cannot be, or is alone. */
#include "../testing.h"

#include "core/base/clock.h"
#include "group/store/store.h"

#include <tenrec/config.h>
#include <tenrec/rpc.h>
#include <tenrec/torch.h>

static tenrec_status make(const char *yaml, struct tenrec_torch_member **ret, tenrec_error *err)
{
    struct tenrec_config *config;
    tenrec_status st = tenrec_config_parse(yaml, "test", &config, err);

    if (st != TENREC_OK)
        return st;
    st = tenrec_torch_member_new(config, ret, err);
    tenrec_config_drop(config);
    return st;
}

static void refused(const char *yaml, tenrec_status code, const char *part)
{
    struct tenrec_torch_member *m;
    tenrec_error err;

    assert_int_equal(make(yaml, &m, &err), code);
    assert_text_has(err.text, part);
}

/* Joining fails. */
static void no_group(const char *yaml, tenrec_status code, const char *part)
{
    struct tenrec_torch_member *m;
    tenrec_error err;

    assert_status(make(yaml, &m, &err), &err);
    assert_int_equal(tenrec_torch_member_join(m, &err), code);
    assert_text_has(err.text, part);
    tenrec_torch_member_drop(m);
}

#define BACKEND "backend: tp\nbackends: {tp: {plugin: tensorpipe}}\n"
#define TORCH "group_protocol: torch, name: c0, rank: 0"

TEST(member_is_never_made_by_accident)
{
    refused(BACKEND "worker: {name: c0}\n", TENREC_ECONFIG, "worker.group_protocol is tenrec");
    refused("worker: {group_protocol: pytorch}\n", TENREC_ECONFIG, "pytorch");
}

TEST(member_is_refused_with_a_secret)
{
    refused(BACKEND "worker: {" TORCH "}\nsecurity: {mode: secret, secret: "
                    "'0123456789abcdef0123456789abcdef'}\n",
            TENREC_ECONFIG, "security");
}

TEST(member_is_refused_with_settings_that_torch_cannot_obey)
{
    refused(BACKEND "worker: {" TORCH ", group: other}\n", TENREC_ECONFIG,
            "torch's groups have no names");
    refused(BACKEND "worker: {" TORCH "}\nsecurity: {allow: [{function: '*', from: anyone}]}\n",
            TENREC_ECONFIG, "no rule can tell them apart");
}

TEST(worker_of_tenrec_is_refused_with_the_protocol_of_torch)
{
    struct tenrec_config *config;
    struct tenrec_worker *w;
    tenrec_error err;

    assert_status(tenrec_config_parse(BACKEND "worker: {" TORCH "}\n", "test", &config, &err),
                  &err);
    assert_status(tenrec_worker_new(config, &w, &err), &err);
    tenrec_config_drop(config);
    assert_int_equal(tenrec_init_rpc(w, &err), TENREC_ECONFIG);
    assert_text_has(err.text, "tenrec_torch_member_join");
    tenrec_worker_drop(w);
}

TEST(member_is_refused_in_a_group_that_it_cannot_join)
{
    no_group("init_method: memory://g1\n" BACKEND "worker: {" TORCH ", world_size: 2}\n",
             TENREC_EGROUP, "static");
    no_group("init_method: memory://g2\n" BACKEND
             "worker: {group_protocol: torch, name: a-b, rank: "
             "0}\n",
             TENREC_EINVAL, "first '-'");
}

TEST(member_alone_joins_serves_itself_and_leaves)
{
    struct tenrec_worker_info info[2];
    struct tenrec_torch_member *m;
    struct tenrec_value *v;
    tenrec_error err;
    size_t n;

    assert_status(make("init_method: memory://g3\n" BACKEND "worker: {" TORCH "}\n", &m, &err),
                  &err);
    assert_int_equal(tenrec_torch_member_get_infos(m, info, 2, &n, &err), TENREC_ESHUTDOWN);
    assert_status(tenrec_torch_member_join(m, &err), &err);
    assert_int_equal(tenrec_torch_member_join(m, &err), TENREC_EBUSY);
    assert_status(tenrec_torch_member_get_infos(m, info, 2, &n, &err), &err);
    assert_int_equal(n, 1);
    assert_string_equal(info[0].name, "c0");
    assert_int_equal(tenrec_torch_call(m, "c0", "no.function", NULL, 0, 5000, &v, &err),
                     TENREC_EREMOTE);
    assert_text_has(err.text, "has no function 'no.function'");
    assert_int_equal(tenrec_torch_member_wait(m, "w9", true, 20, &err), TENREC_ETIMEDOUT);
    assert_status(tenrec_torch_member_leave(m, 5000, &err), &err);
    assert_status(tenrec_torch_member_leave(m, 5000, &err), &err);
    assert_int_equal(tenrec_torch_call(m, "c0", "no.function", NULL, 0, 5000, &v, &err),
                     TENREC_ESHUTDOWN);
    tenrec_torch_member_drop(m);
}

static tenrec_status return_much(struct tenrec_torch_request *r, void *arg, tenrec_error *err)
{
    static const char much[20000];
    const struct tenrec_value v = tenrec_value_bytes(much, sizeof much);

    (void)arg;
    return tenrec_torch_request_return(r, &v, err);
}

TEST(member_tells_its_caller_when_an_answer_is_too_large)
{
    struct tenrec_torch_member *m;
    struct tenrec_value *v;
    tenrec_error err;

    assert_status(make("init_method: memory://g4\nbackend: tp\nbackends: {tp: {plugin: tensorpipe, "
                       "options: {max_message: 4KiB}}}\nworker: {" TORCH "}\n",
                       &m, &err),
                  &err);
    assert_status(tenrec_torch_member_register_function(m, "f.much", return_much, NULL, &err),
                  &err);
    assert_status(tenrec_torch_member_join(m, &err), &err);
    assert_int_equal(tenrec_torch_call(m, "c0", "f.much", NULL, 0, 60000, &v, &err),
                     TENREC_EREMOTE);
    assert_text_has(err.text, "takes 4096 at most (its max_message)");
    assert_status(tenrec_torch_member_leave(m, 5000, &err), &err);
    tenrec_torch_member_drop(m);
}

/* ---- static groups ----------------------------------------------------------------------- */

/* As torch's constructor does, of a worker of a static group. */
static struct tenrec_store *count_init(const char *url)
{
    struct tenrec_store *s;
    tenrec_error err;

    assert_status(tenrec_store_open(url, 5000, &s, &err), &err);
    assert_status(store_count_init(s, clock_deadline_ms(5000), &err), &err);
    return s;
}

TEST(member_writes_nothing_where_a_static_group_is_set_up)
{
    struct tenrec_store *s = count_init("memory://g5");
    int64_t n = 0;
    tenrec_error err;

    no_group("init_method: memory://g5\n" BACKEND "worker: {" TORCH "}\n", TENREC_EGROUP,
             "torch's workers set up a static group in this store");
    assert_status(tenrec_store_num_keys(s, 5000, &n, &err), &err);
    assert_int_equal(n, 1);
    /* It is no number any more. */
    assert_int_equal(store_count_init(s, clock_deadline_ms(5000), &err), TENREC_EINVAL);
    tenrec_store_close(s);
}

TEST(member_without_a_rank_ends_no_wait_of_a_static_group)
{
    struct tenrec_store *s = count_init("memory://g6");
    tenrec_error err;

    no_group("init_method: memory://g6\n" BACKEND "worker: {group_protocol: torch, name: c0}\n",
             TENREC_EGROUP, "static group");
    assert_status(store_count_init(s, clock_deadline_ms(5000), &err), &err);
    tenrec_store_close(s);
}

/* torch's process groups count there, too. */
TEST(member_joins_a_dynamic_group_beside_a_process_group)
{
    struct tenrec_store *s = count_init("memory://g7");
    struct tenrec_torch_member *m;
    tenrec_error err;

    assert_status(tenrec_store_set(s, "rpc_prefix_0/rpcIsStaticGroup", "false", 5, 5000, &err),
                  &err);
    assert_status(make("init_method: memory://g7\n" BACKEND "worker: {" TORCH "}\n", &m, &err),
                  &err);
    assert_status(tenrec_torch_member_join(m, &err), &err);
    tenrec_torch_member_drop(m);
    tenrec_store_close(s);
}

TEST(member_that_is_alone_notices_a_static_group)
{
    struct tenrec_torch_member *m;
    struct tenrec_value *v;
    struct tenrec_store *s;
    tenrec_error err;

    assert_status(make("init_method: memory://g8\n" BACKEND "worker: {" TORCH "}\n", &m, &err),
                  &err);
    assert_status(tenrec_torch_member_join(m, &err), &err);
    s = count_init("memory://g8");
    assert_int_equal(tenrec_torch_member_wait(m, "w9", true, 60000, &err), TENREC_EGROUP);
    assert_text_has(err.text, "static group");
    assert_int_equal(tenrec_torch_call(m, "c0", "no.function", NULL, 0, 5000, &v, &err),
                     TENREC_EGROUP);
    tenrec_torch_member_drop(m);
    tenrec_store_close(s);
}

/* ---- schemas and names ------------------------------------------------------------------- */

static void call_refused(const char *function, size_t n, const char *part)
{
    const struct tenrec_value args[3] = { { .type = TENREC_VALUE_NIL } };
    struct tenrec_torch_member *m;
    struct tenrec_value *v;
    tenrec_error err;

    assert_status(make("init_method: memory://g4\n" BACKEND "worker: {" TORCH "}\n", &m, &err),
                  &err);
    assert_status(tenrec_torch_member_join(m, &err), &err);
    assert_int_equal(tenrec_torch_call(m, "c0", function, args, n, 5000, &v, &err), TENREC_EINVAL);
    assert_text_has(err.text, part);
    tenrec_torch_member_drop(m);
}

TEST(call_checks_the_number_of_an_operators_arguments)
{
    call_refused("aten::x(Tensor(a!) self, *, int[2] k=[1, 2], bool b=False) -> (Tensor, int)", 2,
                 "takes 3 arguments, defaults included, got 2");
    call_refused("aten::x() -> Tensor", 1, "takes 0 arguments");
    call_refused("aten::x(Tensor self", 1, "is no schema");
    call_refused("prim::x(Tensor self) -> Tensor", 1, "is no schema");
}

TEST(call_checks_the_name_of_a_function)
{
    call_refused("function", 0, "is no \"module.name\"");
    call_refused("module.", 0, "is no \"module.name\"");
    call_refused(".name", 0, "is no \"module.name\"");
    call_refused("os\nsystem.x", 0, "is no \"module.name\"");
}
