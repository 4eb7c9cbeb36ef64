/* SPDX-License-Identifier: Apache-2.0 */
/* ring_link_test.c - rings between two processes, one of which dies, stops or
 * cannot be reached that way; and all that can be under way at once. */
#include "node.h"

#include "agent/agent.h"
#include "transport/ring_setup.h"
#include "transport/transport_ring.h"
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PIECE (1u << 20)

static const char *const modes[] = { "sleep", "adaptive", "busy" };

static void open_node(struct node *n, tenrec_peer id, const char *progress)
{
    node_init(n, id);
    n->options.progress = progress;
    node_share_memory(n);
    node_open(n);
}

static void open_pair(struct node n[2], const char *progress)
{
    open_node(&n[0], 0, progress);
    open_node(&n[1], 1, progress);
    nodes_start(n, 2);
}

/* ---- worker 1 in another process ---- */

struct far {
    pid_t pid;
    int fd; /* its end ends the process */
};

/* Requests that begin with 'k' are kept, others echoed. */
static void obey(struct node *n, tenrec_peer from, struct tenrec_msg *msg)
{
    if (msg->payload_len && *(const char *)msg->payload == 'k')
        keep_request(n, from, msg);
    else
        echo_request(n, from, msg);
}

static rlim_t far_spare; /* descriptors that worker 1 may still open; 0: as many as we */

static void leave_spare(rlim_t spare)
{
    struct rlimit limit = { 0, 0 };

    for (int fd = 0; spare; fd++) {
        spare -= fcntl(fd, F_GETFD) < 0;
        limit.rlim_cur = limit.rlim_max = (rlim_t)fd + 1;
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* Worker 0 starts here. To be called when this process has no threads. */
static struct far far_open(struct node n[2], const char *progress)
{
    struct tenrec_member members[2];
    struct far far;
    tenrec_error err;
    int fd[2], me;
    char end;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    far.pid = fork();
    me = far.pid == 0;
    far.fd = fd[0];
    close(fd[!me]);
    if (me)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    node_init(&n[!me], !me);
    open_node(&n[me], me, progress);
    n[me].on_request = me ? obey : NULL;
    if (me && far_spare)
        leave_spare(far_spare);
    if (write(fd[me], n[me].address, sizeof n[me].address) != sizeof n[me].address ||
        recv(fd[me], n[!me].address, sizeof n[!me].address, MSG_WAITALL) != sizeof n[!me].address)
        fail_msg("the other process does not tell its address");
    members[0] = n[0].member;
    members[1] = n[1].member;
    assert_int_equal(n[me].agent.ops->start(&n[me].agent, members, 2, &err), TENREC_OK);
    n[me].started = true;
    if (!me)
        return far;
    if (read(fd[1], &end, 1) < 0)
        _exit(1);
    node_close(&n[1]);
    _exit(0);
}

static void far_close(struct far *far, struct node n[2])
{
    close(far->fd);
    assert_int_equal(waitpid(far->pid, NULL, 0), far->pid);
    node_close(&n[0]);
    pthread_mutex_destroy(&n[1].lock);
}

static void compare(void *arg, const char *key, const char *value)
{
    const char **want = arg;

    if (strcmp(key, "peer.1.transport") == 0 && strcmp(value, *want) == 0)
        *want = NULL;
}

static void assert_over(struct node *n, const char *transport)
{
    const char *want = transport;

    n->agent.ops->debug_info(&n->agent, compare, &want);
    if (want)
        fail_msg("not over %s", transport);
}

/* ---- the other one dies ---- */

static void *wait_for_nothing(void *arg)
{
    struct call c = { .id = 0 };

    return (void *)(intptr_t)call_sync(arg, 1, request("keep"), &c);
}

static void ring_ends_a_wait_when_the_other_process_is_killed(void **state)
{
    (void)state;
    for (size_t m = 0; m < 3; m++) {
        struct node n[2];
        struct far far = far_open(n, modes[m]);
        uint64_t since;
        pthread_t t;
        void *st;

        assert_ping(&n[0], 1);
        assert_over(&n[0], "tenrec_ring");
        pthread_create(&t, NULL, wait_for_nothing, &n[0]);
        assert_soon(node_counter(&n[0], "messages_sent") == 2);
        kill(far.pid, SIGKILL);
        since = clock_ns();
        pthread_join(t, &st);
        assert_int_equal((intptr_t)st, TENREC_EPEER_LOST);
        /* By the kernel's notice, not by a time limit. */
        assert_true(clock_ns() - since < NODE_LIMIT_NS / 4);
        assert_non_null(strstr(n[0].lost_why.text, "closed by the peer"));
        far_close(&far, n);
    }
}

static void send_pieces(struct node *n, struct call *c, int count, unsigned char *data)
{
    for (int i = 0; i < count; i++) {
        c[i] = (struct call){ .wake_fd = -1 };
        call_start(n, &c[i], 1, message_of(TENREC_MSG_CALL, data, PIECE, 0, NULL, 0));
    }
}

static void ring_fails_what_is_queued_when_the_other_process_is_killed(void **state)
{
    unsigned char *data = calloc(1, PIECE);

    (void)state;
    for (size_t m = 0; m < 3; m++) {
        struct node n[2];
        struct far far = far_open(n, modes[m]);
        struct call c[16];

        assert_ping(&n[0], 1);
        kill(far.pid, SIGSTOP);
        assert_int_equal(waitpid(far.pid, NULL, WUNTRACED), far.pid); /* it takes its time */
        send_pieces(&n[0], c, 16, data);
        kill(far.pid, SIGKILL);
        for (int i = 0; i < 16; i++)
            assert_call_fails(&c[i], TENREC_EPEER_LOST);
        far_close(&far, n);
    }
    free(data);
}

static void ring_waits_for_a_reader_that_stops_for_a_while(void **state)
{
    unsigned char *data = calloc(1, PIECE);

    (void)state;
    for (size_t m = 0; m < 3; m++) {
        struct node n[2];
        struct far far = far_open(n, modes[m]);
        struct call c[16];

        assert_ping(&n[0], 1);
        kill(far.pid, SIGSTOP);
        send_pieces(&n[0], c, 16, data);
        kill(far.pid, SIGCONT);
        for (int i = 0; i < 16; i++) {
            assert_soon(atomic_load(&c[i].done));
            assert_int_equal(c[i].status, TENREC_OK);
            assert_int_equal(c[i].answer->payload_len, PIECE);
            call_finish(&c[i]);
        }
        assert_ping(&n[0], 1);
        far_close(&far, n);
    }
    free(data);
}

/* ---- much at once ---- */

struct stream {
    struct node *n;
    tenrec_peer to;
};

static void *send_small(void *arg)
{
    const struct stream *s = arg;

    for (int i = 0; i < 1000; i++)
        assert_ping(s->n, s->to);
    return NULL;
}

static void *send_large(void *arg)
{
    const struct stream *s = arg;
    const size_t len = 64u << 20;
    unsigned char *data = malloc(len);

    for (size_t i = 0; i < len; i++)
        data[i] = (unsigned char)(i * 7 + (i >> 12));
    for (int i = 0; i < 2; i++) {
        struct call c = { .id = 0 };

        assert_int_equal(
            call_sync(s->n, s->to, message_of(TENREC_MSG_CALL, "t", 1, 1, data, len), &c),
            TENREC_OK);
        assert_memory_equal(tenrec_msg_tensor(c.answer, 0)->data, data, len);
        call_finish(&c);
    }
    free(data);
    return NULL;
}

static void ring_carries_small_and_large_messages_both_ways_at_once(void **state)
{
    (void)state;
    for (size_t m = 0; m < 3; m++) {
        struct node n[2];
        struct stream s[2] = { { &n[0], 1 }, { &n[1], 0 } };
        pthread_t t[4];

        open_pair(n, modes[m]);
        for (int i = 0; i < 2; i++) {
            pthread_create(&t[2 * i], NULL, send_small, &s[i]);
            pthread_create(&t[2 * i + 1], NULL, send_large, &s[i]);
        }
        for (int i = 0; i < 4; i++)
            pthread_join(t[i], NULL);
        group_close(n, 2);
    }
}

/* Callers that come and go in all ways: each call sleeps, spins or is read by
 * somebody else, as it happens. */
static void *come_and_go(void *arg)
{
    const struct stream *s = arg;

    for (int i = 0; i < 300; i++) {
        assert_ping(s->n, s->to);
        if (i % 50 == 0)
            nap();
    }
    return NULL;
}

static void ring_loses_no_wake_up_whoever_reads(void **state)
{
    (void)state;
    for (size_t m = 0; m < 3; m++) {
        struct node n[2];
        struct far far = far_open(n, modes[m]);
        struct stream s = { &n[0], 1 };
        pthread_t t[4];

        for (int i = 0; i < 4; i++)
            pthread_create(&t[i], NULL, come_and_go, &s);
        for (int i = 0; i < 4; i++)
            pthread_join(t[i], NULL);
        far_close(&far, n);
    }
}

/* ---- rest ---- */

static uint64_t cpu_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void ring_uses_no_cpu_when_nothing_comes(void **state)
{
    (void)state;
    for (size_t m = 0; m < 2; m++) {
        struct node n[2];
        uint64_t before;

        open_pair(n, modes[m]);
        for (int i = 0; i < 100; i++)
            assert_ping(&n[0], 1);
        for (int i = 0; i < 200; i++) /* milliseconds: then the last timers have fired */
            nap();
        before = cpu_ns();
        for (int i = 0; i < 200; i++)
            nap();
        assert_true(cpu_ns() - before < 50000000);
        assert_ping(&n[0], 1);
        group_close(n, 2);
    }
}

/* ---- who cannot share memory ---- */

static void ring_is_not_used_by_who_is_elsewhere(void **state)
{
    struct node n[2];
    struct agent *a;

    (void)state;
    open_node(&n[0], 0, "sleep");
    open_node(&n[1], 1, "sleep");
    a = n[1].agent.impl;
    /* As if it were in another namespace, for both ways through shared memory. */
    for (unsigned i = 0; i < a->listener.n_ports; i++)
        if (strcmp(a->listener.port[i].transport->option, "shm") == 0)
            a->listener.port[i].domain[0] ^= 1;
    nodes_start(n, 2);
    assert_ping(&n[0], 1);
    assert_over(&n[0], "uv");
    group_close(n, 2);
}

/* Equal domains, and yet there is no way: what is left is tried, down to TCP. */
static void ring_is_left_out_where_it_leads_nowhere(void **state)
{
    static const char *const left[] = { "shm", "uv" };

    (void)state;
    for (unsigned broken = 1; broken <= 2; broken++) {
        struct node n[2];
        struct agent *a;

        open_node(&n[0], 0, "sleep");
        open_node(&n[1], 1, "sleep");
        a = n[1].agent.impl;
        for (unsigned i = 0; i < broken; i++)
            snprintf(a->listener.port[i].address, sizeof a->listener.port[i].address,
                     "nobody listens there");
        nodes_start(n, 2);
        assert_ping(&n[0], 1);
        assert_over(&n[0], left[broken - 1]);
        assert_int_equal(atomic_load(&n[0].lost), 0);
        group_close(n, 2);
    }
}

/* A listener of the test at the address of a node's rings. `answer`: to the memory of whoever
 * calls; -1: it accepts nobody. */
struct refusal {
    int fd, answer;
    atomic_bool over;
};

static void refusal_listen(struct refusal *r, struct node *n)
{
    struct agent *a = n->agent.impl;
    struct tp_options none = { .lanes = 1 };
    tenrec_error err;

    assert_int_equal(transport_ring.listen(&none, &r->fd, a->listener.port[0].address, &err), 0);
    atomic_store(&r->over, false);
}

static void *refusal_run(void *arg)
{
    struct refusal *r = arg;

    while (!atomic_load(&r->over)) {
        const char answer = (char)r->answer;
        int fd = accept4(r->fd, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0) {
            nap();
            continue;
        }
        send(fd, &answer, 1, MSG_NOSIGNAL); /* fails when the caller has gone on already */
        close(fd);
    }
    return NULL;
}

struct found {
    const char *key, *value;
    bool there;
};

static void find_info(void *arg, const char *key, const char *value)
{
    struct found *f = arg;

    f->there |= strcmp(key, f->key) == 0 && strstr(value, f->value);
}

static void ring_falls_back_to_tcp_when_the_peer_refuses_or_does_not_answer(void **state)
{
    static const struct {
        int answer;
        const char *why;
    } cases[] = { { RING_NO_DESCRIPTOR, "the peer has no file descriptor left" },
                  { RING_NO_MEMORY, "the peer has no memory for it" },
                  { RING_MALFORMED, "the peer refused its memory" },
                  { -1, "the peer does not answer" } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct found f = { "peer.1.not_used", cases[i].why, false };
        struct refusal r = { .answer = cases[i].answer };
        struct node n[2];
        pthread_t thread;

        node_init(&n[0], 0);
        n[0].options.handshake_timeout_ms = 6000; /* half of that for the answer */
        node_share_memory(&n[0]);
        node_open(&n[0]);
        open_node(&n[1], 1, "sleep");
        refusal_listen(&r, &n[1]);
        nodes_start(n, 2);
        if (r.answer >= 0)
            assert_int_equal(pthread_create(&thread, NULL, refusal_run, &r), 0);
        assert_ping(&n[0], 1); /* the first call, which is the only one */
        assert_over(&n[0], "uv");
        n[0].agent.ops->debug_info(&n[0].agent, find_info, &f);
        assert_true(f.there);
        assert_int_equal(atomic_load(&n[0].lost), 0);
        atomic_store(&r.over, true);
        if (r.answer >= 0)
            pthread_join(thread, NULL);
        close(r.fd);
        group_close(n, 2);
    }
}

/* A process that is not run for seconds answers late: no reason to do without rings. */
static void ring_waits_for_the_answer_of_a_peer_that_is_not_run_for_seconds(void **state)
{
    struct found f = { "peer.1.not_used", "the peer has no file descriptor left", false };
    struct refusal r = { .answer = RING_NO_DESCRIPTOR };
    struct call c = { .wake_fd = -1 };
    uint64_t since = clock_ns();
    struct node n[2];
    pthread_t thread;

    (void)state;
    open_node(&n[0], 0, "sleep");
    open_node(&n[1], 1, "sleep");
    refusal_listen(&r, &n[1]);
    nodes_start(n, 2);
    call_start(&n[0], &c, 1, request("x"));
    while (clock_ns() - since < UINT64_C(2500000000))
        nap();
    assert_int_equal(pthread_create(&thread, NULL, refusal_run, &r), 0);
    assert_soon(atomic_load(&c.done));
    assert_int_equal(c.status, TENREC_OK);
    call_finish(&c);
    /* This late answer, and not its absence, was what led to TCP. */
    n[0].agent.ops->debug_info(&n[0].agent, find_info, &f);
    assert_true(f.there);
    atomic_store(&r.over, true);
    pthread_join(thread, NULL);
    close(r.fd);
    group_close(n, 2);
}

/* ---- descriptors ---- */

static unsigned count_fds(void)
{
    unsigned n = 0;

    for (int fd = 0; fd < 4096; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void ring_takes_four_descriptors_for_a_pipe(void **state)
{
    static unsigned char data[1 << 20];
    struct node n[2];
    struct call c = { .into = NULL };
    unsigned before;

    (void)state;
    open_pair(n, "sleep");
    before = count_fds();
    assert_ping(&n[0], 1);
    assert_ping(&n[1], 0);
    /* Also when tensors were read out of each other's memory. */
    assert_int_equal(call_sync(&n[0], 1, message_of(7, "x", 1, 1, data, sizeof data), &c), 0);
    call_finish(&c);
    /* Both ends of both pipes are in this process. */
    assert_soon(count_fds() == before + 2 * 8);
    group_close(n, 2);
}

/* Where TCP alone would do, rings do, or TCP in their place, in the first call. With fewer, what
 * the peer keeps for itself leaves nothing for connections that come in. */
static void ring_or_tcp_carries_the_call_when_only_the_peer_lacks_descriptors(void **state)
{
    unsigned over_tcp = 0, over_ring = 0;

    (void)state;
    for (far_spare = 20; far_spare <= 44; far_spare += 4) {
        struct found refused = { "peer.1.not_used", "tenrec_ring", false };
        const char *want = "uv";
        struct node n[2];
        struct far far = far_open(n, "sleep");

        assert_ping(&n[0], 1);
        n[0].agent.ops->debug_info(&n[0].agent, find_info, &refused);
        assert_false(refused.there); /* the peer's answer named TCP */
        n[0].agent.ops->debug_info(&n[0].agent, compare, &want);
        over_tcp += !want;
        over_ring += want != NULL;
        far_close(&far, n);
    }
    far_spare = 0;
    assert_int_equal(over_tcp + over_ring, 7);
    assert_true(over_ring > 0);
}

static void agent_raises_the_soft_limit_as_far_as_the_hard_one(void **state)
{
    static const rlim_t hard[] = { 0, 100 };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        int status;
        pid_t child = fork();

        if (child == 0) {
            struct rlimit limit;
            struct node n[2];

            getrlimit(RLIMIT_NOFILE, &limit);
            if (hard[i])
                limit.rlim_max = hard[i];
            limit.rlim_cur = 64;
            setrlimit(RLIMIT_NOFILE, &limit);
            open_pair(n, "sleep");
            assert_ping(&n[0], 1);
            getrlimit(RLIMIT_NOFILE, &limit);
            _exit(limit.rlim_cur == (hard[i] ? hard[i] : 160 + 2 * 8) ? 0 : 1);
        }
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_ends_a_wait_when_the_other_process_is_killed),
        cmocka_unit_test(ring_fails_what_is_queued_when_the_other_process_is_killed),
        cmocka_unit_test(ring_waits_for_a_reader_that_stops_for_a_while),
        cmocka_unit_test(ring_loses_no_wake_up_whoever_reads),
        cmocka_unit_test(ring_carries_small_and_large_messages_both_ways_at_once),
        cmocka_unit_test(ring_uses_no_cpu_when_nothing_comes),
        cmocka_unit_test(ring_is_not_used_by_who_is_elsewhere),
        cmocka_unit_test(ring_is_left_out_where_it_leads_nowhere),
        cmocka_unit_test(ring_falls_back_to_tcp_when_the_peer_refuses_or_does_not_answer),
        cmocka_unit_test(ring_waits_for_the_answer_of_a_peer_that_is_not_run_for_seconds),
        cmocka_unit_test(ring_takes_four_descriptors_for_a_pipe),
        cmocka_unit_test(ring_or_tcp_carries_the_call_when_only_the_peer_lacks_descriptors),
        cmocka_unit_test(agent_raises_the_soft_limit_as_far_as_the_hard_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
