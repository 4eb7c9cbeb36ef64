/* SPDX-License-Identifier: Apache-2.0 */
/* ring_link_test.c - rings between two processes, one of which dies or stops, with as
 * much in flight as possible. */
#include "far.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#define PIECE (1u << 20)

/* ---- the other one dies ---- */

static void *wait_for_nothing(void *arg)
{
    struct call c = { .id = 0 };

    return (void *)(intptr_t)call_sync(arg, 1, request("keep"), &c);
}

TEST(ring_ends_a_wait_when_the_other_process_is_killed)
{
    for (size_t m = 0; m < 3; m++) {
        struct node n[2];
        struct far far = far_open(n, far_modes[m], 0);
        uint64_t since;
        pthread_t t;
        void *st;

        assert_ping(&n[0], 1);
        assert_over(&n[0], "tenrec_ring");
        pthread_create(&t, NULL, wait_for_nothing, &n[0]);
        assert_becomes(node_counter(&n[0], "messages_sent") == 2);
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

TEST(ring_fails_queued_messages_when_the_other_process_is_killed)
{
    unsigned char *data = calloc(1, PIECE);

    for (size_t m = 0; m < 3; m++) {
        struct node n[2];
        struct far far = far_open(n, far_modes[m], 0);
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

TEST(ring_waits_for_a_reader_that_stops_for_a_while)
{
    unsigned char *data = calloc(1, PIECE);

    for (size_t m = 0; m < 3; m++) {
        struct node n[2];
        struct far far = far_open(n, far_modes[m], 0);
        struct call c[16];

        assert_ping(&n[0], 1);
        kill(far.pid, SIGSTOP);
        send_pieces(&n[0], c, 16, data);
        kill(far.pid, SIGCONT);
        for (int i = 0; i < 16; i++) {
            assert_becomes(atomic_load(&c[i].done));
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
    const size_t len = 16u << 20; /* many times the size of a ring */
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

TEST(ring_carries_small_and_large_messages_both_ways_at_once)
{
    for (size_t m = 0; m < 3; m++) {
        struct node n[2];
        struct stream s[2] = { { &n[0], 1 }, { &n[1], 0 } };
        pthread_t t[4];

        open_pair(n, far_modes[m]);
        for (int i = 0; i < 2; i++) {
            pthread_create(&t[2 * i], NULL, send_small, &s[i]);
            pthread_create(&t[2 * i + 1], NULL, send_large, &s[i]);
        }
        for (int i = 0; i < 4; i++)
            pthread_join(t[i], NULL);
        group_close(n, 2);
    }
}

/* Callers of all kinds: each call sleeps, spins or is read by another thread, by
 * chance. */
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

TEST(ring_loses_no_wake_up_of_any_reader)
{
    for (size_t m = 0; m < 3; m++) {
        struct node n[2];
        struct far far = far_open(n, far_modes[m], 0);
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

TEST(ring_uses_no_cpu_when_nothing_comes)
{
    for (size_t m = 0; m < 2; m++) {
        struct node n[2];
        uint64_t before;

        open_pair(n, far_modes[m]);
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
