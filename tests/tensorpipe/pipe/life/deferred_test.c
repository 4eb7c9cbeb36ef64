/* SPDX-License-Identifier: Apache-2.0 */
/* deferred_test.c - connections that open with the first tensor that needs them. */
#include "node.h"
#include "raw.h"

#include "pipe/pipe_deferred.h"

#include <stdlib.h>
#include <unistd.h>

#define LARGE ((size_t)1 << 20)

static struct node n[2];
static unsigned char data[LARGE];

static void setup(void)
{
    for (size_t i = 0; i < LARGE; i++)
        data[i] = (unsigned char)(i * 31 >> 8);
    group_open(n, 2, "adaptive");
}

static void teardown(void)
{
    group_close(n, 2);
}

static unsigned conns(struct node *of)
{
    return (unsigned)node_counter(of, "connections");
}

static void answer_with_a_large_tensor(struct node *of, tenrec_peer from, struct tenrec_msg *msg)
{
    (void)from;
    answer(of, msg, message_of(TENREC_MSG_RET, NULL, 0, 1, data, LARGE));
    msg->release(msg);
}

static void assert_large_tensor(const struct call *c)
{
    assert_int_equal(c->status, TENREC_OK);
    assert_int_equal(c->answer->n_tensors, 1);
    assert_int_equal(tenrec_msg_tensor(c->answer, 0)->bytes, LARGE);
    assert_memory_equal(tenrec_msg_tensor(c->answer, 0)->data, data, LARGE);
}

TEST_WITH(pipe_opens_no_further_connection_for_small_messages, setup, teardown)
{
    for (int i = 0; i < 10; i++)
        assert_ping(&n[0], 1);
    assert_int_equal(conns(&n[0]), 1);
    assert_int_equal(conns(&n[1]), 1);
}

TEST_WITH(pipe_opens_them_when_the_caller_has_a_tensor, setup, teardown)
{
    struct call c = { .into = NULL };

    assert_ping(&n[0], 1);
    call_sync(&n[0], 1, message_of(TENREC_MSG_CALL, "x", 1, 1, data, LARGE), &c);
    assert_large_tensor(&c);
    call_finish(&c);
    assert_true(conns(&n[0]) > 1);
    assert_int_equal(conns(&n[0]), conns(&n[1]));
}

TEST_WITH(pipe_opens_them_when_the_listener_has_a_tensor, setup, teardown)
{
    struct call c = { .into = NULL };

    n[1].on_request = answer_with_a_large_tensor;
    for (int i = 0; i < 3; i++) {
        call_sync(&n[0], 1, request("x"), &c);
        assert_large_tensor(&c);
        call_finish(&c);
    }
    assert_true(conns(&n[0]) > 1);
    assert_int_equal(conns(&n[0]), conns(&n[1]));
}

static void *call_twenty_times(void *arg)
{
    struct call c = { .into = NULL };

    (void)arg;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(
            call_sync(&n[0], 1, message_of(TENREC_MSG_CALL, "x", 1, 1, data, LARGE), &c), 0);
        assert_large_tensor(&c);
        call_finish(&c);
        assert_ping(&n[0], 1);
    }
    return NULL;
}

TEST_WITH(pipe_opens_them_once_for_many_threads, setup, teardown)
{
    pthread_t t[4];

    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, call_twenty_times, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    assert_int_equal(node_counter(&n[0], "pipes_opened"), 1);
    assert_int_equal(conns(&n[0]), conns(&n[1]));
}

/* ---- order ---- */

static int32_t came[2];
static atomic_uint n_came;

static void note_type(struct node *of, tenrec_peer from, struct tenrec_msg *msg)
{
    const unsigned at = atomic_load(&n_came);

    (void)of;
    (void)from;
    assert_true(at < 2);
    came[at] = msg->type;
    atomic_store(&n_came, at + 1);
    msg->release(msg);
}

TEST_WITH(cancel_does_not_overtake_the_tensor_that_waits, setup, teardown)
{
    const struct tenrec_done no_done = { NULL, NULL };
    struct call c = { .wake_fd = -1 };

    assert_ping(&n[0], 1);
    atomic_store(&n_came, 0);
    n[1].on_request = note_type;
    call_start(&n[0], &c, 1, message_of(TENREC_MSG_CALL, "x", 1, 1, data, LARGE));
    n[0].agent.ops->send(&n[0].agent, 1, message_of(TENREC_MSG_CANCEL, NULL, 0, 0, NULL, 0),
                         no_done);
    assert_becomes(atomic_load(&n_came) == 2);
    assert_int_equal(came[0], TENREC_MSG_CALL);
    assert_int_equal(came[1], TENREC_MSG_CANCEL);
    node_shutdown(&n[1]);
    assert_call_fails(&c, TENREC_EPEER_LOST);
}

/* ---- peers that do not keep to it ---- */

static void setup_short(void)
{
    for (size_t i = 0; i < LARGE; i++)
        data[i] = (unsigned char)(i * 31 >> 8);
    for (int i = 0; i < 2; i++) {
        node_init(&n[i], i);
        n[i].options.handshake_timeout_ms = 200;
        node_open(&n[i]);
    }
    nodes_start(n, 2);
}

TEST_WITH(tensor_follows_its_message_when_the_caller_opens_no_connection, setup_short, teardown)
{
    unsigned char buf[256], *tensor = malloc(LARGE);
    struct raw_pipe p;
    int64_t id;
    long len;

    n[1].on_request = answer_with_a_large_tensor;
    raw_pipe_defer(&p, n[1].address);
    raw_send(p.fd[0], buf, raw_message(buf, TENREC_MSG_CALL, 7, "x", 1));
    assert_int_equal(raw_recv_message(&p, &id, buf, sizeof buf, &len), PIPE_MESSAGE);
    assert_int_equal(id, PIPE_WANTS_CHANNEL);
    assert_int_equal(raw_recv_message(&p, &id, buf, sizeof buf, &len), TENREC_MSG_RET);
    assert_int_equal(id, 7);
    assert_int_equal(raw_recv_frame(p.fd[0], tensor, LARGE), LARGE);
    assert_memory_equal(tensor, data, LARGE);
    close(p.fd[0]);
    free(tensor);
}

TEST_WITH(pipe_breaks_at_a_tensor_on_connections_that_are_not_open, setup_short, teardown)
{
    unsigned char buf[2048];
    struct raw_pipe p;

    raw_pipe_defer(&p, n[1].address);
    raw_send(p.fd[0], buf, raw_lanes_message(buf, sizeof buf, 7, LARGE));
    assert_true(raw_closed(p.fd[0]));
    close(p.fd[0]);
    n[1].on_request = echo_request;
    assert_ping(&n[0], 1);
}

int main(void)
{
    return testing_run(NULL, NULL);
}
