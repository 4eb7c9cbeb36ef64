/* SPDX-License-Identifier: Apache-2.0 */
/* reset_test.c - a connect that the listener's kernel resets, as it does with tcp_abort_on_overflow
 * when a listener has too many to accept. */
#include "raw.h"

#include "agent/agent.h"
#include "node.h"

#include <semaphore.h>
#include <sys/socket.h>
#include <unistd.h>

static struct node n;

/* Holds the loop until it is let go. */
struct hold {
    struct reactor_task task;
    sem_t began, over;
};

static void hold_run(struct reactor_task *t)
{
    struct hold *h = (struct hold *)(void *)t;

    sem_post(&h->began);
    sem_wait(&h->over);
}

static void hold_post(struct hold *h)
{
    struct agent *a = n.agent.impl;

    h->task = (struct reactor_task){ .run = hold_run };
    sem_init(&h->began, 0, 0);
    sem_init(&h->over, 0, 0);
    reactor_post(&a->ep.reactor, &h->task);
}

static void reset(int fd)
{
    const struct linger at_once = { 1, 0 };

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
}

/* The loop connects between the two holds, and finds out in the second how that ended. */
TEST(pipe_is_dialled_again_when_its_first_connection_is_reset)
{
    static struct hold before, after;
    static struct node peer; /* its texts live until the shutdown */
    struct call c = { .wake_fd = -1 };
    int listener, fd;

    group_open(&n, 1, "sleep");
    node_init(&peer, 1);
    listener = raw_listen(peer.address);
    n.agent.ops->member_joined(&n.agent, &peer.member);
    hold_post(&before);
    sem_wait(&before.began);
    call_start(&n, &c, 1, request("x"));
    hold_post(&after);
    sem_post(&before.over);
    sem_wait(&after.began);
    reset(raw_accept(listener));
    sem_post(&after.over);
    fd = raw_accept(listener);
    assert_false(atomic_load(&c.done));
    close(listener);
    close(fd);
    node_shutdown(&n);
    assert_becomes(atomic_load(&c.done));
    node_close(&n);
}
