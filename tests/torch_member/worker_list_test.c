/* SPDX-License-Identifier: Apache-2.0 */
/* worker_list_test.c - torch's keys of a group, as its own workers read and write them. */
#include "../testing.h"

#include "core/base/clock.h"
#include "group/store/store.h"
#include "torch/member/worker_list.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#define LIST "names/_ALL_WORKER_INFOS"
#define TOKEN "RpcGroupManagementToken"

static struct tenrec_store *keys;

static uint64_t soon(void)
{
    return clock_deadline_ms(5000);
}

static void set_up(void)
{
    tenrec_error err;

    assert_status(store_memory_open("worker_list", &keys, &err), &err);
}

static void tear_down(void)
{
    tenrec_store_close(keys);
}

static void put(const char *key, const char *value)
{
    tenrec_error err;

    assert_status(store_set(keys, key, value, strlen(value), soon(), &err), &err);
}

/* `value` is NULL: no such key. */
static void has(const char *key, const char *value)
{
    struct store_value is;
    tenrec_error err;

    assert_status(store_read(keys, key, soon(), &is, &err), &err);
    if (value)
        assert_string_equal(is.data ? (const char *)is.data : "(none)", value);
    else
        assert_null(is.data);
    free(is.data);
}

static void adds(const char *name, tenrec_peer id)
{
    struct worker_list r;
    tenrec_error err;

    assert_status(worker_list_read(keys, soon(), &r, &err), &err);
    assert_status(worker_list_add(keys, &r, name, id, "uv://127.0.0.1:1", soon(), &err), &err);
    worker_list_finish(&r);
}

TEST_WITH(worker_list_writes_the_keys_of_torch, set_up, tear_down)
{
    tenrec_error err;

    put(LIST, "w0-0,");
    adds("c0", 7);
    has(LIST, "w0-0,c0-7,");
    has("names/7", "c0");
    has("addrs/c0", "uv://127.0.0.1:1");
    assert_status(worker_list_remove(keys, "c0", 7, soon(), &err), &err);
    has(LIST, "w0-0,");
    has("names/7", NULL);
    has("addrs/c0", NULL);
}

TEST_WITH(worker_list_reads_the_workers_with_their_addresses, set_up, tear_down)
{
    struct worker_list r;
    tenrec_error err;

    put(LIST, "w0-0,broken,-1,w2-2,");
    put("addrs/w0", "uv://127.0.0.1:5");
    assert_status(worker_list_read(keys, soon(), &r, &err), &err);
    assert_int_equal(r.n, 2);
    assert_string_equal(worker_list_find(&r, "w0")->address, "uv://127.0.0.1:5");
    assert_null(worker_list_find(&r, "w2")->address);
    assert_null(worker_list_find(&r, "w1"));
    worker_list_finish(&r);
}

TEST_WITH(worker_list_gives_an_address_only_to_the_listed_id, set_up, tear_down)
{
    tenrec_error err;
    char *address;

    put(LIST, "w0-0,");
    put("addrs/w0", "uv://127.0.0.1:5");
    put("addrs/w1", "uv://127.0.0.1:6");
    assert_status(worker_list_address(keys, "w0", 0, soon(), &address, &err), &err);
    assert_string_equal(address, "uv://127.0.0.1:5");
    free(address);
    assert_status(worker_list_address(keys, "w0", 1, soon(), &address, &err), &err);
    assert_null(address);
    assert_status(worker_list_address(keys, "w1", 1, soon(), &address, &err), &err);
    assert_null(address);
}

TEST_WITH(worker_list_chooses_the_lowest_free_id, set_up, tear_down)
{
    struct worker_list r;
    tenrec_peer id;
    tenrec_error err;

    put(LIST, "w0-0,w1-1,w3-3,");
    assert_status(worker_list_read(keys, soon(), &r, &err), &err);
    assert_status(worker_list_choose(&r, -1, "c0", &id, &err), &err);
    assert_int_equal(id, 2);
    assert_status(worker_list_choose(&r, 9, "c0", &id, &err), &err);
    assert_int_equal(id, 9);
    assert_int_equal(worker_list_choose(&r, 3, "c0", &id, &err), TENREC_EGROUP);
    assert_text_has(err.text, "'w3' has the id 3");
    assert_int_equal(worker_list_choose(&r, -1, "w1", &id, &err), TENREC_EGROUP);
    assert_text_has(err.text, "has a worker called 'w1'");
    worker_list_finish(&r);
}

TEST_WITH(token_excludes_other_workers, set_up, tear_down)
{
    tenrec_error err;

    assert_status(worker_list_lock(keys, "c0", true, soon(), &err), &err);
    has(TOKEN, "Token_for_c0_join");
    assert_int_equal(worker_list_lock(keys, "c1", true, clock_deadline_ms(20), &err),
                     TENREC_ETIMEDOUT);
    assert_text_has(err.text, "'Token_for_c0_join' has it");
    worker_list_unlock(keys, "c0", true, soon());
    has(TOKEN, "");
    has("Token_for_c0_join", "Done");
    assert_status(worker_list_lock(keys, "c1", false, soon(), &err), &err);
    has(TOKEN, "Token_for_c1_leave");
}

/* A socket at a free port, which refuses connections until it listens. */
static int at_port(char address[64])
{
    struct sockaddr_in to = { .sin_family = AF_INET };
    socklen_t len = sizeof to;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)(void *)&to, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)(void *)&to, &len), 0);
    snprintf(address, 64, "uv://127.0.0.1:%d", ntohs(to.sin_port));
    return fd;
}

TEST_WITH(token_of_a_dead_worker_is_taken_over, set_up, tear_down)
{
    const uint64_t deadline_ns = clock_deadline_ms(20000);
    char address[64];
    const int fd = at_port(address);
    tenrec_error err;

    put(LIST, "w1-1,");
    put("addrs/w1", address);
    put(TOKEN, "Token_for_w1_leave");
    assert_status(worker_list_lock(keys, "c0", true, deadline_ns, &err), &err);
    has(TOKEN, "Token_for_c0_join");
    has("Token_for_w1_leave", "Done");
    close(fd);
}

static void stays(const char *token, uint64_t ms)
{
    tenrec_error err;

    put(TOKEN, token);
    assert_int_equal(worker_list_lock(keys, "c0", true, clock_deadline_ms(ms), &err),
                     TENREC_ETIMEDOUT);
    assert_text_has(err.text, token);
    has(TOKEN, token);
}

TEST_WITH(token_of_a_worker_that_may_live_stays, set_up, tear_down)
{
    char address[64];
    const int fd = at_port(address);

    assert_int_equal(listen(fd, 8), 0);
    put(LIST, "w1-1,");
    put("addrs/w1", address);
    stays("Token_for_w1_join", 4500);
    /* Not listed, without an address, and no worker's. */
    put("addrs/w2", "uv://127.0.0.1:1");
    stays("Token_for_w2_join", 4500);
    stays("free", 1500);
    close(fd);
}

TEST_WITH(token_key_is_removed_before_torch_waits_for_it_again, set_up, tear_down)
{
    tenrec_error err;

    put("Token_for_c0_join", "Done");
    assert_status(worker_list_lock(keys, "c0", true, soon(), &err), &err);
    has("Token_for_c0_join", NULL);
}

TEST_WITH(token_wakes_torch_and_is_kept, set_up, tear_down)
{
    tenrec_error err;

    assert_status(worker_list_lock(keys, "c0", true, soon(), &err), &err);
    assert_status(worker_list_wake(keys, "c0", soon(), &err), &err);
    has("Token_for_c0_join", "Done");
    has("RpcGroupManagementToken", "Token_for_c0_join");
}

TEST_WITH(kind_is_dynamic_or_refused, set_up, tear_down)
{
    tenrec_error err;

    assert_status(worker_list_check_kind(keys, soon(), &err), &err);
    has("rpcIsStaticGroup", "false");
    assert_status(worker_list_check_kind(keys, soon(), &err), &err);
    put("rpcIsStaticGroup", "true");
    assert_int_equal(worker_list_check_kind(keys, soon(), &err), TENREC_EGROUP);
    assert_text_has(err.text, "static");
}
