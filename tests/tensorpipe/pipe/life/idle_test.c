/* SPDX-License-Identifier: Apache-2.0 */
/* idle_test.c - pipes that have carried nothing for idle_timeout. */
#include "node.h"
#include "raw.h"

#include "pipe/pipe_message.h"

#include <unistd.h>

#define LARGE ((size_t)1 << 20)
#define SOON_MS 20
#define THREADS 4
#define ROUNDS 50

static struct node n[2];
static unsigned char data[LARGE];

static void open_with(uint64_t idle_ms, bool needs)
{
    for (int i = 0; i < 2; i++) {
        node_init(&n[i], i);
        n[i].options.progress = "adaptive";
        n[i].options.idle_timeout_ms = idle_ms;
        atomic_store(&n[i].needs, needs);
        node_open(&n[i]);
    }
    nodes_start(n, 2);
}

static void setup(void)
{
    open_with(SOON_MS, false);
}

static void setup_at_once(void)
{
    open_with(1, false);
}

static void setup_needed(void)
{
    open_with(SOON_MS, true);
}

static void teardown(void)
{
    group_close(n, 2);
}

static bool have_parted(uint64_t times)
{
    return node_counter(&n[0], "pipes_parted") == times &&
           node_counter(&n[1], "pipes_parted") == times;
}

static void assert_no_loss(void)
{
    for (int i = 0; i < 2; i++) {
        assert_int_equal(atomic_load(&n[i].lost), 0);
        assert_int_equal(atomic_load(&n[i].callers_lost), 0);
        assert_int_equal(node_counter(&n[i], "pipes_broken"), 0);
    }
}

TEST_WITH(pipe_is_closed_when_it_is_idle_and_the_next_call_opens_another, setup, teardown)
{
    for (uint64_t i = 1; i <= 3; i++) {
        assert_ping(&n[0], 1);
        assert_becomes(have_parted(i));
        assert_becomes(node_counter(&n[0], "connections") == 0);
        assert_becomes(node_counter(&n[1], "connections") == 0);
        assert_int_equal(node_counter(&n[0], "pipes_opened"), i);
    }
    assert_no_loss();
}

TEST_WITH(pipe_each_way_is_closed_by_its_caller, setup, teardown)
{
    assert_ping(&n[0], 1);
    assert_ping(&n[1], 0);
    assert_becomes(have_parted(2));
    assert_no_loss();
}

static struct tenrec_msg *_Atomic held;

static void hold_request(struct node *of, tenrec_peer from, struct tenrec_msg *msg)
{
    (void)of, (void)from;
    atomic_store(&held, msg);
}

TEST_WITH(pipe_is_kept_while_a_call_waits_for_its_answer, setup, teardown)
{
    struct call c = { .wake_fd = -1 };

    /* The pipe the other way comes and goes meanwhile. */
    n[1].on_request = hold_request;
    call_start(&n[0], &c, 1, request("x"));
    assert_becomes(atomic_load(&held) != NULL);
    for (uint64_t i = 1; i <= 3; i++) {
        assert_ping(&n[1], 0);
        assert_becomes(have_parted(i));
    }
    assert_becomes(node_counter(&n[0], "connections") == 1);
    echo_request(&n[1], 0, atomic_exchange(&held, NULL));
    call_wait(&n[0], &c, 1);
    assert_int_equal(c.status, TENREC_OK);
    call_finish(&c);
    assert_becomes(have_parted(4));
    assert_no_loss();
}

TEST_WITH(pipe_is_kept_while_its_end_has_to_be_noticed, setup_needed, teardown)
{
    struct call c = { .wake_fd = -1 };

    assert_ping(&n[0], 1);
    assert_ping(&n[1], 0);
    atomic_store(&n[1].needs, false);
    assert_becomes(node_counter(&n[1], "pipes_parted") == 1);
    assert_becomes(node_counter(&n[0], "connections") == 1);
    assert_no_loss();
    node_shutdown(&n[1]);
    assert_becomes(atomic_load(&n[0].lost) == 1);
    call_start(&n[0], &c, 1, request("x"));
    assert_call_fails(&c, TENREC_ECONNECT);
}

TEST_WITH(call_fails_when_its_peer_has_ended_after_the_pipe, setup, teardown)
{
    struct call c = { .wake_fd = -1 };

    assert_ping(&n[0], 1);
    assert_becomes(have_parted(1));
    node_shutdown(&n[1]);
    call_start(&n[0], &c, 1, request("x"));
    assert_call_fails(&c, TENREC_ECONNECT);
    assert_int_equal(atomic_load(&n[0].lost), 0);
}

/* ---- messages at the same moment ---- */

static atomic_uint notes;

static void note_or_echo(struct node *of, tenrec_peer from, struct tenrec_msg *msg)
{
    if (msg->type != TENREC_MSG_ONE_WAY_CALL) {
        echo_request(of, from, msg);
        return;
    }
    atomic_fetch_add(&notes, 1);
    msg->release(msg);
}

/* Sends when another pipe has just been closed, about. */
static void *send_at_each_end(void *arg)
{
    const struct tenrec_done no_done = { NULL, NULL };
    const unsigned which = *(const unsigned *)arg;
    struct node *from = &n[which % 2];
    const tenrec_peer to = 1 - (tenrec_peer)(which % 2);
    struct call c = { .wake_fd = -1 };

    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t seen = node_counter(from, "pipes_parted");
        const bool large = which >= 2 && i >= ROUNDS / 2 && i % 5 == 0; /* then a ring stays */

        from->agent.ops->send(
            &from->agent, to,
            message_of(TENREC_MSG_ONE_WAY_CALL, "n", 1, large ? 1 : 0, data, large ? LARGE : 0),
            no_done);
        assert_int_equal(call_sync(from, to, request("x"), &c), TENREC_OK);
        call_finish(&c);
        for (int looks = 0; looks < 20 && node_counter(from, "pipes_parted") == seen; looks++)
            nap();
    }
    return NULL;
}

TEST_WITH(message_arrives_once_when_it_is_sent_as_the_pipe_ends, setup_at_once, teardown)
{
    pthread_t t[THREADS];
    unsigned which[THREADS];

    atomic_store(&notes, 0);
    n[0].on_request = n[1].on_request = note_or_echo;
    for (unsigned i = 0; i < THREADS; i++) {
        which[i] = i;
        pthread_create(&t[i], NULL, send_at_each_end, &which[i]);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    assert_becomes(atomic_load(&notes) == THREADS * ROUNDS);
    assert_int_equal(atomic_load(&n[0].requests) + atomic_load(&n[1].requests),
                     2 * THREADS * ROUNDS);
    assert_true(node_counter(&n[0], "pipes_parted") > 0);
    assert_no_loss();
}

/* ---- peers by hand ---- */

TEST_WITH(listener_agrees_when_the_caller_says_that_nothing_follows, setup, teardown)
{
    unsigned char buf[256];
    struct raw_pipe p;
    int64_t id;
    long len;

    raw_pipe_defer(&p, n[1].address);
    raw_send(p.fd[0], buf, raw_message(buf, PIPE_MESSAGE, PIPE_NOTHING_FOLLOWS, NULL, 0));
    assert_int_equal(raw_recv_message(&p, &id, buf, sizeof buf, &len), PIPE_MESSAGE);
    assert_int_equal(id, PIPE_AGREES);
    close(p.fd[0]);
    assert_becomes(node_counter(&n[1], "pipes_parted") == 1);
    assert_int_equal(node_counter(&n[1], "pipes_broken"), 0);
}

int main(void)
{
    return testing_run(NULL, NULL);
}
