/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors_test.c - the file descriptors that pipes take, and their limits. */
#include "agent/agent.h"
#include "far.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned count_fds(void)
{
    unsigned n = 0;

    for (int fd = 0; fd < 4096; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* valgrind refuses to lower the hard limit of descriptors: then there is nothing to see. */
static void skip_without_hard_limits(void)
{
    struct rlimit limit;
    int status;
    pid_t child = fork();

    if (child == 0) {
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_max--;
        if (limit.rlim_cur > limit.rlim_max)
            limit.rlim_cur = limit.rlim_max;
        _exit(setrlimit(RLIMIT_NOFILE, &limit) != 0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WEXITSTATUS(status) != 0)
        skip();
}

TEST(ring_takes_one_descriptor_for_a_pipe_and_four_with_tensors)
{
    static unsigned char data[1 << 20];
    struct node n[2];
    struct call c = { .into = NULL };
    unsigned before;

    /* The first call of a thread makes the eventfd that the thread keeps (call_sync). */
    open_pair(n, "sleep");
    assert_ping(&n[0], 1);
    group_close(n, 2);
    open_pair(n, "sleep");
    before = count_fds();
    assert_ping(&n[0], 1);
    assert_ping(&n[1], 0);
    /* Both ends of both pipes are in this process. */
    assert_becomes(count_fds() == before + 2 * 2);
    /* Also when tensors were read out of each other's memory. */
    assert_int_equal(call_sync(&n[0], 1, message_of(7, "x", 1, 1, data, sizeof data), &c), 0);
    call_finish(&c);
    assert_becomes(count_fds() == before + 8 + 2);
    group_close(n, 2);
}

/* Where TCP alone would do, rings do, or TCP in their place, in the first call. With fewer, the
 * descriptors that the peer keeps for itself leave nothing for connections that come in. */
TEST(ring_or_tcp_carries_the_call_when_only_the_peer_lacks_descriptors)
{
    unsigned over_tcp = 0, over_ring = 0;

    skip_without_hard_limits();
    for (rlim_t spare = 20; spare <= 44; spare += 4) {
        struct node n[2];
        struct far far = far_open(n, "sleep", spare);
        bool tcp;

        assert_ping(&n[0], 1);
        /* The peer's answer named TCP. */
        assert_false(node_tells(&n[0], "peer.1.not_used", "tenrec_ring"));
        tcp = node_tells(&n[0], "peer.1.transport", "uv");
        over_tcp += tcp;
        over_ring += !tcp;
        far_close(&far, n);
    }
    assert_int_equal(over_tcp + over_ring, 7);
    assert_true(over_ring > 0);
}

TEST(agent_raises_the_soft_limit_as_far_as_the_hard_limit)
{
    static const rlim_t hard[] = { 0, 100 };

    skip_without_hard_limits();
    for (size_t i = 0; i < 2; i++) {
        int status;
        pid_t child = fork();

        if (child == 0) {
            struct rlimit limit;
            struct node n[2];

            getrlimit(RLIMIT_NOFILE, &limit);
            if (hard[i])
                limit.rlim_max = hard[i];
            limit.rlim_cur = 64;
            setrlimit(RLIMIT_NOFILE, &limit);
            open_pair(n, "sleep");
            assert_ping(&n[0], 1);
            getrlimit(RLIMIT_NOFILE, &limit);
            /* Two workers, which count each other and themselves. */
            _exit(limit.rlim_cur == (hard[i] ? hard[i] : 128 + 2 * (32 + 2 * 8)) ? 0 : 1);
        }
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

#define PEERS 100

/* The agent that reserves descriptors while another is about to raise the limit; NULL: none. */
static struct agent *between;

static int set_or_reserve(int resource, const struct rlimit *limit,
                          int (*really)(int resource, const struct rlimit *limit))
{
    struct agent *a = between;

    between = NULL;
    if (a)
        descriptors_reserve(a, PEERS);
    return really(resource, limit);
}

/* Which of the two the C library's header names depends on the size of offsets. */
int __real_setrlimit(int resource, const struct rlimit *limit);
int __real_setrlimit64(int resource, const struct rlimit *limit);
int __wrap_setrlimit(int resource, const struct rlimit *limit);
int __wrap_setrlimit64(int resource, const struct rlimit *limit);

int __wrap_setrlimit(int resource, const struct rlimit *limit)
{
    return set_or_reserve(resource, limit, __real_setrlimit);
}

int __wrap_setrlimit64(int resource, const struct rlimit *limit)
{
    return set_or_reserve(resource, limit, __real_setrlimit64);
}

TEST(agent_raises_the_limit_for_both_agents_that_begin_at_once)
{
    const rlim_t needed = 128 + 2 * (32 + 2 * 4 * PEERS), low = 256;
    struct rlimit before, now;
    struct node n[2];

    skip_without_hard_limits();
    getrlimit(RLIMIT_NOFILE, &before);
    now = (struct rlimit){ low, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
    for (int i = 0; i < 2; i++) {
        node_init(&n[i], i);
        node_open(&n[i]);
    }
    between = n[1].agent.impl;
    descriptors_reserve(n[0].agent.impl, PEERS);
    assert_null(between);
    getrlimit(RLIMIT_NOFILE, &now);
    assert_int_equal(now.rlim_cur, before.rlim_max < needed ? before.rlim_max : needed);
    group_close(n, 2);
    setrlimit(RLIMIT_NOFILE, &before);
}
