/* SPDX-License-Identifier: Apache-2.0 */
/* link_test.c - connections that open, close and never open. */
#include "raw.h"

#include "node.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

TEST(link_fails_pending_calls_when_the_peer_goes)
{
    static const char *const modes[] = { "sleep", "adaptive", "busy" };

    for (size_t m = 0; m < 3; m++) {
        struct node n[2];
        struct call c[3];

        group_open(n, 2, modes[m]);
        n[1].on_request = keep_request;
        for (int i = 0; i < 3; i++) {
            c[i] = (struct call){ .wake_fd = -1 };
            call_start(&n[0], &c[i], 1, request("x"));
        }
        assert_becomes(atomic_load(&n[1].requests) == 3);
        node_shutdown(&n[1]);
        for (int i = 0; i < 3; i++)
            assert_call_fails(&c[i], TENREC_EPEER_LOST);
        assert_int_equal(c[0].err.worker, 1);
        assert_string_equal(c[0].err.worker_name, "worker1");
        assert_non_null(strstr(c[0].err.text, "closed by the peer"));
        assert_int_equal(atomic_load(&n[0].lost), 1);
        group_close(n, 2);
    }
}

static void *poll_one(void *arg)
{
    struct node *n = arg;
    struct call c = { .id = 0 };

    return (void *)(intptr_t)call_sync(n, 1, request("x"), &c);
}

TEST(link_ends_a_poll_when_the_peer_goes)
{
    static const char *const modes[] = { "sleep", "adaptive", "busy" };

    for (size_t m = 0; m < 3; m++) {
        pthread_t t[2];
        void *st;
        struct node n[2];

        group_open(n, 2, modes[m]);
        assert_ping(&n[0], 1);
        assert_ping(&n[0], 1);
        n[1].on_request = keep_request;
        /* One of them reads, the other queues up for it. */
        for (int i = 0; i < 2; i++)
            pthread_create(&t[i], NULL, poll_one, &n[0]);
        assert_becomes(atomic_load(&n[1].requests) == 4);
        node_shutdown(&n[1]);
        for (int i = 0; i < 2; i++) {
            pthread_join(t[i], &st);
            assert_int_equal((intptr_t)st, TENREC_EPEER_LOST);
        }
        group_close(n, 2);
    }
}

TEST(link_connects_again_after_the_peer_came_back)
{
    struct node n[2];
    struct call c = { .id = 0 };
    char port[8];

    group_open(n, 2, "sleep");
    assert_ping(&n[0], 1);
    node_close(&n[1]);
    assert_becomes(atomic_load(&n[0].lost) == 1);
    /* No process listens there now: each call fails, without a sticky error. */
    assert_int_equal(call_sync(&n[0], 1, request("x"), &c), TENREC_ECONNECT);
    assert_int_equal(c.err.os_errno, ECONNREFUSED);
    assert_int_equal(atomic_load(&n[0].lost), 1);

    snprintf(port, sizeof port, "%s", strrchr(n[1].address, ':') + 1);
    node_init(&n[1], 1);
    n[1].options.port = port;
    node_open(&n[1]);
    nodes_start(&n[1], 1);
    n[1].agent.ops->member_joined(&n[1].agent, &n[0].member);
    /* Its old life is what worker 0 still expects. */
    assert_ping(&n[0], 1);
    group_close(n, 2);
}

TEST(link_connects_again_after_disconnect)
{
    struct node n[2];
    struct call c = { .wake_fd = -1 };
    tenrec_error err;

    group_open(n, 2, "sleep");
    assert_int_equal(n[0].agent.ops->disconnect(&n[0].agent, 1, &err), TENREC_EPEER_UNKNOWN);
    assert_ping(&n[0], 1);
    n[1].on_request = keep_request;
    call_start(&n[0], &c, 1, request("x"));
    assert_int_equal(n[0].agent.ops->disconnect(&n[0].agent, 1, &err), TENREC_OK);
    assert_true(atomic_load(&c.done));
    assert_int_equal(c.status, TENREC_EPEER_LOST);
    n[1].on_request = echo_request;
    assert_ping(&n[0], 1);
    group_close(n, 2);
}

TEST(link_refuses_peers_that_are_no_members)
{
    struct node n[2];
    struct call c = { .id = 0 };

    group_open(n, 2, "sleep");
    assert_int_equal(call_sync(&n[0], 7, request("x"), &c), TENREC_EPEER_UNKNOWN);
    assert_int_equal(call_sync(&n[0], TENREC_ANONYMOUS, request("x"), &c), TENREC_EPEER_UNKNOWN);
    n[0].agent.ops->member_left(&n[0].agent, 1);
    assert_int_equal(call_sync(&n[0], 1, request("x"), &c), TENREC_EPEER_UNKNOWN);
    group_close(n, 2);
}

TEST(link_does_not_believe_another_life_of_a_member)
{
    struct node n[2];

    for (int i = 0; i < 2; i++) {
        node_init(&n[i], i);
        n[i].member.token = 0; /* an older worker's record, known only by its incarnation */
        node_open(&n[i]);
    }
    /* worker1 knows another life of worker0 than the one that calls. */
    nodes_start(&n[0], 1);
    n[0].agent.ops->member_joined(&n[0].agent, &n[1].member);
    n[0].member.incarnation++;
    nodes_start(n + 1, 1);
    n[1].agent.ops->member_joined(&n[1].agent, &n[0].member);
    assert_ping(&n[0], 1);
    assert_int_equal(n[1].last_from, TENREC_ANONYMOUS);
    group_close(n, 2);
}

TEST(link_drops_answers_whose_caller_is_gone)
{
    struct node n[2];
    struct tenrec_msg *asked = request("x"), *late;

    group_open(n, 2, "sleep");
    assert_ping(&n[0], 1);
    late = message_of(TENREC_MSG_RET, "", 0, 0, NULL, 0);
    asked->route = (struct tenrec_route){ 0, 12345 };
    answer(&n[1], asked, late);
    asked->release(asked);
    assert_int_equal(node_counter(&n[1], "answers_dropped"), 1);
    assert_ping(&n[0], 1);
    group_close(n, 2);
}

/* A listener of ours stands in for the peer of worker 0. */
static void open_alone(struct node *n, uint64_t handshake_ms)
{
    node_init(n, 0);
    n->options.handshake_timeout_ms = handshake_ms;
    node_open(n);
    nodes_start(n, 1);
}

TEST(link_gives_up_on_a_peer_that_never_answers)
{
    struct node n, ghost;
    struct call c = { .id = 0 };
    int fd;

    open_alone(&n, 300);
    node_init(&ghost, 1);
    fd = raw_listen(ghost.address);
    n.agent.ops->member_joined(&n.agent, &ghost.member);
    assert_int_equal(call_sync(&n, 1, request("x"), &c), TENREC_ECONNECT);
    assert_non_null(strstr(c.err.text, "handshake not finished within 300 ms"));
    close(fd);
    node_close(&n);
}

static void say_and_end(int listener, const char *said, size_t len)
{
    char hello[64];
    int s = raw_accept(listener);

    assert_true(raw_recv_frame(s, hello, sizeof hello) > 0);
    raw_send(s, said, len);
    shutdown(s, SHUT_WR);
    assert_true(raw_closed(s));
    close(s);
}

TEST(link_survives_any_answer)
{
    static const char *const said[] = {
        "",
        "\x01\0\0\0\0\0\0\0\xb9",
        "\xff\xff\xff\xff\xff\xff\xff\xff",
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "\x02\0\0\0\0\0\0\0\xb9\x07",
        "\x0a\0\0\0\0\0\0\0\xb9\x07\xbd\x02uv\xbd\x03",
    };
    static const size_t len[] = { 0, 9, 8, 28, 10, 17 };
    struct node n, ghost;
    struct call c = { .id = 0 };
    int fd;

    open_alone(&n, 30000);
    node_init(&ghost, 1);
    fd = raw_listen(ghost.address);
    n.agent.ops->member_joined(&n.agent, &ghost.member);
    for (size_t i = 0; i < sizeof len / sizeof len[0]; i++) {
        c = (struct call){ .wake_fd = -1 };
        call_start(&n, &c, 1, request("x"));
        /* A peer that says nothing is dialled again, but not for ever. */
        for (int dialled = len[i] ? 6 : 0; dialled <= 6; dialled++)
            say_and_end(fd, said[i], len[i]);
        assert_becomes(atomic_load(&c.done));
        assert_int_not_equal(c.status, TENREC_OK);
    }
    close(fd);
    node_close(&n);
}

TEST(link_names_the_error_of_an_address)
{
    static const char *const bad[] = { "", "tcp://127.0.0.1:1", "uv://localhost:1",
                                       "uv://1.2.3.4:x", "uv://[::1" };
    struct node n, ghost;
    struct call c = { .id = 0 };

    open_alone(&n, 30000);
    node_init(&ghost, 1);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(ghost.address, sizeof ghost.address, "%s", bad[i]);
        n.agent.ops->member_joined(&n.agent, &ghost.member);
        assert_int_equal(call_sync(&n, 1, request("x"), &c), TENREC_ECONNECT);
        assert_non_null(strstr(c.err.text, "expected"));
    }
    node_close(&n);
}

TEST(link_holds_early_requests_until_the_agent_has_started)
{
    struct node n[2];
    struct tenrec_member member[2];
    struct call c = { .wake_fd = -1 };
    tenrec_error err;

    for (int i = 0; i < 2; i++) {
        node_init(&n[i], i);
        node_open(&n[i]);
        member[i] = n[i].member;
    }
    assert_int_equal(n[0].agent.ops->start(&n[0].agent, member, 2, &err), TENREC_OK);
    n[0].started = true;
    call_start(&n[0], &c, 1, request("early"));
    nap();
    assert_int_equal(atomic_load(&n[1].requests), 0);
    assert_false(atomic_load(&c.done));
    assert_int_equal(n[1].agent.ops->start(&n[1].agent, member, 2, &err), TENREC_OK);
    n[1].started = true;
    assert_becomes(atomic_load(&c.done));
    assert_int_equal(c.status, TENREC_OK);
    call_finish(&c);
    group_close(n, 2);
}
