/* SPDX-License-Identifier: Apache-2.0 */
/* late_test.c - processes that are not run for a while, in the middle of a handshake. */
#include "raw.h"

#include "node.h"
#include "reactor/reactor.h"
#include "transport/tcp/transport_uv.h"
#include <arpa/inet.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static struct node n[2];

/* Connects from another address of this host. */
static int connect_from(const char *from, const char *address)
{
    struct sockaddr_in here = { .sin_family = AF_INET };
    union transport_address to;
    tenrec_error err;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(inet_pton(AF_INET, from, &here.sin_addr), 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&here, sizeof here), 0);
    address += strlen("uv://");
    assert_int_equal(transport_uv.parse(address, strlen(address), &to, &err), TENREC_OK);
    assert_int_equal(connect(fd, &to.any, sizeof to.v4), 0);
    return fd;
}

TEST(agent_waits_for_the_hello_of_a_caller_that_is_opening_a_pipe)
{
    struct raw_pipe p;
    int silent;

    for (int i = 0; i < 2; i++) {
        node_init(&n[i], i);
        n[i].options.hello_timeout_ms = 100;
        node_open(&n[i]);
    }
    nodes_start(n, 2);
    raw_pipe_ask(&p, n[1].address, NULL);
    p.fd[1] = raw_connect(n[1].address);
    p.fd[2] = raw_connect(n[1].address);
    /* Later than those two: its limit ends after theirs. */
    silent = connect_from("127.0.0.2", n[1].address);
    assert_true(raw_closed(silent));
    raw_hello_requested(p.fd[1], p.id[1]);
    raw_hello_requested(p.fd[2], p.id[2]);
    assert_becomes(node_counter(&n[1], "pipes_accepted") == 1);
    close(silent);
    raw_pipe_close(&p);
    group_close(n, 2);
}

/* ---- callers whose handshake is closed ---- */

struct relay {
    int fd;          /* listens */
    unsigned closes; /* handshakes, before it lets one through */
    const char *to;
};

static bool relay_bytes(int from, int to)
{
    char buf[4096];
    ssize_t got = recv(from, buf, sizeof buf, 0);

    if (got > 0)
        raw_send(to, buf, (size_t)got);
    return got > 0;
}

/* Only the first connection of a pipe comes here: the answer names the agent's own port. */
static void *relay_run(void *arg)
{
    const struct relay *r = arg;
    struct pollfd set[2] = { { .events = POLLIN }, { .events = POLLIN } };
    char byte;

    for (unsigned i = 0; i < r->closes; i++) {
        int fd = raw_accept(r->fd);

        assert_int_equal(recv(fd, &byte, 1, 0), 1);
        close(fd);
    }
    set[0].fd = raw_accept(r->fd);
    set[1].fd = raw_connect(r->to);
    while (poll(set, 2, -1) > 0)
        if ((set[0].revents && !relay_bytes(set[0].fd, set[1].fd)) ||
            (set[1].revents && !relay_bytes(set[1].fd, set[0].fd)))
            break;
    close(set[0].fd);
    close(set[1].fd);
    return NULL;
}

TEST(agent_dials_again_when_the_peer_closes_its_handshake)
{
    char there[sizeof n[1].address], here[64];
    struct relay r = { .closes = 3, .to = there };
    pthread_t thread;

    for (int i = 0; i < 2; i++) {
        node_init(&n[i], i);
        node_open(&n[i]);
    }
    memcpy(there, n[1].address, sizeof there);
    r.fd = raw_listen(here);
    snprintf(n[1].address, sizeof n[1].address, "%s", here);
    assert_int_equal(pthread_create(&thread, NULL, relay_run, &r), 0);
    nodes_start(n, 2);
    assert_ping(&n[0], 1);
    group_close(n, 2);
    pthread_join(thread, NULL);
    close(r.fd);
}

/* ---- a process that was not run for a while ---- */

struct stall {
    struct reactor r;
    struct reactor_task task;
    struct reactor_timer timer;
    struct reactor_source source;
    int write_fd;
    atomic_uint n_events;
    unsigned timer_was, source_was; /* events before it */
};

static void stall_late(struct reactor_timer *t)
{
    struct stall *s = (struct stall *)(void *)((char *)t - offsetof(struct stall, timer));

    s->timer_was = atomic_fetch_add(&s->n_events, 1);
}

static void stall_ready(struct reactor_source *source, uint32_t events)
{
    struct stall *s = (struct stall *)(void *)((char *)source - offsetof(struct stall, source));

    (void)events;
    reactor_unwatch(&s->r, source);
    s->source_was = atomic_fetch_add(&s->n_events, 1);
}

/* The events that the loop finds when its process runs again. */
static void stall_run(struct reactor_task *t)
{
    struct stall *s = (struct stall *)(void *)((char *)t - offsetof(struct stall, task));

    assert_int_equal(reactor_watch(&s->r, &s->source, EPOLLIN), 0);
    assert_int_equal(write(s->write_fd, "x", 1), 1);
    reactor_arm(&s->r, &s->timer, 1);
}

TEST(reactor_reads_bytes_that_arrived_in_time_before_a_limit_expires)
{
    struct stall s = { .task.run = stall_run, .timer.fire = stall_late };
    tenrec_error err;
    int fd[2];

    assert_int_equal(pipe(fd), 0);
    s.source = (struct reactor_source){ .fd = fd[0], .ready = stall_ready };
    s.write_fd = fd[1];
    assert_int_equal(reactor_init(&s.r, &err), TENREC_OK);
    assert_int_equal(reactor_start(&s.r, &err), TENREC_OK);
    reactor_post(&s.r, &s.task);
    assert_becomes(atomic_load(&s.n_events) == 2);
    reactor_stop(&s.r);
    reactor_finish(&s.r);
    assert_int_equal(s.source_was, 0);
    assert_int_equal(s.timer_was, 1);
    close(fd[0]);
    close(fd[1]);
}
