/* SPDX-License-Identifier: Apache-2.0 */
/* torch_keys_test.c - what a worker of torch.distributed.rpc would find in the store of a
 * dynamic group, while members come, go and die. */
#include "../support/test_store.h"

#include "core/base/clock.h"
#include "group/membership/group_directory.h"

#define LEASE_MS 60000 /* longer than any test may wait */
#define LIST "names/_ALL_WORKER_INFOS"

static struct tenrec_store *store, *torch;
static tenrec_error err;

static void begin(void)
{
    static int count;
    char url[32];

    snprintf(url, sizeof url, "memory://torch%d", count++);
    assert_status(tenrec_store_open(url, TEST_MS, &store, &err), &err);
    assert_status(tenrec_store_open_prefix(store, "rpc_prefix_0", &torch, &err), &err);
}

static void end(void)
{
    tenrec_store_close(torch);
    tenrec_store_close(store);
}

static uint64_t soon(void)
{
    return clock_deadline_ms(TEST_MS);
}

static struct membership_list member_of(const char *group, const char *run, tenrec_peer id,
                                        const char *name)
{
    struct membership_list r;
    struct membership_view v;
    char address[64];

    snprintf(address, sizeof address, "uv://%s:1", name);
    assert_status(membership_list_open(store, group, run, LEASE_MS, &r, &err), &err);
    assert_status(membership_list_reserve(&r, id, name, soon(), &err), &err);
    assert_status(membership_list_join(&r, address, NULL, soon(), &v, &err), &err);
    membership_view_finish(&v);
    return r;
}

static struct membership_list member(tenrec_peer id, const char *name)
{
    return member_of("default", "", id, name);
}

static void leave(struct membership_list *r)
{
    struct membership_view v;

    assert_status(membership_list_leave(r, soon(), &v, &err), &err);
    membership_view_finish(&v);
    membership_list_close(r);
}

static void torch_sets(const char *key, const char *value)
{
    assert_status(tenrec_store_set(torch, key, value, strlen(value), TEST_MS, &err), &err);
}

/* NULL: there is none. */
static void assert_key(struct tenrec_store *s, const char *key, const char *expected)
{
    struct store_value now;

    assert_status(store_read(s, key, soon(), &now, &err), &err);
    assert_int_equal(now.data != NULL, expected != NULL);
    if (expected)
        assert_string_equal(now.data, expected);
    free(now.data);
}

TEST_WITH(torch_keys_are_the_keys_of_the_members, begin, end)
{
    struct membership_list a = member(1, "a"), b = member(0, "b");

    assert_key(torch, "rpcIsStaticGroup", "false");
    assert_key(torch, LIST, "b-0,a-1,");
    assert_key(torch, "names/0", "b");
    assert_key(torch, "names/1", "a");
    assert_key(torch, "addrs/b", "uv://b:1");
    assert_key(torch, "addrs/a", "uv://a:1");
    leave(&b);
    assert_key(torch, LIST, "a-1,");
    assert_key(torch, "names/0", NULL);
    assert_key(torch, "addrs/b", NULL);
    leave(&a);
    assert_key(torch, LIST, "");
    assert_key(torch, "names/1", NULL);
    assert_key(torch, "addrs/a", NULL);
}

/* It would take "b-1-1" for a worker "b", and fail at "c-d-2". */
TEST_WITH(torch_keys_list_no_name_that_torch_would_misread, begin, end)
{
    struct membership_list a = member(0, "a"), b = member(1, "b-1"), c = member(2, "c-d");

    assert_key(torch, LIST, "a-0,");
    assert_key(torch, "names/1", "b-1");
    assert_key(torch, "addrs/c-d", "uv://c-d:1");
    leave(&b);
    assert_key(torch, LIST, "a-0,");
    assert_key(torch, "names/1", NULL);
    leave(&a);
    leave(&c);
    assert_key(torch, "addrs/c-d", NULL);
}

TEST_WITH(torch_keys_of_other_groups_stand_in_their_part, begin, end)
{
    struct membership_list a = member_of("other", "", 0, "a"),
                           b = member_of("default", "run1", 0, "b");
    struct tenrec_store *part;

    assert_key(torch, LIST, NULL);
    assert_status(tenrec_store_open_prefix(store, "tenrec/other/rpc_prefix_0", &part, &err), &err);
    assert_key(part, LIST, "a-0,");
    tenrec_store_close(part);
    assert_status(tenrec_store_open_prefix(store, "tenrec/default/run1/rpc_prefix_0", &part, &err),
                  &err);
    assert_key(part, LIST, "b-0,");
    tenrec_store_close(part);
    leave(&a);
    leave(&b);
}

TEST_WITH(torch_keys_of_a_member_that_was_found_dead_are_gone, begin, end)
{
    struct membership_list a = member(0, "a"), b = member(1, "b");
    struct membership_view v;

    assert_status(membership_list_remove(&a, &(struct membership_life){ 1, b.incarnation }, 1, true,
                                         soon(), &v, &err),
                  &err);
    membership_view_finish(&v);
    assert_key(torch, LIST, "a-0,");
    assert_key(torch, "addrs/b", NULL);
    membership_list_close(&b);
    b = member(1, "b2");
    assert_key(torch, LIST, "a-0,b2-1,");
    assert_key(torch, "names/1", "b2");
    leave(&b);
    leave(&a);
}

/* As if its process did not run any more. */
static void kill_record(struct membership_list *r)
{
    struct member m = { .rank = r->id, .incarnation = r->incarnation, .address = (char[]){ "x" } };
    struct member_place here;
    struct store_value bytes;
    char key[40];

    m.name = r->name;
    snprintf(key, sizeof key, "member/%lld", (long long)r->incarnation);
    member_describe_process(&m, &here);
    m.start++;
    member_pack(&m, &bytes);
    assert_status(tenrec_store_set(r->store, key, bytes.data, bytes.len, TEST_MS, &err), &err);
    free(bytes.data);
}

TEST_WITH(torch_keys_are_the_keys_of_the_replacement_of_a_dead_member, begin, end)
{
    struct membership_list dead = member(0, "a"), also = member(1, "b"), c;

    kill_record(&dead);
    kill_record(&also);
    c = member(0, "b"); /* the id of the one and the name of the other */
    assert_key(torch, LIST, "b-0,");
    assert_key(torch, "names/0", "b");
    assert_key(torch, "names/1", NULL);
    assert_key(torch, "addrs/a", NULL);
    assert_key(torch, "addrs/b", "uv://b:1");
    leave(&c);
    membership_list_close(&dead);
    membership_list_close(&also);
}

TEST_WITH(torch_keys_of_torch_workers_stay, begin, end)
{
    struct membership_list a, b;

    a = member(0, "a");
    torch_sets(LIST, "a-0,t-one-7,t2-8,");
    b = member(1, "b");
    assert_key(torch, LIST, "a-0,b-1,t-one-7,t2-8,");
    leave(&a);
    assert_key(torch, LIST, "b-1,t-one-7,t2-8,");
    leave(&b);
    assert_key(torch, LIST, "t-one-7,t2-8,");
}

/* Their liveness is unknown, so they keep no Tenrec member out. */
TEST_WITH(torch_keys_of_torch_workers_give_way_to_members, begin, end)
{
    struct membership_list a, b = member(9, "b");

    torch_sets(LIST, "b-9,t-0,a-5,u-6,");
    torch_sets("names/0", "t");
    a = member(0, "a");
    assert_key(torch, LIST, "a-0,b-9,u-6,");
    assert_key(torch, "names/0", "a");
    leave(&a);
    leave(&b);
}

/* The keys of two workers that started with init_rpc. */
static void torch_group_lives(void)
{
    torch_sets("rpcIsStaticGroup", "false");
    torch_sets("RpcGroupManagementToken", "");
    torch_sets("Token_for_w1_join", "Done");
    torch_sets(LIST, "w0-0,w-one-1,");
    torch_sets("names/0", "w0");
    torch_sets("names/1", "w-one");
    torch_sets("addrs/w0", "uv://w0:1");
    torch_sets("addrs/w-one", "uv://w-one:1");
}

static void torch_group_is_as_it_was(int64_t n_keys)
{
    int64_t n;

    assert_status(tenrec_store_num_keys(store, TEST_MS, &n, &err), &err);
    assert_int_equal(n, n_keys);
    assert_key(torch, "rpcIsStaticGroup", "false");
    assert_key(torch, "RpcGroupManagementToken", "");
    assert_key(torch, LIST, "w0-0,w-one-1,");
    assert_key(torch, "names/0", "w0");
    assert_key(torch, "addrs/w0", "uv://w0:1");
}

TEST_WITH(torch_group_keeps_dynamic_tenrec_workers_out_and_is_not_touched, begin, end)
{
    static const struct {
        tenrec_peer wished;
        const char *name;
    } tries[] = { { -1, "worker{rank}" }, { 0, "worker0" }, { 1, "w0" }, { 7, "worker7" } };
    struct membership_list r;
    int64_t n;

    torch_group_lives();
    assert_status(tenrec_store_num_keys(store, TEST_MS, &n, &err), &err);
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        assert_status(membership_list_open(store, "default", "", TEST_MS, &r, &err), &err);
        assert_int_equal(membership_list_reserve(&r, tries[i].wished, tries[i].name, soon(), &err),
                         TENREC_EGROUP);
        assert_text_has(err.text, "torch.distributed.rpc");
        assert_text_has(err.text, "\"w0\", id 0");
        assert_text_has(err.text, "worker.group");
        torch_group_is_as_it_was(n);
        membership_list_close(&r);
    }
}

TEST_WITH(torch_group_keeps_static_tenrec_workers_out_and_is_not_touched, begin, end)
{
    int64_t n;

    torch_group_lives();
    assert_status(tenrec_store_num_keys(store, TEST_MS, &n, &err), &err);
    assert_int_equal(group_kind_claim_static(store, "default", "", soon(), &err), TENREC_EGROUP);
    assert_text_has(err.text, "torch.distributed.rpc");
    torch_group_is_as_it_was(n);
}

TEST_WITH(torch_group_does_not_keep_other_groups_out, begin, end)
{
    struct membership_list a;

    torch_group_lives();
    a = member_of("other", "", 0, "a");
    leave(&a);
    assert_status(group_kind_claim_static(store, "third", "", soon(), &err), &err);
    assert_key(torch, "rpcIsStaticGroup", "false");
    assert_key(torch, LIST, "w0-0,w-one-1,");
}

TEST_WITH(torch_keys_are_mended_by_the_next_change, begin, end)
{
    struct membership_list a = member(0, "a"), b;

    assert_status(tenrec_store_delete(torch, LIST, TEST_MS, NULL, &err), &err);
    b = member(1, "b");
    assert_key(torch, LIST, "a-0,b-1,");
    torch_sets(LIST, "no sense,-,-3,b-1");
    leave(&a);
    assert_key(torch, LIST, "b-1,no sense,-,-3,");
    torch_sets(LIST, "");
    a = member(0, "a");
    assert_key(torch, LIST, "a-0,b-1,");
    leave(&a);
    leave(&b);
}
