/* SPDX-License-Identifier: Apache-2.0 */
/* queue_test.c - the error of a sender when its peer takes nothing.
 *
 *     queue_test CONFIG */
#include "../testing.h"
#include "conformance/world.h"

#include "core/base/clock.h"

#include <stdlib.h>

enum { PIECE = 512 << 10, MOST = 400 /* far beyond the window and the queue */ };

static const char *config_path;
static struct world w;
static struct side *a, *b;
static char *bytes;

static void set_up(void)
{
    world_open(&w, NULL, config_path, 2, NULL);
    a = &w.worker[0];
    b = &w.worker[1];
    bytes = calloc(1, 9 << 20);
}

static void tear_down(void)
{
    world_close(&w);
    free(bytes);
}

/* Sends until a send has waited in vain for room; the number of sends that went. */
static int fill(struct tally *t)
{
    int n = 0;

    atomic_store(&b->refuses, true);
    for (; n < MOST && atomic_load(&t->failed) == 0; n++) {
        struct tenrec_msg *msg = make_request(n, bytes, PIECE, 0, t);
        msg->flags |= TENREC_MSG_MAY_WAIT;
        msg->deadline_ns = clock_deadline_ms(500 * testing_slow());
        send_msg(a, b->id, msg, t);
    }
    return n - 1;
}

TEST_WITH(ucx_queue_refuses_sends_when_the_peer_takes_nothing, set_up, tear_down)
{
    static struct tally t;
    const int n = fill(&t);

    assert_int_equal(atomic_load(&t.last_error), TENREC_EAGAIN);
    assert_true(n >= (64 << 20) / PIECE && n < MOST - 1);
    atomic_store(&b->refuses, false);
    chain_resume(b->chain);
    assert_becomes(side_count(b) == (size_t)n);
    for (int i = 0; i < n; i++)
        assert_int_equal(side_got(b, (size_t)i, NULL)->id, i);
    assert_becomes(atomic_load(&t.ok) == n && atomic_load(&t.released) == n + 1);
}

TEST_WITH(ucx_queue_lets_control_messages_pass_its_limit, set_up, tear_down)
{
    static struct tally t, control;
    struct tenrec_msg *msg;

    fill(&t);
    msg = make_request(7, bytes, PIECE, 0, &control);
    msg->flags |= TENREC_MSG_CONTROL;
    send_msg(a, b->id, msg, &control);
    assert_int_equal(atomic_load(&control.failed), 0);
}

TEST_WITH(ucx_queue_lets_a_sender_wait_until_its_deadline, set_up, tear_down)
{
    static struct tally t, late;
    const uint64_t since = clock_now_ns();
    struct tenrec_msg *msg;

    fill(&t);
    msg = make_request(7, bytes, PIECE, 0, &late);
    msg->flags |= TENREC_MSG_MAY_WAIT;
    msg->deadline_ns = clock_deadline_ms(50);
    send_msg(a, b->id, msg, &late);
    assert_int_equal(atomic_load(&late.last_error), TENREC_EAGAIN);
    assert_true(clock_now_ns() - since >= 50 * UINT64_C(1000000));
}

static void *resume_soon(void *arg)
{
    (void)arg;
    atomic_store(&b->refuses, false);
    chain_resume(b->chain);
    return NULL;
}

TEST_WITH(ucx_queue_wakes_a_sender_when_there_is_room, set_up, tear_down)
{
    static struct tally t, waits;
    struct tenrec_msg *msg;
    pthread_t thread;

    fill(&t);
    msg = make_request(7, bytes, PIECE, 0, &waits);
    msg->flags |= TENREC_MSG_MAY_WAIT;
    assert_int_equal(pthread_create(&thread, NULL, resume_soon, NULL), 0);
    send_msg(a, b->id, msg, &waits);
    pthread_join(thread, NULL);
    assert_becomes(atomic_load(&waits.ok) == 1);
}

TEST_WITH(ucx_queue_answers_pass_while_requests_wait, set_up, tear_down)
{
    static struct tally t, other;

    fill(&t);
    atomic_store(&a->answers, true);
    send_ping(b, a->id, 3, &other);
    assert_becomes(side_got(b, 0, NULL));
    assert_int_equal(side_got(b, 0, NULL)->type, TENREC_MSG_RET);
}

TEST_WITH(ucx_queue_refuses_a_message_above_max_message, set_up, tear_down)
{
    static struct tally t;

    /* The first before the peer has said its limit. */
    for (int i = 1; i <= 2; i++) {
        send_msg(a, b->id, make_request(1, bytes, (8 << 20) + 1, 0, &t), &t);
        assert_becomes(atomic_load(&t.failed) == i);
        assert_int_equal(atomic_load(&t.last_error), TENREC_ETOOBIG);
    }
    send_ping(a, b->id, 2, &t);
    assert_becomes(side_count(b) == 1);
    assert_int_equal(side_got(b, 0, NULL)->id, 2);
}

TEST_WITH(ucx_queue_refuses_tensors_of_devices, set_up, tear_down)
{
    static struct tally t;

    for (int i = 0; i < 2; i++) {
        struct tenrec_msg *msg = make_request(1, "x", 1, 1, &t);

        *msg->tensors =
            (struct tenrec_tensor_desc){ .data = bytes,
                                         .bytes = 8,
                                         .dtype = { TENREC_DTYPE_UINT, 8, 1 },
                                         .device = { i ? TENREC_CPU : TENREC_CUDA, 0 },
                                         .target = { i ? TENREC_CUDA : TENREC_CPU, 0 } };
        send_msg(a, b->id, msg, &t);
        assert_int_equal(atomic_load(&t.last_error), TENREC_EUNSUPPORTED);
    }
    assert_int_equal(atomic_load(&t.released), 2);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    config_path = argv[1];
    return testing_run(NULL, NULL);
}
