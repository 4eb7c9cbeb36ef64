/* SPDX-License-Identifier: Apache-2.0 */
/* crowd_test.c - many callers, many calls in flight, several processes. */
#include "raw.h"

#include "node.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(crowd_calls_between_processes_and_sees_a_process_killed)
{
    struct node n[2];
    struct call c = { .wake_fd = -1 };
    char address[sizeof n[0].address];
    int there[2], back[2], status;
    pid_t child;

    assert_int_equal(pipe(there), 0);
    assert_int_equal(pipe(back), 0);
    child = fork();
    for (int i = 0; i < 2; i++)
        node_init(&n[i], i);
    node_open(&n[child == 0]);
    if (child == 0) {
        n[1].on_request = echo_request;
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
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
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

TEST(crowd_serves_many_callers_of_one_peer)
{
    static const char *const modes[] = { "sleep", "adaptive", "busy" };

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

TEST(crowd_keeps_64_calls_in_flight_from_callbacks)
{
    static const char *const modes[] = { "sleep", "adaptive", "busy" };

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
        assert_becomes(atomic_load(&chain.done));
        /* Gathered: far fewer system calls than messages. */
        assert_true(node_counter(&n[1], "sends") < node_counter(&n[1], "messages_sent") / 2);
        group_close(n, 2);
    }
}
