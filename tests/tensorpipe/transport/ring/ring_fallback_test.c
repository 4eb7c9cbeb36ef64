/* SPDX-License-Identifier: Apache-2.0 */
/* ring_fallback_test.c - pipes that take another transport, because a ring cannot be reached, or
 * their listener refuses or does not answer. */
#include "far.h"

#include "agent/agent.h"
#include "pipe/pipe.h"
#include "transport/ring/ring.h"
#include "transport/ring/transport_ring.h"
#include "transport/transport_local.h"
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

TEST(ring_is_not_used_by_a_peer_on_another_host)
{
    struct node n[2];
    struct agent *a;

    open_node(&n[0], 0, "sleep");
    open_node(&n[1], 1, "sleep");
    a = n[1].agent.impl;
    /* As if it were in another namespace, for all ways through shared memory. */
    for (unsigned i = 0; i < a->listener.n_ports; i++)
        if (strcmp(a->listener.port[i].transport->option, "shm") == 0)
            a->listener.port[i].domain[0] ^= 1;
    nodes_start(n, 2);
    assert_ping(&n[0], 1);
    assert_over(&n[0], "uv");
    group_close(n, 2);
}

/* Equal domains, and an address that leads nowhere. */
TEST(ring_is_left_out_when_its_address_leads_nowhere)
{
    struct node n[2];
    struct agent *a;

    open_node(&n[0], 0, "sleep");
    open_node(&n[1], 1, "sleep");
    a = n[1].agent.impl;
    snprintf(a->listener.port[0].address, sizeof a->listener.port[0].address,
             "nobody listens there");
    nodes_start(n, 2);
    assert_ping(&n[0], 1);
    assert_over(&n[0], "uv");
    assert_int_equal(atomic_load(&n[0].lost), 0);
    group_close(n, 2);
}

/* A listener of the test at the address of a node's rings. `answer`: to the memory of a
 * caller; -1: it accepts no caller. */
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
        char memory[64];
        int fd = accept4(r->fd, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0) {
            nap();
            continue;
        }
        /* Closing before the memory has arrived would break the caller's pipe. */
        recv(fd, memory, sizeof memory, 0);
        send(fd, &answer, 1, MSG_NOSIGNAL); /* fails when the caller has gone on already */
        close(fd);
    }
    return NULL;
}

TEST(ring_falls_back_to_tcp_when_the_peer_refuses_or_does_not_answer)
{
    static const struct {
        int answer;
        const char *why;
    } cases[] = { { RING_NO_DESCRIPTOR, "the peer has no file descriptor left" },
                  { RING_NO_MEMORY, "the peer has no memory for it" },
                  { RING_MALFORMED, "the peer refused its memory" },
                  { -1, "the peer does not answer" } };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
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
        assert_true(node_tells(&n[0], "peer.1.not_used", cases[i].why));
        assert_int_equal(atomic_load(&n[0].lost), 0);
        atomic_store(&r.over, true);
        if (r.answer >= 0)
            pthread_join(thread, NULL);
        close(r.fd);
        group_close(n, 2);
    }
}

/* The queue of a listener that accepts nothing, full. */
struct queue {
    struct agent *agent;
    struct listener_port *port;
    int fd[16], n;
};

static void queue_fill(struct queue *q, struct node *n)
{
    union transport_address at;

    *q = (struct queue){ .agent = n->agent.impl };
    q->port = &q->agent->listener.port[0];
    assert_ptr_equal(q->port->transport, &transport_ring);
    reactor_unwatch(&q->agent->ep.reactor, &q->port->source);
    assert_int_equal(listen(q->port->source.fd, 0), 0);
    assert_int_equal(local_parse(q->port->address, strlen(q->port->address), &at, NULL), 0);
    do {
        assert_true(q->n < 16);
        q->fd[q->n] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    } while (local_connect(q->fd[q->n++], &at) == 0);
}

static void queue_accept(struct queue *q)
{
    while (q->n > 0)
        close(q->fd[--q->n]);
    assert_int_equal(reactor_rewatch(&q->agent->ep.reactor, &q->port->source, EPOLLIN), 0);
}

static void see_opening(struct pipe *p, void *arg)
{
    bool *opening = arg;

    *opening = *opening || pipe_state(p) >= PIPE_OPENING;
}

static bool opens(struct agent *a)
{
    bool opening = false;

    pipe_table_each(&a->pipes, see_opening, &opening);
    return opening;
}

static atomic_bool turned;

static void note_turn(struct reactor_task *t)
{
    (void)t;
    atomic_store(&turned, true);
}

/* The loop begins to connect in the turn in which the pipe begins to open. */
static void await_first_try(struct node *n)
{
    static struct reactor_task turn = { .run = note_turn };
    struct agent *a = n->agent.impl;

    assert_becomes(opens(a));
    atomic_store(&turned, false);
    reactor_post(&a->ep.reactor, &turn);
    assert_becomes(atomic_load(&turned));
}

TEST(ring_is_used_when_the_queue_of_its_listener_was_full)
{
    struct call c = { .wake_fd = -1 };
    struct node n[2];
    struct queue q;

    open_pair(n, "sleep");
    queue_fill(&q, &n[1]);
    call_start(&n[0], &c, 1, request("x"));
    await_first_try(&n[0]);
    assert_false(atomic_load(&c.done));
    queue_accept(&q);
    assert_becomes(atomic_load(&c.done));
    assert_int_equal(c.status, TENREC_OK);
    call_finish(&c);
    assert_over(&n[0], "tenrec_ring");
    group_close(n, 2);
}

TEST(ring_is_left_out_when_the_queue_of_its_listener_stays_full)
{
    struct node n[2];
    struct queue q;

    node_init(&n[0], 0);
    n[0].options.handshake_timeout_ms = 4000; /* half of that for the queue */
    node_share_memory(&n[0]);
    node_open(&n[0]);
    open_node(&n[1], 1, "sleep");
    nodes_start(n, 2);
    queue_fill(&q, &n[1]);
    assert_ping(&n[0], 1);
    assert_over(&n[0], "uv");
    assert_true(node_tells(&n[0], "peer.1.not_used", "its queue of them stays full"));
    queue_accept(&q);
    group_close(n, 2);
}

/* A process that is not run for seconds answers late: no reason to do without rings. */
TEST(ring_waits_for_the_answer_of_a_peer_that_is_not_run_for_seconds)
{
    struct refusal r = { .answer = RING_NO_DESCRIPTOR };
    struct call c = { .wake_fd = -1 };
    uint64_t since = clock_ns();
    struct node n[2];
    pthread_t thread;

    open_node(&n[0], 0, "sleep");
    open_node(&n[1], 1, "sleep");
    refusal_listen(&r, &n[1]);
    nodes_start(n, 2);
    call_start(&n[0], &c, 1, request("x"));
    while (clock_ns() - since < UINT64_C(2500000000))
        nap();
    assert_int_equal(pthread_create(&thread, NULL, refusal_run, &r), 0);
    assert_becomes(atomic_load(&c.done));
    assert_int_equal(c.status, TENREC_OK);
    call_finish(&c);
    /* This late answer, and not its absence, was what led to TCP. */
    assert_true(node_tells(&n[0], "peer.1.not_used", "the peer has no file descriptor left"));
    atomic_store(&r.over, true);
    pthread_join(thread, NULL);
    close(r.fd);
    group_close(n, 2);
}
