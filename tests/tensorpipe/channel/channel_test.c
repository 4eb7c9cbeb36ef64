/* SPDX-License-Identifier: Apache-2.0 */
/* channel_test.c - tensors between agents that share a machine, over every path
 * of the channels. */
#include "tensors.h"

#include "../support/message_hooks.h"
#include "agent/agent.h"
#include "core/backend/backend.h"
#include "pipe/pipe.h"
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PULL_MIN 65536

static const char *const modes[] = { "sleep", "adaptive", "busy" };

/* A node that pulls what is at least PULL_MIN. */
static void open_puller(struct node *n, tenrec_peer id, const char *progress)
{
    node_init(n, id);
    node_share_memory(n);
    n->options.progress = progress;
    n->options.inline_max = 1000;
    n->options.pull_min = PULL_MIN;
    n->options.pull_max = UINT64_C(1) << 40;
    node_open(n);
}

static void open_pullers(struct node *n, const char *progress)
{
    open_puller(&n[0], 0, progress);
    open_puller(&n[1], 1, progress);
    nodes_start(n, 2);
}

/* Calls until both have agreed that memory can be read. */
static void agree(struct node *n)
{
    static const size_t size = PULL_MIN;

    assert_becomes((call_tensors(n, &size, 1), node_counter(&n[0], "tensors_pulled") &&
                                                   node_counter(&n[1], "tensors_pulled")));
}

/* ---- a peer in another process ---- */

struct far {
    pid_t pid;
    int fd; /* "x" ends it */
};

/* Calls without the power to read whomever it likes, as users have it. */
static void drop_tracing(void)
{
    struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct data[2];

    if (syscall(SYS_capget, &head, data))
        fail_msg("capget: %s", strerror(errno));
    data[0].effective &= ~(1u << CAP_SYS_PTRACE);
    data[0].permitted &= ~(1u << CAP_SYS_PTRACE);
    data[0].inheritable &= ~(1u << CAP_SYS_PTRACE);
    if (syscall(SYS_capset, &head, data))
        fail_msg("capset: %s", strerror(errno));
}

static bool says(const struct tenrec_msg *msg, const char *what)
{
    return msg->payload_len == strlen(what) &&
           memcmp(msg->payload, what, (size_t)msg->payload_len) == 0;
}

/* Echoes; "hide" makes its memory unreadable first, "die" ends it at once. */
static void obey(struct node *n, tenrec_peer from, struct tenrec_msg *msg)
{
    bool dies = says(msg, "die");

    if (says(msg, "hide"))
        prctl(PR_SET_DUMPABLE, 0);
    echo_request(n, from, msg);
    if (dies)
        raise(SIGKILL);
}

static void exchange(int fd, struct node *mine, struct node *other)
{
    if (write(fd, mine->address, sizeof mine->address) != (ssize_t)sizeof mine->address ||
        read(fd, other->address, sizeof other->address) != (ssize_t)sizeof other->address)
        fail_msg("the other process does not tell its address");
}

/* Worker 1 of n[2] in a process of its own; worker 0 starts here. */
static struct far far_open(struct node *n)
{
    struct far far;
    tenrec_error err;
    int fd[2], me;
    char end;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    far.pid = fork();
    me = far.pid == 0;
    far.fd = fd[0];
    close(fd[!me]);
    node_init(&n[!me], !me);
    open_puller(&n[me], me, "sleep");
    n[me].on_request = me ? obey : NULL;
    exchange(fd[me], &n[me], &n[!me]);
    n[me].all[0] = n[0].member;
    n[me].all[1] = n[1].member;
    assert_int_equal(n[me].agent.ops->start(&n[me].agent, n[me].all, 2, &err), TENREC_OK);
    n[me].started = true;
    if (!me)
        return far;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (read(fd[1], &end, 1) < 0)
        _exit(1);
    node_close(&n[1]);
    _exit(0);
}

static void far_close(struct far *far, struct node *n)
{
    int status = 0;

    close(far->fd);
    assert_int_equal(waitpid(far->pid, &status, 0), far->pid);
    if (WIFSIGNALED(status))
        assert_int_equal(WTERMSIG(status), SIGKILL);
    else
        assert_int_equal(WEXITSTATUS(status), 0);
    node_close(&n[0]);
}

static tenrec_status call_far(struct node *n, const char *what, unsigned char *data, size_t len)
{
    struct call c = { .id = 0 };
    tenrec_status st =
        call_sync(n, 1, message_of(TENREC_MSG_CALL, what, strlen(what), 1, data, len), &c);

    if (!st)
        assert_memory_equal(tenrec_msg_tensor(c.answer, 0)->data, data, len);
    call_finish(&c);
    return st;
}

TEST(channel_reads_the_memory_of_another_process)
{
    unsigned char *data = malloc(3 * MIB);
    struct node n[2];
    struct far far = far_open(n);

    tensor_fill(data, 3 * MIB, 7);
    assert_becomes(call_far(n, "echo", data, MIB) == TENREC_OK &&
                   node_counter(&n[0], "tensors_pulled") > 0);
    assert_int_equal(call_far(n, "", data, 3 * MIB), TENREC_OK);
    assert_int_equal(node_counter(&n[0], "pulls_refused"), 0);
    far_close(&far, n);
    free(data);
}

TEST(channel_asks_for_bytes_that_have_become_unreadable)
{
    unsigned char *data = malloc(3 * MIB);
    struct node n[2];
    struct far far = far_open(n);

    tensor_fill(data, 3 * MIB, 9);
    assert_becomes(call_far(n, "", data, MIB) == TENREC_OK &&
                   node_counter(&n[0], "tensors_pulled") > 0);
    assert_int_equal(call_far(n, "hide", data, 3 * MIB), TENREC_OK);
    assert_int_equal(node_counter(&n[0], "pulls_refused"), 1);
    for (int i = 0; i < 10; i++)
        assert_int_equal(call_far(n, "", data, 3 * MIB - (size_t)i), TENREC_OK);
    /* After one refusal the agent does not retry. */
    assert_int_equal(node_counter(&n[0], "pulls_refused"), 1);
    far_close(&far, n);
    free(data);
}

TEST(channel_fails_a_call_when_the_peer_dies_during_the_read)
{
    unsigned char *data = malloc(64 * MIB);
    struct node n[2];
    struct far far = far_open(n);
    tenrec_status st;

    tensor_fill(data, 64 * MIB, 9);
    assert_becomes(call_far(n, "", data, MIB) == TENREC_OK &&
                   node_counter(&n[0], "tensors_pulled") > 0);
    st = call_far(n, "die", data, 64 * MIB);
    if (st)
        assert_int_equal(st, TENREC_EPEER_LOST);
    far_close(&far, n);
    free(data);
}

/* ---- peers in this process ---- */

TEST(channel_carries_tensors_of_all_sizes_around_its_limits)
{
    static const size_t sizes[] = { 1,   PULL_MIN - 1, 0,       PULL_MIN, 3 * MIB, PULL_MIN + 1, 0,
                                    100, 2 * MIB,      2 * MIB, MIB + 1,  4096,    64 * MIB };

    for (size_t m = 0; m < 2; m++) {
        struct node n[2];
        uint64_t pulled;

        open_pullers(n, modes[m]);
        agree(n);
        pulled = node_counter(&n[1], "tensors_pulled");
        call_tensors(n, sizes, 8);
        assert_int_equal(node_counter(&n[1], "tensors_pulled"), pulled + 4);
        call_tensors(n, sizes + 8, 5);
        for (int i = 0; i < 100; i++)
            call_tensors(n, sizes + i % 8, 1 + (uint32_t)i % 4);
        group_close(n, 2);
    }
}

TEST(channel_reads_tensors_that_take_several_turns)
{
    static const size_t sizes[] = { 150 * MIB + 1, 10 };

    for (size_t m = 0; m < 2; m++) {
        struct node n[2];

        open_pullers(n, modes[m]);
        agree(n);
        call_tensors(n, sizes, 2);
        group_close(n, 2);
    }
}

TEST(channel_sends_tensors_that_are_too_small_to_be_read)
{
    static const size_t sizes[] = { PULL_MIN - 1002, 1, 0, 1000 };
    struct node n[2];
    uint64_t pulled;

    open_pullers(n, "sleep");
    agree(n);
    pulled = node_counter(&n[1], "tensors_pulled");
    call_tensors(n, sizes, 4);
    assert_int_equal(node_counter(&n[1], "tensors_pulled"), pulled);
    group_close(n, 2);
}

/* More than one system call reads, of all lengths that may share one. */
static void sizes_of_many(size_t sizes[TENSORS_MAX])
{
    for (size_t i = 0; i < TENSORS_MAX; i++)
        sizes[i] = i % 10 == 3 ? 100 : i % 10 == 4 ? 0 : 4096 + i * 37;
    sizes[TENSORS_MAX / 2] = MIB - 5000;
}

TEST(channel_reads_small_tensors_that_are_large_together)
{
    size_t sizes[TENSORS_MAX];

    sizes_of_many(sizes);
    for (size_t m = 0; m < 2; m++) {
        struct node n[2];
        uint64_t pulled;

        open_pullers(n, modes[m]);
        agree(n);
        pulled = node_counter(&n[1], "tensors_pulled");
        call_tensors(n, sizes, TENSORS_MAX);
        assert_int_equal(node_counter(&n[1], "tensors_pulled"), pulled + TENSORS_MAX * 8 / 10);
        for (uint32_t i = 0; i < 20; i++)
            call_tensors(n, sizes + i * 9, 29);
        group_close(n, 2);
    }
}

TEST(channel_asks_for_small_tensors_that_have_become_unreadable)
{
    unsigned char data[100] = "";
    size_t sizes[TENSORS_MAX];
    struct node n[2];
    struct far far = far_open(n);

    sizes_of_many(sizes);
    assert_becomes((call_tensors(n, sizes, TENSORS_MAX), node_counter(&n[0], "tensors_pulled")));
    assert_int_equal(call_far(n, "hide", data, sizeof data), TENREC_OK);
    call_tensors(n, sizes, TENSORS_MAX);
    assert_int_equal(node_counter(&n[0], "pulls_refused"), TENSORS_MAX * 8 / 10);
    far_close(&far, n);
}

TEST(channel_copies_tensors_that_are_large_together)
{
    static const size_t sizes[] = { 3 * MIB, PULL_MIN + 1, MIB + 1, MIB };

    for (size_t m = 0; m < 2; m++) {
        const bool together = sysconf(_SC_NPROCESSORS_ONLN) > 1;
        struct node n[2];
        uint64_t pulled;

        for (int i = 0; i < 2; i++) {
            node_init(&n[i], i);
            node_share_memory(&n[i]);
            n[i].options.progress = modes[m];
            n[i].options.pull_min = PULL_MIN;
            n[i].options.pull_max = MIB;
            node_open(&n[i]);
        }
        nodes_start(n, 2);
        agree(n);
        pulled = node_counter(&n[1], "tensors_pulled");
        call_tensors(n, sizes, 4);
        assert_int_equal(node_counter(&n[1], "tensors_pulled"), pulled + (together ? 2 : 4));
        group_close(n, 2);
    }
}

static bool peer_pulls(struct node *n)
{
    struct agent *a = n->agent.impl;
    struct pipe *p = peer_out(peer_find(&a->ep, 1));
    bool pulls;

    pthread_mutex_lock(&p->lock);
    pulls = p->tensors.pulls;
    pthread_mutex_unlock(&p->lock);
    return pulls;
}

/* Threads that spin get no processor for the read while others run. */
TEST(channel_copies_tensors_together_when_threads_are_busy)
{
    static const size_t sizes[] = { PULL_MIN, MIB };
    const bool together = sysconf(_SC_NPROCESSORS_ONLN) > 1;
    struct node n[2];

    open_pullers(n, "busy");
    call_tensors(n, sizes, 2);
    assert_becomes(peer_pulls(&n[0]));
    call_tensors(n, sizes, 2);
    assert_int_equal(node_counter(&n[1], "tensors_pulled") > 0, !together);
    group_close(n, 2);
}

TEST(channel_reads_no_memory_unless_the_options_list_cma)
{
    static const size_t sizes[] = { 3 * MIB, PULL_MIN };
    struct node n[2];

    node_init(&n[0], 0);
    node_share_memory(&n[0]);
    n[0].channel[0].s = "basic";
    n[0].options.channels.n = 1;
    n[0].options.pull_min = PULL_MIN;
    node_open(&n[0]);
    open_puller(&n[1], 1, "sleep");
    nodes_start(n, 2);
    for (int i = 0; i < 20; i++)
        call_tensors(n, sizes, 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(node_counter(&n[i], "tensors_pulled"), 0);
    group_close(n, 2);
}

static void note_release(void *arg, struct tenrec_msg *msg)
{
    (void)msg;
    atomic_store((atomic_bool *)arg, true);
}

TEST(channel_keeps_a_tensor_until_received_by_the_peer)
{
    unsigned char *data = malloc(MIB);
    struct node n[2];
    struct call c = { .wake_fd = -1 };
    struct tenrec_msg *msg;
    atomic_bool released = false;
    unsigned told;

    tensor_fill(data, MIB, 3);
    open_pullers(n, "sleep");
    agree(n);
    told = atomic_load(&n[0].told);
    /* The peer reads no request for now. */
    atomic_store(&n[1].refuse_requests, true);
    msg = message_of(TENREC_MSG_CALL, "t", 1, 1, data, MIB);
    message_on_release(msg, note_release, &released);
    call_start(&n[0], &c, 1, msg);
    for (int i = 0; i < 50; i++)
        nap();
    assert_false(atomic_load(&released));
    assert_int_equal(atomic_load(&n[0].told), told);
    atomic_store(&n[1].refuse_requests, false);
    n[1].agent.ops->resume(&n[1].agent);
    assert_becomes(atomic_load(&released) && atomic_load(&c.done));
    assert_memory_equal(tenrec_msg_tensor(c.answer, 0)->data, data, MIB);
    call_finish(&c);
    assert_becomes(atomic_load(&n[0].told) == told + 1);
    group_close(n, 2);
    free(data);
}

TEST(channel_skips_tensors_that_have_no_place)
{
    static const size_t sizes[] = { 3 * MIB, 10 };
    struct node n[2];
    struct call c = { .id = 0 };
    unsigned char *data = malloc(2 * MIB);
    uint64_t pulled;

    open_pullers(n, "sleep");
    agree(n);
    pulled = node_counter(&n[1], "tensors_pulled");
    atomic_store(&n[1].refuse_place, true);
    tensor_fill(data, 2 * MIB, 1);
    assert_int_equal(call_sync(n, 1, message_of(TENREC_MSG_CALL, "", 0, 2, data, MIB), &c),
                     TENREC_OK);
    assert_int_equal(c.answer->type, TENREC_MSG_EXCEPTION);
    call_finish(&c);
    assert_int_equal(call_sync(n, 1, message_of(TENREC_MSG_CALL, "", 0, 2, data, 1000), &c),
                     TENREC_OK);
    assert_int_equal(c.answer->type, TENREC_MSG_EXCEPTION);
    call_finish(&c);
    assert_int_equal(node_counter(&n[1], "tensors_pulled"), pulled);
    atomic_store(&n[1].refuse_place, false);
    call_tensors(n, sizes, 2);
    group_close(n, 2);
    free(data);
}

TEST(channel_releases_tensors_when_the_peer_is_lost)
{
    unsigned char *data = malloc(MIB);
    struct node n[2];
    struct call c[3];

    tensor_fill(data, MIB, 3);
    open_pullers(n, "sleep");
    agree(n);
    atomic_store(&n[1].refuse_requests, true);
    for (int i = 0; i < 3; i++) {
        c[i] = (struct call){ .wake_fd = -1 };
        call_start(&n[0], &c[i], 1, message_of(TENREC_MSG_CALL, "t", 1, 1, data, MIB));
    }
    node_shutdown(&n[1]);
    for (int i = 0; i < 3; i++)
        assert_call_fails(&c[i], TENREC_EPEER_LOST);
    assert_becomes(atomic_load(&n[0].told) == atomic_load(&n[0].next_id));
    group_close(n, 2);
    free(data);
}

int main(void)
{
    drop_tracing();
    return testing_run(NULL, NULL);
}
