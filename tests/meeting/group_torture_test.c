/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation fails once: no crash, no leak, ENOMEM or a closed
 * connection, and nothing is left that hinders the next try. */
#include "../support/test_store.h"

#include "core/base/clock.h"
#include "group/meeting/meeting.h"
#include "group/membership/member_record.h"
#include "group/membership/membership.h"
#include "group/store/store_session.h"

#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/time.h>

static atomic_int fail_at; /* the allocation that fails; 0: none */
static atomic_int in_use;  /* allocations of the program's own objects */

static bool fails(void)
{
    return fail_at > 0 && --fail_at == 0;
}

/* The linker puts these in the place of the C library's (--wrap). */
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t n);
void __wrap_free(void *p);

static void *counted(void *p)
{
    in_use += p != NULL;
    return p;
}

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : counted(__real_malloc(n));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : counted(__real_calloc(n, size));
}

void __wrap_free(void *p)
{
    in_use -= p != NULL;
    __real_free(p);
}

void *__wrap_realloc(void *old, size_t n)
{
    void *p = fails() ? NULL : __real_realloc(old, n);

    return old ? p : counted(p);
}

static char init[96];
static tenrec_error err;

/* A whole life of a group of one. */
static tenrec_status live(void)
{
    struct rendezvous_options o = {
        .init_method = init, .group = "default", .rank = 0, .world = 1
    };
    struct tenrec_process_group *pg = NULL;
    struct members *members = NULL;
    struct rendezvous *r;
    const int64_t one = 1;
    int64_t sum;
    tenrec_status st = rendezvous_open(&o, clock_deadline_ms(TEST_MS), &r, &err);

    if (st != TENREC_OK)
        return st;
    st = members_join(&r->generation, "w", "a", NULL, clock_deadline_ms(TEST_MS), &members, &err);
    if (st == TENREC_OK)
        st = process_group_new_once(r->generation.store, 0, 1, "sum", NULL, &pg, &err);
    for (int i = 0; i < 2 && st == TENREC_OK; i++)
        st = process_group_sum(pg, &one, 1, NULL, clock_deadline_ms(TEST_MS), &sum, &err);
    tenrec_process_group_drop(pg);
    members_drop(members);
    rendezvous_close(r, clock_deadline_ms(TEST_MS));
    return st;
}

static tenrec_status leave(struct membership_list *r)
{
    struct membership_view v = { .version = 0 };
    tenrec_status st = membership_list_leave(r, clock_deadline_ms(TEST_MS), &v, &err);

    membership_view_finish(&v);
    return st;
}

/* One that joins a dynamic group, and leaves it; a worker of torch is in its list then. */
static tenrec_status come_and_go(void)
{
    static const char list[] = "rpc_prefix_0/names/_ALL_WORKER_INFOS";
    struct tenrec_store *s = NULL;
    struct membership_list r = { .id = -1 };
    struct membership_view v = { .version = 0 };
    tenrec_status st = tenrec_store_open(init, TEST_MS, &s, &err);

    if (st == TENREC_OK)
        st = tenrec_store_set(s, list, "", 0, TEST_MS, &err);
    if (st == TENREC_OK)
        st = membership_list_open(s, "default", "", 50, &r, &err);
    if (st == TENREC_OK)
        st = membership_list_reserve(&r, -1, "w{rank}", clock_deadline_ms(TEST_MS), &err);
    if (st == TENREC_OK)
        st = tenrec_store_set(s, list, "t-7,", 4, TEST_MS, &err);
    if (st == TENREC_OK)
        st = membership_list_join(&r, "here", NULL, clock_deadline_ms(TEST_MS), &v, &err);
    membership_view_finish(&v);
    /* Memory fails once: the second time it goes. */
    if (st == TENREC_OK)
        st = leave(&r);
    if (st != TENREC_OK && r.store && leave(&r) != TENREC_OK)
        fail_msg("%s", err.text);
    membership_list_close(&r);
    tenrec_store_close(s);
    return st;
}

static tenrec_status use_store(void)
{
    const char *keys[] = { "a", "b" };
    struct tenrec_store *s = NULL, *view = NULL;
    void *data = NULL;
    bool all;
    tenrec_status st = tenrec_store_open(init, TEST_MS, &s, &err);

    if (st == TENREC_OK)
        st = tenrec_store_open_prefix(s, "p", &view, &err);
    if (st == TENREC_OK)
        st = tenrec_store_set(view, "a", "1", 1, TEST_MS, &err);
    if (st == TENREC_OK)
        st = tenrec_store_add(view, "b", 1, TEST_MS, NULL, &err);
    if (st == TENREC_OK)
        st = tenrec_store_wait(view, keys, 2, TEST_MS, &err);
    if (st == TENREC_OK)
        st = tenrec_store_check(view, keys, 2, TEST_MS, &all, &err);
    if (st == TENREC_OK)
        st = tenrec_store_compare_set(view, "a", "1", 1, "2", 1, TEST_MS, NULL, NULL, &err);
    if (st == TENREC_OK)
        st = tenrec_store_get(view, "a", TEST_MS, &data, NULL, &err);
    free(data);
    if (st == TENREC_OK)
        st = tenrec_store_delete(view, "a", TEST_MS, NULL, &err);
    tenrec_store_close(view);
    tenrec_store_close(s);
    return st;
}

/* Fails the first allocation, then the second, until none is left. */
static void torture(tenrec_status (*run)(void))
{
    bool done = false;

    for (int n = 1; !done; n++) {
        tenrec_status st;
        fail_at = n;
        st = run();
        done = fail_at > 0; /* it was never reached */
        fail_at = 0;
        if (st != TENREC_OK && st != TENREC_ENOMEM)
            fail_msg("allocation %d: %s", n, err.text);
        if (done)
            assert_status(st, &err);
        if (strncmp(init, "file://", 7) == 0)
            unlink(init + 7);
    }
    assert_status(run(), &err);
}

TEST(group_survives_failing_memory_in_process)
{
    snprintf(init, sizeof init, "memory://torture");
    torture(live);
    torture(use_store);
    snprintf(init, sizeof init, "memory://torture-dynamic");
    torture(come_and_go);
}

TEST(group_survives_failing_memory_with_a_file)
{
    snprintf(init, sizeof init, "file:///tmp/tenrec-torture-%d", (int)getpid());
    torture(live);
    torture(use_store);
    unlink(init + 7);
}

TEST(group_survives_failing_memory_with_a_plugin)
{
    snprintf(init, sizeof init, "drawer://torture");
    torture(live);
    torture(use_store);
}

static bool closed;

static void ignore(void *arg, const void *data, size_t len)
{
    (void)arg;
    (void)data;
    (void)len;
}

static bool never_full(void *arg)
{
    (void)arg;
    return false;
}

static void note_close(void *arg, const char *why)
{
    (void)arg;
    (void)why;
    closed = true;
}

static const struct store_session_ops ops = { ignore, never_full, note_close };

static void say(struct store_session *s, const char *bytes, size_t len)
{
    if (s)
        store_session_feed(s, bytes, len);
}

#define SAY(s, text) say(s, text, sizeof(text) - 1)
#define N(c) c "\0\0\0\0\0\0\0"
#define K N("\2") "/k"
#define HELLO "\0\xce\xf7\x85\x3c"

/* Two connections to the server, one that waits. */
static tenrec_status serve(void)
{
    struct store_session *a, *b;
    struct store_hub hub;

    closed = false;
    if (store_hub_init(&hub, 0) != TENREC_OK)
        return TENREC_ENOMEM;
    a = store_session_new(&hub, &ops, NULL);
    b = store_session_new(&hub, &ops, NULL);
    SAY(a, HELLO "\6" N("\1") K);                                      /* WAIT */
    SAY(b, "\7" K);                                                    /* 1.13's WATCH_KEY */
    SAY(b, "\0" K N("\1") "1\0" K N("\1") "2\3" N("\2") "/n" N("\1")); /* SET twice, ADD */
    SAY(a, "\x09" K N("\1") "3\x0e" N("\2") "/q" N("\1") "x\x0f" N("\2") "/q");
    SAY(a, "\x12" N("\2") "/r" N("\1") "\x08" K "\x11");
    closed |= !a || !b;
    store_session_drop(a);
    store_session_drop(b);
    store_hub_finish(&hub);
    return closed ? TENREC_ENOMEM : TENREC_OK;
}

TEST(server_survives_failing_memory)
{
    *init = '\0';
    torture(serve);
}

/* libuv reports no further connection until the reported connection is accepted. */
TEST(server_accepts_when_there_is_memory_again)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    const struct timeval limit = { .tv_sec = TEST_MS / 1000 };
    struct tenrec_store_server *server;
    char pong[4] = "";
    uint16_t port;
    int fd;

    assert_status(tenrec_store_server_new("127.0.0.1", 0, &server, &port, &err), &err);
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fail_at = 1;
    assert_true((fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_becomes(fail_at == 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    assert_int_equal(send(fd, HELLO "\x0d\7\0\0", 10, MSG_NOSIGNAL), 10); /* PING */
    assert_int_equal(recv_again(fd, pong, sizeof pong, MSG_WAITALL), sizeof pong);
    assert_memory_equal(pong, "\7\0\0", sizeof pong);
    close(fd);
    tenrec_store_server_drop(server);
}

static struct store_value record;

static tenrec_status read_record(void)
{
    const int before = in_use;
    struct member m;
    tenrec_status st = member_unpack(&record, &m, &err);

    if (st == TENREC_OK)
        member_free(&m);
    assert_int_equal(in_use, before);
    return st;
}

TEST(record_of_a_worker_frees_all_when_memory_runs_out)
{
    char address[] = "uv://127.0.0.1:1", extra[] = "devices";
    const struct member m = { .name = "w", .address = address, .extra = extra, .extra_len = 7 };

    *init = '\0';
    member_pack(&m, &record);
    assert_non_null(record.data);
    torture(read_record);
    free(record.data);
}
