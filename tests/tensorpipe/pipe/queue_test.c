/* SPDX-License-Identifier: Apache-2.0 */
/* queue_test.c - messages queued for writing: bounded, waited for, drained, canceled. */
#include "../../../tools/conformance/heap_use.h"
#include "agent/agent.h"
#include "node.h"
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

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
static void open_clogged_at(struct node *n, size_t limit)
{
    for (int i = 0; i < 2; i++) {
        node_init(&n[i], i);
        n[i].options.max_queued_bytes = limit;
        node_open(&n[i]);
    }
    nodes_start(n, 2);
    assert_ping(&n[0], 1);
    atomic_store(&n[1].refuse_requests, true);
}

static void open_clogged(struct node *n)
{
    open_clogged_at(n, 1000000);
}

TEST(queue_refuses_sends_beyond_its_queue_limit)
{
    static struct call c[NODE_CALLS];
    struct node n[2];
    struct call control = { .wake_fd = -1 };
    struct tenrec_msg *msg = request("c");
    size_t accepted;

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
        assert_becomes(atomic_load(&c[i].done));
        assert_int_equal(c[i].status, TENREC_OK);
        call_finish(&c[i]);
    }
    assert_becomes(atomic_load(&control.done));
    call_finish(&control);
    group_close(n, 2);
}

TEST(queue_waits_for_room_until_the_deadline)
{
    static struct call c[NODE_CALLS];
    static char payload[200000];
    struct node n[2];
    struct call late = { .wake_fd = -1 };
    struct tenrec_msg *msg = message_of(TENREC_MSG_CALL, payload, sizeof payload, 0, NULL, 0);
    size_t accepted;

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

TEST(queue_lets_a_waiting_send_go_on_when_there_is_room)
{
    static struct call c[NODE_CALLS];
    struct node n[2];
    pthread_t t;
    size_t accepted;
    void *st;

    open_clogged(n);
    fill_queue(&n[0], c, &accepted);
    pthread_create(&t, NULL, send_waiting, &n[0]);
    nap();
    atomic_store(&n[1].refuse_requests, false);
    n[1].agent.ops->resume(&n[1].agent);
    pthread_join(t, &st);
    assert_int_equal((intptr_t)st, TENREC_OK);
    for (size_t i = 0; i < accepted; i++) {
        assert_becomes(atomic_load(&c[i].done));
        call_finish(&c[i]);
    }
    group_close(n, 2);
}

TEST(queue_cancels_everything_at_shutdown)
{
    static struct call c[NODE_CALLS];
    struct node n[2];
    tenrec_error err;
    pthread_t t;
    size_t accepted, canceled = 0;
    unsigned told;
    void *st;

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
    /* Every send was completed: the pings', the accepted, the refused, the waiting send. */
    told = atomic_load(&n[0].told);
    assert_int_equal(told, 1 + accepted + 1 + 1);
    /* And what comes later is refused. */
    c[0] = (struct call){ .wake_fd = -1 };
    memset(n[0].call, 0, sizeof n[0].call);
    call_start(&n[0], &c[0], 1, request("x"));
    assert_int_equal(c[0].status, TENREC_ESHUTDOWN);
    group_close(n, 2);
}

TEST(queue_drains_queued_messages)
{
    static char payload[3000000];
    struct node n[2];
    struct call c = { .wake_fd = -1 };
    tenrec_error err;

    group_open(n, 2, "sleep");
    call_start(&n[0], &c, 1, message_of(TENREC_MSG_CALL, payload, sizeof payload, 0, NULL, 0));
    assert_int_equal(n[0].agent.ops->drain(&n[0].agent, 20000, &err), TENREC_OK);
    assert_int_equal(atomic_load(&n[0].told), 1);
    assert_becomes(atomic_load(&c.done));
    call_finish(&c);
    group_close(n, 2);
}

struct flood {
    atomic_uint told, full, late;
};

static void flood_told(void *arg, const tenrec_error *err)
{
    struct flood *f = arg;

    atomic_fetch_add(&f->told, 1);
    if (err && err->code == TENREC_EAGAIN)
        atomic_fetch_add(&f->full, 1);
    if (err && err->code == TENREC_ETIMEDOUT)
        atomic_fetch_add(&f->late, 1);
}

#define SMALL 100
#define LARGE 65536 /* goes over a lane */

/* Messages with a payload and a tensor of as many bytes each, to a peer that reads none. */
static void flood_send(struct node *n, struct flood *f, unsigned count, size_t bytes,
                       uint64_t deadline_ns)
{
    static char data[LARGE];

    for (unsigned i = 0; i < count; i++) {
        struct tenrec_msg *msg = message_of(TENREC_MSG_CALL, data, bytes, 1, data, bytes);

        msg->id = 1000000 + i;
        msg->deadline_ns = deadline_ns;
        n->agent.ops->send(&n->agent, 1, msg, (struct tenrec_done){ flood_told, f });
    }
}

TEST(queue_charges_small_tensors_with_all_held_memory)
{
    const size_t limit = 32u << 20;
    struct node n[2];
    struct flood f = { 0 };
    size_t before;

    open_clogged_at(n, limit);
    before = heap_use();
    flood_send(&n[0], &f, 200000, SMALL, 0);
    assert_true(atomic_load(&f.full) > 0);
    /* Something is written, into the socket or the ring; the rest is held. */
    assert_true(heap_use() - before < limit + (limit >> 2));
    group_close(n, 2);
    assert_int_equal(atomic_load(&f.told), 200000);
}

/* Ends the test of `count` requests with a deadline that has passed. */
static void assert_rest_is_whole(struct node *n, struct flood *f, unsigned count)
{
    assert_int_equal(atomic_load(&f->full), 0);
    assert_true(atomic_load(&f->late) > 0);
    atomic_store(&n[1].refuse_requests, false);
    n[1].agent.ops->resume(&n[1].agent);
    assert_ping(&n[0], 1);
    assert_becomes(atomic_load(&f->told) == count);
    /* The ping may have overtaken those with tensors. */
    assert_becomes(atomic_load(&n[1].requests) == count - atomic_load(&f->late) + 2);
    group_close(n, 2);
}

TEST(queue_withdraws_requests_whose_deadline_has_passed)
{
    const unsigned count = 20000; /* more than sockets take */
    struct node n[2];
    struct flood f = { 0 };

    open_clogged_at(n, 256u << 20);
    flood_send(&n[0], &f, count, SMALL, clock_ns() + 1000000);
    assert_becomes(atomic_load(&f.told) + 1 >= count);
    assert_rest_is_whole(n, &f, count);
}

TEST(queue_withdraws_requests_whose_tensors_wait_for_lanes)
{
    const unsigned count = 1000;
    struct node n[2];
    struct flood f = { 0 };

    open_clogged_at(n, 256u << 20);
    flood_send(&n[0], &f, count, LARGE, clock_ns() + 1000000);
    assert_becomes(atomic_load(&f.late) > 0);
    assert_rest_is_whole(n, &f, count);
}

/* Keeps the loop thread, so that no pipe is made meanwhile. */
struct hold {
    struct reactor_task task;
    pthread_mutex_t lock;
    atomic_bool over;
};

static void hold(struct reactor_task *t)
{
    struct hold *h = (struct hold *)(void *)t;

    pthread_mutex_lock(&h->lock);
    pthread_mutex_unlock(&h->lock);
    atomic_store(&h->over, true);
}

TEST(queue_withdraws_requests_that_waited_for_the_handshake)
{
    const unsigned count = 20000;
    struct hold h = { .task.run = hold };
    struct node n[2];
    struct flood f = { 0 };

    open_clogged_at(n, 256u << 20);
    assert_int_equal(n[0].agent.ops->disconnect(&n[0].agent, 1, NULL), TENREC_OK);
    assert_becomes(atomic_load(&n[0].lost) == 1);
    pthread_mutex_init(&h.lock, NULL);
    pthread_mutex_lock(&h.lock);
    assert_true(reactor_post(&((struct agent *)n[0].agent.impl)->ep.reactor, &h.task));
    flood_send(&n[0], &f, count, SMALL, clock_ns() + 1000000);
    pthread_mutex_unlock(&h.lock);
    assert_becomes(atomic_load(&h.over));
    pthread_mutex_destroy(&h.lock);
    assert_becomes(atomic_load(&f.told) + 1 >= count);
    assert_rest_is_whole(n, &f, count);
}
