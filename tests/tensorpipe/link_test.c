/* link_test.c - connections that come, go and do not come at all. */
#include "raw.h"

#include "node.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct tenrec_msg *request(const char *text)
{
    return message_of(TENREC_MSG_CALL, text, strlen(text), 0, NULL, 0);
}

static void keep_request(struct node *n, tenrec_peer from, struct tenrec_msg *msg)
{
    (void)n;
    (void)from;
    msg->release(msg);
}

static void assert_call_fails(struct call *c, tenrec_status code)
{
    assert_soon(atomic_load(&c->done));
    assert_int_equal(c->status, code);
}

static void link_fails_pending_calls_when_the_peer_goes(void **state)
{
    static const char *const modes[] = { "sleep", "adaptive", "busy" };

    (void)state;
    for (size_t m = 0; m < 3; m++) {
        struct node n[2];
        struct call c[3];

        group_open(n, 2, modes[m]);
        n[1].on_request = keep_request;
        for (int i = 0; i < 3; i++) {
            c[i] = (struct call){ .wake_fd = -1 };
            call_start(&n[0], &c[i], 1, request("x"));
        }
        assert_soon(atomic_load(&n[1].requests) == 3);
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

static void link_ends_a_poll_when_the_peer_goes(void **state)
{
    static const char *const modes[] = { "sleep", "adaptive", "busy" };

    (void)state;
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
        assert_soon(atomic_load(&n[1].requests) == 4);
        node_shutdown(&n[1]);
        for (int i = 0; i < 2; i++) {
            pthread_join(t[i], &st);
            assert_int_equal((intptr_t)st, TENREC_EPEER_LOST);
        }
        group_close(n, 2);
    }
}

static void link_connects_again_after_the_peer_came_back(void **state)
{
    struct node n[2];
    struct call c = { .id = 0 };
    char port[8];

    (void)state;
    group_open(n, 2, "sleep");
    assert_ping(&n[0], 1);
    node_close(&n[1]);
    assert_soon(atomic_load(&n[0].lost) == 1);
    /* Nobody listens there now: an error at each call, and no sticky one. */
    assert_int_equal(call_sync(&n[0], 1, request("x"), &c), TENREC_ECONNECT);
    assert_int_equal(c.err.os_errno, ECONNREFUSED);
    assert_int_equal(atomic_load(&n[0].lost), 1);

    snprintf(port, sizeof port, "%s", strrchr(n[1].address, ':') + 1);
    node_init(&n[1], 1);
    n[1].options.port = port;
    node_open(&n[1]);
    nodes_start(&n[1], 1);
    /* Its old life is what worker 0 still expects. */
    assert_ping(&n[0], 1);
    group_close(n, 2);
}

static void link_connects_again_after_disconnect(void **state)
{
    struct node n[2];
    struct call c = { .wake_fd = -1 };
    tenrec_error err;

    (void)state;
    group_open(n, 2, "sleep");
    assert_int_equal(n[0].agent.ops->disconnect(&n[0].agent, 1, &err), TENREC_EPEER_UNKNOWN);
    assert_ping(&n[0], 1);
    n[1].on_request = keep_request;
    call_start(&n[0], &c, 1, request("x"));
    assert_int_equal(n[0].agent.ops->disconnect(&n[0].agent, 1, &err), TENREC_OK);
    assert_true(atomic_load(&c.done));
    assert_int_equal(c.status, TENREC_EPEER_LOST);
    n[1].on_request = NULL;
    assert_ping(&n[0], 1);
    group_close(n, 2);
}

static void link_refuses_peers_that_are_no_members(void **state)
{
    struct node n[2];
    struct call c = { .id = 0 };

    (void)state;
    group_open(n, 2, "sleep");
    assert_int_equal(call_sync(&n[0], 7, request("x"), &c), TENREC_EPEER_UNKNOWN);
    assert_int_equal(call_sync(&n[0], TENREC_ANONYMOUS, request("x"), &c), TENREC_EPEER_UNKNOWN);
    n[0].agent.ops->member_left(&n[0].agent, 1);
    assert_int_equal(call_sync(&n[0], 1, request("x"), &c), TENREC_EPEER_UNKNOWN);
    group_close(n, 2);
}

static void link_does_not_believe_another_life_of_a_member(void **state)
{
    struct node n[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        node_init(&n[i], i);
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

static void link_drops_answers_whose_caller_is_gone(void **state)
{
    struct node n[2];
    struct tenrec_msg *asked = request("x"), *late;

    (void)state;
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
static void open_alone(struct node *n)
{
    node_init(n, 0);
    n->options.handshake_timeout_ms = 300;
    node_open(n);
    nodes_start(n, 1);
}

static void link_gives_up_on_a_peer_that_never_answers(void **state)
{
    struct node n, ghost;
    struct call c = { .id = 0 };
    int fd;

    (void)state;
    open_alone(&n);
    node_init(&ghost, 1);
    fd = raw_listen(ghost.address);
    n.agent.ops->member_joined(&n.agent, &ghost.member);
    assert_int_equal(call_sync(&n, 1, request("x"), &c), TENREC_ECONNECT);
    assert_non_null(strstr(c.err.text, "handshake not finished within 300 ms"));
    close(fd);
    node_close(&n);
}

static void link_survives_whatever_is_answered(void **state)
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

    (void)state;
    open_alone(&n);
    node_init(&ghost, 1);
    fd = raw_listen(ghost.address);
    n.agent.ops->member_joined(&n.agent, &ghost.member);
    for (size_t i = 0; i < sizeof len / sizeof len[0]; i++) {
        char hello[64];
        int s;

        c = (struct call){ .wake_fd = -1 };
        call_start(&n, &c, 1, request("x"));
        s = raw_accept(fd);
        assert_true(raw_recv_frame(s, hello, sizeof hello) > 0);
        raw_send(s, said[i], len[i]);
        shutdown(s, SHUT_WR);
        assert_soon(atomic_load(&c.done));
        assert_int_not_equal(c.status, TENREC_OK);
        close(s);
    }
    close(fd);
    node_close(&n);
}

static void link_says_what_is_wrong_with_an_address(void **state)
{
    static const char *const bad[] = { "", "tcp://127.0.0.1:1", "uv://localhost:1",
                                       "uv://1.2.3.4:x", "uv://[::1" };
    struct node n, ghost;
    struct call c = { .id = 0 };

    (void)state;
    open_alone(&n);
    node_init(&ghost, 1);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(ghost.address, sizeof ghost.address, "%s", bad[i]);
        n.agent.ops->member_joined(&n.agent, &ghost.member);
        assert_int_equal(call_sync(&n, 1, request("x"), &c), TENREC_ECONNECT);
        assert_non_null(strstr(c.err.text, "expected"));
    }
    node_close(&n);
}

static void link_holds_early_requests_until_it_has_started(void **state)
{
    struct node n[2];
    struct tenrec_member member[2];
    struct call c = { .wake_fd = -1 };
    tenrec_error err;

    (void)state;
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
    assert_soon(atomic_load(&c.done));
    assert_int_equal(c.status, TENREC_OK);
    call_finish(&c);
    group_close(n, 2);
}

/* ---- bounded queues ---- */

/* worker 0's queue to a peer that never reads. */
static void fill_queue(struct node *n, struct call *c, size_t *ret_accepted)
{
    static char payload[200000];
    size_t i = 0;

    for (;; i++) {
        assert_true(i < NODE_CALLS);
        c[i] = (struct call){ .wake_fd = -1 };
        call_start(n, &c[i], 1, message_of(TENREC_MSG_CALL, payload, sizeof payload, 0, NULL, 0));
        if (atomic_load(&c[i].done))
            break;
    }
    *ret_accepted = i;
}

/* The other side's host does not accept, so it does not read. */
static void open_clogged(struct node *n)
{
    for (int i = 0; i < 2; i++) {
        node_init(&n[i], i);
        n[i].options.max_queued_bytes = 1000000;
        node_open(&n[i]);
    }
    nodes_start(n, 2);
    assert_ping(&n[0], 1);
    atomic_store(&n[1].refuse_requests, true);
}

static void link_refuses_sends_beyond_its_queue_limit(void **state)
{
    static struct call c[NODE_CALLS];
    struct node n[2];
    struct call control = { .wake_fd = -1 };
    struct tenrec_msg *msg = request("c");
    size_t accepted;

    (void)state;
    open_clogged(n);
    fill_queue(&n[0], c, &accepted);
    assert_int_equal(c[accepted].status, TENREC_EAGAIN);
    msg->flags |= TENREC_MSG_CONTROL;
    call_start(&n[0], &control, 1, msg);
    assert_false(atomic_load(&control.done));
    /* Once the peer accepts again everything that was taken is answered. */
    atomic_store(&n[1].refuse_requests, false);
    n[1].agent.ops->resume(&n[1].agent);
    for (size_t i = 0; i < accepted; i++) {
        assert_soon(atomic_load(&c[i].done));
        assert_int_equal(c[i].status, TENREC_OK);
        call_finish(&c[i]);
    }
    assert_soon(atomic_load(&control.done));
    call_finish(&control);
    group_close(n, 2);
}

static void link_waits_for_room_until_the_deadline(void **state)
{
    static struct call c[NODE_CALLS];
    static char payload[200000];
    struct node n[2];
    struct call late = { .wake_fd = -1 };
    struct tenrec_msg *msg = message_of(TENREC_MSG_CALL, payload, sizeof payload, 0, NULL, 0);
    size_t accepted;

    (void)state;
    open_clogged(n);
    fill_queue(&n[0], c, &accepted);
    msg->flags |= TENREC_MSG_MAY_WAIT;
    msg->deadline_ns = clock_ns() + 50000000u;
    call_start(&n[0], &late, 1, msg);
    assert_true(atomic_load(&late.done));
    assert_int_equal(late.status, TENREC_ETIMEDOUT);
    group_close(n, 2);
}

static void *send_waiting(void *arg)
{
    static char payload[200000];
    struct node *n = arg;
    struct call c = { .id = 0 };
    tenrec_status st =
        call_sync(n, 1, message_of(TENREC_MSG_CALL, payload, sizeof payload, 0, NULL, 0), &c);

    call_finish(&c);
    return (void *)(intptr_t)st;
}

static void link_lets_a_waiting_send_go_on_when_there_is_room(void **state)
{
    static struct call c[NODE_CALLS];
    struct node n[2];
    pthread_t t;
    size_t accepted;
    void *st;

    (void)state;
    open_clogged(n);
    fill_queue(&n[0], c, &accepted);
    pthread_create(&t, NULL, send_waiting, &n[0]);
    nap();
    atomic_store(&n[1].refuse_requests, false);
    n[1].agent.ops->resume(&n[1].agent);
    pthread_join(t, &st);
    assert_int_equal((intptr_t)st, TENREC_OK);
    for (size_t i = 0; i < accepted; i++) {
        assert_soon(atomic_load(&c[i].done));
        call_finish(&c[i]);
    }
    group_close(n, 2);
}

static void link_cancels_everything_at_shutdown(void **state)
{
    static struct call c[NODE_CALLS];
    struct node n[2];
    tenrec_error err;
    pthread_t t;
    size_t accepted, canceled = 0;
    unsigned told;
    void *st;

    (void)state;
    open_clogged(n);
    fill_queue(&n[0], c, &accepted);
    pthread_create(&t, NULL, send_waiting, &n[0]);
    assert_int_equal(n[0].agent.ops->drain(&n[0].agent, 20, &err), TENREC_ETIMEDOUT);
    node_shutdown(&n[0]);
    pthread_join(t, &st);
    assert_int_not_equal((intptr_t)st, TENREC_OK);
    for (size_t i = 0; i < accepted; i++)
        canceled += atomic_load(&c[i].done) && c[i].status == TENREC_ECANCELED;
    assert_true(canceled > 0);
    /* Every send was told: the pings', the accepted, the refused, the waiting one. */
    told = atomic_load(&n[0].told);
    assert_int_equal(told, 1 + accepted + 1 + 1);
    /* And what comes later is refused. */
    c[0] = (struct call){ .wake_fd = -1 };
    memset(n[0].call, 0, sizeof n[0].call);
    call_start(&n[0], &c[0], 1, request("x"));
    assert_int_equal(c[0].status, TENREC_ESHUTDOWN);
    group_close(n, 2);
}

static void link_drains_what_is_queued(void **state)
{
    static char payload[3000000];
    struct node n[2];
    struct call c = { .wake_fd = -1 };
    tenrec_error err;

    (void)state;
    group_open(n, 2, "sleep");
    call_start(&n[0], &c, 1, message_of(TENREC_MSG_CALL, payload, sizeof payload, 0, NULL, 0));
    assert_int_equal(n[0].agent.ops->drain(&n[0].agent, 20000, &err), TENREC_OK);
    assert_int_equal(atomic_load(&n[0].told), 1);
    assert_soon(atomic_load(&c.done));
    call_finish(&c);
    group_close(n, 2);
}

/* ---- where it listens ---- */

static void link_works_over_ipv6(void **state)
{
    struct node n[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        node_init(&n[i], i);
        n[i].options.family = "ipv6";
        node_open(&n[i]);
    }
    assert_non_null(strstr(n[0].address, "uv://[::1]:"));
    nodes_start(n, 2);
    for (int i = 0; i < 10; i++)
        assert_ping(&n[0], 1);
    group_close(n, 2);
}

static void link_listens_on_an_interface_and_in_a_port_range(void **state)
{
    struct node n[2];
    char range[32];

    (void)state;
    node_init(&n[0], 0);
    n[0].options.ifname = "lo";
    node_open(&n[0]);
    assert_non_null(strstr(n[0].address, "uv://127.0.0.1:"));
    /* The first port of the range is taken. */
    snprintf(range, sizeof range, "%s-65535", strrchr(n[0].address, ':') + 1);
    node_init(&n[1], 1);
    n[1].options.listen = "127.0.0.1";
    n[1].options.port = range;
    node_open(&n[1]);
    assert_string_not_equal(n[0].address, n[1].address);
    nodes_start(n, 2);
    assert_ping(&n[0], 1);
    group_close(n, 2);
}

static void assert_refused(const char *ifname, const char *listen_at, const char *port,
                           const char *text)
{
    struct tenrec_init in = { .size = sizeof in, .name = "w" };
    tenrec_error err = { .code = TENREC_OK };
    struct node n;

    node_init(&n, 0);
    n.options.ifname = ifname;
    n.options.listen = listen_at;
    n.options.port = port;
    n.agent.host = &n.host;
    in.options = &n.options;
    if (tenrec_construct_options(&n.options, &err) == TENREC_OK)
        assert_int_not_equal(tenrec_init_agent(&in, &n.agent, &err), TENREC_OK);
    if (!strstr(err.text, text))
        fail_msg("\"%s\" does not say \"%s\"", err.text, text);
}

static void link_refuses_places_where_it_cannot_listen(void **state)
{
    (void)state;
    assert_refused("nosuch0", "", "0", "does not exist");
    assert_refused("", "0.0.0.0", "0", "no address that others could connect to");
    assert_refused("", "no such host", "0", "listen: \"no such host\"");
    assert_refused("", "192.0.2.1", "0", "cannot listen on 192.0.2.1:0");
    assert_refused("lo", "127.0.0.1", "0", "exclude each other");
    assert_refused("", "", "http", "expected a port");
    assert_refused("", "", "70000", "expected a port");
    assert_refused("", "", "9000-8000", "ends before it begins");
}

/* ---- many at once ---- */

struct crowd {
    struct node *n;
    atomic_uint failed;
};

static void *many_calls(void *arg)
{
    struct crowd *crowd = arg;
    char text[32];

    for (int i = 0; i < 200; i++) {
        struct call c = { .id = 0 };

        snprintf(text, sizeof text, "%p %d", (void *)text, i);
        if (call_sync(crowd->n, 1, request(text), &c) || c.answer->payload_len != strlen(text) ||
            memcmp(c.answer->payload, text, strlen(text)) != 0)
            atomic_fetch_add(&crowd->failed, 1);
        call_finish(&c);
    }
    return NULL;
}

static void link_serves_many_callers_of_one_peer(void **state)
{
    static const char *const modes[] = { "sleep", "adaptive", "busy" };

    (void)state;
    for (size_t m = 0; m < 3; m++) {
        struct node n[2];
        struct crowd crowd = { .n = n };
        pthread_t t[8];

        group_open(n, 2, modes[m]);
        for (int i = 0; i < 8; i++)
            pthread_create(&t[i], NULL, many_calls, &crowd);
        for (int i = 0; i < 8; i++)
            pthread_join(t[i], NULL);
        assert_int_equal(atomic_load(&crowd.failed), 0);
        group_close(n, 2);
    }
}

struct chain {
    struct node *n;
    atomic_int left;
    atomic_bool done;
};

static void next_call(struct call *c)
{
    struct chain *chain = c->arg;
    int left = atomic_fetch_sub(&chain->left, 1);

    call_finish(c);
    if (left > 0)
        call_start(chain->n, c, 1, request("next"));
    else if (left == -63)
        atomic_store(&chain->done, true);
}

static void link_keeps_64_calls_in_flight_from_callbacks(void **state)
{
    static const char *const modes[] = { "sleep", "adaptive", "busy" };

    (void)state;
    for (size_t m = 0; m < 3; m++) {
        struct node n[2];
        struct chain chain = { .n = n };
        struct call c[64];

        atomic_store(&chain.left, 10000);
        group_open(n, 2, modes[m]);
        for (int i = 0; i < 64; i++) {
            c[i] = (struct call){ .wake_fd = -1, .then = next_call, .arg = &chain };
            call_start(n, &c[i], 1, request("first"));
        }
        assert_soon(atomic_load(&chain.done));
        /* Gathered: far fewer system calls than messages. */
        assert_true(node_counter(&n[1], "sends") < node_counter(&n[1], "messages_sent") / 2);
        group_close(n, 2);
    }
}

static void link_calls_between_processes_and_sees_one_killed(void **state)
{
    struct node n[2];
    struct call c = { .wake_fd = -1 };
    char address[sizeof n[0].address];
    int there[2], back[2], status;
    pid_t child;

    (void)state;
    assert_int_equal(pipe(there), 0);
    assert_int_equal(pipe(back), 0);
    child = fork();
    for (int i = 0; i < 2; i++)
        node_init(&n[i], i);
    node_open(&n[child == 0]);
    if (child == 0) {
        n[1].on_request = NULL;
        if (write(back[1], n[1].address, sizeof address) < 0 ||
            read(there[0], n[0].address, sizeof address) < 0)
            _exit(1);
        n[1].agent.ops->start(&n[1].agent, &n[0].member, 1, NULL);
        for (;;)
            pause();
    }
    assert_int_equal(write(there[1], n[0].address, sizeof address), sizeof address);
    assert_int_equal(read(back[0], address, sizeof address), sizeof address);
    memcpy(n[1].address, address, sizeof address);
    nodes_start(&n[0], 1);
    n[0].agent.ops->member_joined(&n[0].agent, &n[1].member);
    for (int i = 0; i < 100; i++)
        assert_ping(&n[0], 1);
    kill(child, SIGSTOP);
    call_start(&n[0], &c, 1, request("x"));
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_call_fails(&c, TENREC_EPEER_LOST);
    node_close(&n[0]);
    for (int i = 0; i < 2; i++) {
        close(there[i]);
        close(back[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(link_calls_between_processes_and_sees_one_killed),
        cmocka_unit_test(link_fails_pending_calls_when_the_peer_goes),
        cmocka_unit_test(link_ends_a_poll_when_the_peer_goes),
        cmocka_unit_test(link_connects_again_after_the_peer_came_back),
        cmocka_unit_test(link_connects_again_after_disconnect),
        cmocka_unit_test(link_refuses_peers_that_are_no_members),
        cmocka_unit_test(link_does_not_believe_another_life_of_a_member),
        cmocka_unit_test(link_drops_answers_whose_caller_is_gone),
        cmocka_unit_test(link_gives_up_on_a_peer_that_never_answers),
        cmocka_unit_test(link_survives_whatever_is_answered),
        cmocka_unit_test(link_says_what_is_wrong_with_an_address),
        cmocka_unit_test(link_holds_early_requests_until_it_has_started),
        cmocka_unit_test(link_refuses_sends_beyond_its_queue_limit),
        cmocka_unit_test(link_waits_for_room_until_the_deadline),
        cmocka_unit_test(link_lets_a_waiting_send_go_on_when_there_is_room),
        cmocka_unit_test(link_cancels_everything_at_shutdown),
        cmocka_unit_test(link_drains_what_is_queued),
        cmocka_unit_test(link_works_over_ipv6),
        cmocka_unit_test(link_listens_on_an_interface_and_in_a_port_range),
        cmocka_unit_test(link_refuses_places_where_it_cannot_listen),
        cmocka_unit_test(link_serves_many_callers_of_one_peer),
        cmocka_unit_test(link_keeps_64_calls_in_flight_from_callbacks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
