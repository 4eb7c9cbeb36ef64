/* SPDX-License-Identifier: Apache-2.0 */
/* interop_shm_test.c - the tensorpipe plugin and the real libtensorpipe over
 * shared memory: when it is used, and what happens when one of them dies.
 */
#include "peer.h"
#include "side.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *config, *config_uv;

static struct peer *start(void)
{
    struct peer *p = peer_start(true);

    if (!p) {
        print_message("libtensorpipe is not installed\n");
        skip();
    }
    return p;
}

/* A peer that answers; its address is peer_expect_begin's. */
static const char *listen_for_calls(struct peer *p)
{
    peer_say(p, "echo");
    peer_say(p, "listen uv://127.0.0.1 shm://");
    return peer_expect_begin(p, "listening ");
}

static void call(struct side *s, int64_t id, size_t len, const uint64_t *lengths, uint32_t n)
{
    side_send(s, side_request(id, (unsigned long)id, len, lengths, n));
    side_check(side_answer(s, id), (unsigned long)id, len, lengths, n);
}

static void assert_info(struct side *s, const char *key, const char *expected)
{
    char value[SIDE_INFO];

    side_info(s, key, value);
    assert_string_equal(value, expected);
}

static bool polls(struct side *s)
{
    char value[SIDE_INFO];

    side_info(s, "polling", value);
    assert_true(*value);
    return strcmp(value, "no") != 0;
}

/* ---- when it is used ---- */

TEST(shm_is_used_and_looked_at_while_a_real_listener_is_connected)
{
    struct peer *p = start();
    struct side s;

    side_open(&s, config, listen_for_calls(p));
    assert_false(polls(&s));
    call(&s, 1, 10, NULL, 0);
    assert_info(&s, "peer.1.transport", "shm");
    assert_true(polls(&s));
    peer_stop(p);
    assert_becomes(!polls(&s));
    side_close(&s);
}

TEST(shm_is_not_used_by_a_client_that_lists_only_uv)
{
    struct peer *p = start();
    struct side s;

    side_open(&s, config_uv, listen_for_calls(p));
    call(&s, 1, 10, NULL, 0);
    assert_info(&s, "peer.1.transport", "uv");
    assert_false(polls(&s));
    assert_info(&s, "looks", "0");
    side_close(&s);
    peer_stop(p);
}

/* ---- much of it ---- */

/* Sizes around that of a ring, and around the chunks of its notifications. */
static const uint64_t sizes[] = {
    1,           4096,        MIB / 4 - 1, MIB / 4,     MIB / 4 + 1,  2 * MIB - 12,
    2 * MIB - 4, 2 * MIB - 1, 2 * MIB,     2 * MIB + 1, 3 * MIB + 17, 64 * MIB,
};

TEST(shm_carries_payloads_and_tensors_around_the_size_of_a_ring)
{
    struct peer *p = start();
    struct side s;

    side_open(&s, config, listen_for_calls(p));
    for (uint32_t i = 0; i < COUNT(sizes); i++) {
        call(&s, (int64_t)2 * i, (size_t)sizes[i], NULL, 0);
        call(&s, (int64_t)2 * i + 1, 3, &sizes[i], 1);
    }
    call(&s, 100, 0, sizes, COUNT(sizes) - 1);
    side_close(&s);
    peer_stop(p);
}

TEST(shm_carries_many_messages_in_flight)
{
    struct peer *p = start();
    struct side s;

    side_open(&s, config, listen_for_calls(p));
    for (int round = 0; round < 10; round++) {
        for (uint32_t id = 0; id < SIDE_MAX; id++)
            side_send(&s, side_request(id, id, (size_t)id * 977, sizes, id % 3));
        for (uint32_t id = SIDE_MAX; id-- > 0;)
            side_check(side_answer(&s, id), id, (size_t)id * 977, sizes, id % 3);
    }
    side_close(&s);
    peer_stop(p);
}

/* ---- death ---- */

TEST(shm_tells_that_a_real_listener_was_killed)
{
    const uint64_t big = 64 * MIB;
    struct peer *p = start();
    struct side s;

    side_open(&s, config, listen_for_calls(p));
    call(&s, 1, 10, NULL, 0);
    for (int64_t id = 2; id < 6; id++)
        side_send(&s, side_request(id, 1, 10, &big, 1));
    peer_kill(p);
    assert_becomes(atomic_load(&s.lost) == 1);
    assert_int_equal(s.why.code, TENREC_EPEER_LOST);
    assert_becomes(!polls(&s));
    side_close(&s);
}

TEST(shm_outlives_a_real_client_that_was_killed)
{
    static const char *const before[] = {
        "read 0",
        "write 0 m p::x02010000 p::x0000000000000000 p::s1:67108864 p::x",
    };
    struct peer *p, *other;
    struct side s;

    p = start();
    side_open(&s, config, NULL);
    peer_stop(p);
    for (size_t i = 0; i < COUNT(before); i++) {
        p = start();
        peer_say(p, "connect uv://%s", side_address(&s));
        peer_expect(p, "connected 0");
        peer_say(p, "%s", before[i]);
        assert_becomes(polls(&s));
        peer_kill(p);
        assert_becomes(!polls(&s));
    }
    other = start();
    peer_say(other, "connect uv://%s", side_address(&s));
    peer_say(other, "read 0");
    peer_say(other, "write 0 m p::x02010000 p::x0100000000000000 p::s1:10 p::x80027473");
    peer_expect_begin(other, "message 0 m p::4:");
    side_close(&s);
    peer_stop(other);
}

/* A process of our own that calls and is then killed, perhaps in the middle of
 * the next call. */
static pid_t start_doomed(const char *address, bool in_the_middle, int ready)
{
    const uint64_t big = 64 * MIB;
    struct side s;
    pid_t pid = fork();

    if (pid)
        return pid;
    side_open(&s, config, address);
    call(&s, 1, 10, NULL, 0);
    for (int64_t id = 2; in_the_middle && id < 6; id++)
        side_send(&s, side_request(id, 1, 10, &big, 1));
    if (write(ready, "r", 1) == 1)
        pause();
    _exit(1);
}

TEST(shm_lets_a_real_listener_outlive_our_death)
{
    char address[64];
    struct peer *p = start();
    struct side s;

    snprintf(address, sizeof address, "%s", listen_for_calls(p));
    for (int i = 0; i < 6; i++) {
        char byte;
        int ready[2], status;
        pid_t pid;

        assert_int_equal(pipe(ready), 0);
        pid = start_doomed(address, i % 2, ready[1]);
        close(ready[1]);
        assert_true(pid > 0);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        close(ready[0]);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        peer_expect_begin(p, "failed ");
    }
    side_open(&s, config, address);
    call(&s, 1, 10, sizes, 3);
    side_close(&s);
    peer_stop(p);
}

/* Written bytes reach a peer that reads them, although the agent ends. */
TEST(shm_loses_no_message_when_the_agent_drains_and_goes)
{
    struct peer *p = start();
    tenrec_error err;
    struct side s;

    peer_say(p, "listen uv://127.0.0.1 shm://");
    side_open(&s, config, peer_expect_begin(p, "listening "));
    side_send(&s, side_request(1, 1, 10, NULL, 0));
    side_send(&s, side_request(2, 2, 1000, NULL, 0));
    peer_expect(p, "pipe 0 worker0");
    peer_say(p, "read 0");
    peer_expect_begin(p, "message 0 m p::4:");
    peer_say(p, "read 0");
    assert_status(chain_drain(s.chain, 20000, &err), &err);
    side_close(&s);
    peer_expect_begin(p, "message 0 m p::4:");
    peer_stop(p);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s CONFIG CONFIG_WITHOUT_SHM\n", argv[0]);
        return 2;
    }
    config = argv[1];
    config_uv = argv[2];
    return testing_run(NULL, NULL);
}
