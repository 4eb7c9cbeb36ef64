/* SPDX-License-Identifier: Apache-2.0 */
/* shm_ring_test.c - rings that processes share, and malformed rings. */
#include "../../../testing.h"

#include "endpoint.h"
#include "transport/tp_shm/shm_handshake.h"
#include "transport/tp_shm/shm_reactor.h"
#include "transport/transport_local.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define SIZE 4096

/* One ring from both sides, each with its own mapping, as two processes have it. */
struct both {
    struct shm_ring reader, writer;
    int fd[SHM_FILES];
};

static void open_both(struct both *b)
{
    tenrec_error err;

    assert_status(shm_ring_make(&b->reader, SHM_CONSUMER, SIZE, b->fd, &err), &err);
    assert_status(shm_ring_map(&b->writer, SHM_PRODUCER, b->fd, &err), &err);
}

static void close_both(struct both *b)
{
    shm_ring_unmap(&b->reader);
    shm_ring_unmap(&b->writer);
    close(b->fd[SHM_HEADER]);
    close(b->fd[SHM_DATA]);
}

static uint64_t available(const struct shm_ring *r)
{
    uint64_t n;

    assert_true(shm_ring_available(r, &n));
    return n;
}

TEST(ring_header_has_the_layout_of_tensorpipe)
{
    const uint64_t words[2] = { SIZE, SIZE - 1 };
    struct both b;

    open_both(&b);
    assert_memory_equal(b.writer.header, words, sizeof words);
    shm_ring_put(&b.writer, 0, "abc", 3);
    shm_ring_advance(&b.writer, 3);
    assert_int_equal(((const uint64_t *)(const void *)b.reader.header)[3], 0);
    assert_int_equal(((const uint64_t *)(const void *)b.reader.header)[4], 3);
    close_both(&b);
}

TEST(ring_carries_bytes_around_its_end)
{
    unsigned char in[1000], out[1000];
    struct both b;

    open_both(&b);
    for (unsigned round = 0; round < 50; round++) {
        memset(in, (int)round + 1, sizeof in);
        assert_int_equal(available(&b.writer), SIZE);
        shm_ring_put(&b.writer, 0, in, 700);
        shm_ring_put(&b.writer, 700, in + 700, 300);
        assert_int_equal(available(&b.reader), 0);
        shm_ring_advance(&b.writer, sizeof in);
        assert_int_equal(available(&b.reader), sizeof in);
        assert_int_equal(available(&b.writer), SIZE - sizeof in);
        shm_ring_get(&b.reader, 0, out, sizeof out);
        shm_ring_advance(&b.reader, sizeof out);
        assert_memory_equal(in, out, sizeof in);
    }
    close_both(&b);
}

TEST(ring_finds_out_a_marker_that_cannot_be)
{
    static const uint64_t bad[] = { SIZE + 1, UINT64_MAX - SIZE, UINT64_MAX / 2 };
    struct both b;
    uint64_t n;

    open_both(&b);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        atomic_store(&b.writer.header->marker[SHM_PRODUCER], bad[i]);
        assert_false(shm_ring_available(&b.reader, &n));
        atomic_store(&b.reader.header->marker[SHM_CONSUMER], bad[i]);
        assert_false(shm_ring_available(&b.writer, &n));
    }
    close_both(&b);
}

TEST(ring_files_cannot_be_cut_by_the_peer)
{
    struct both b;

    open_both(&b);
    for (int i = 0; i < SHM_FILES; i++) {
        assert_int_equal(ftruncate(b.fd[i], 0), -1);
        assert_int_equal(errno, EPERM);
    }
    close_both(&b);
}

static int file_of(off_t size)
{
    int fd = memfd_create("test", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, size), 0);
    return fd;
}

static void assert_refused(int header, int data, const char *why)
{
    const int fd[SHM_FILES] = { header, data };
    struct shm_ring r;
    tenrec_error err;

    assert_int_equal(shm_ring_map(&r, SHM_PRODUCER, fd, &err), TENREC_EPROTOCOL);
    assert_text_has(err.text, why);
}

TEST(ring_is_refused_when_its_files_are_unsuitable)
{
    int header = file_of(40), data = file_of(SIZE), pipes[2], disk;
    char path[] = "/var/tmp/shm_ring_test.XXXXXX";
    static const off_t sizes[] = { 0, 2, SIZE - 1, SIZE + 8, (off_t)SHM_RING_MAX * 2 };
    static const off_t headers[] = { 0, 39, 41, 4096 };

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int fd = file_of(sizes[i]);

        assert_refused(header, fd, "power of two");
        close(fd);
    }
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        int fd = file_of(headers[i]);

        assert_refused(fd, data, "expected 40");
        close(fd);
    }
    assert_int_equal(pipe(pipes), 0);
    assert_refused(pipes[0], data, "not a file in memory");
    disk = mkstemp(path);
    assert_true(disk >= 0);
    unlink(path);
    assert_int_equal(ftruncate(disk, SIZE), 0);
    assert_refused(header, disk, "not a file in memory");
    close(disk);
    close(pipes[0]);
    close(pipes[1]);
    close(header);
    close(data);
}

TEST(ring_is_refused_when_its_header_lies)
{
    static const uint64_t bad[][2] = { { (uint64_t)SIZE * 2, (uint64_t)SIZE * 2 - 1 },
                                       { SIZE, SIZE },
                                       { 0, 0 },
                                       { UINT64_MAX, UINT64_MAX } };
    int header = file_of(40), data = file_of(SIZE);

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(pwrite(header, bad[i], sizeof bad[i], 0), sizeof bad[i]);
        assert_refused(header, data, "header says");
    }
    close(header);
    close(data);
}

/* ---- reactor ---- */

TEST(reactor_tells_tokens_in_order_until_full)
{
    struct both b;
    uint32_t token;

    open_both(&b);
    for (uint32_t i = 0; i < SIZE / 4; i++)
        assert_true(shm_reactor_push(&b.writer, i, true));
    assert_false(shm_reactor_push(&b.writer, 7, true));
    for (uint32_t i = 0; i < SIZE / 4; i++) {
        shm_ring_get(&b.reader, (uint64_t)4 * i, &token, 4);
        assert_int_equal(token, i);
    }
    shm_reactor_empty(&b.reader);
    assert_true(shm_reactor_push(&b.writer, 7, true));
    close_both(&b);
}

TEST(reactor_gives_up_on_a_lock_that_stays_taken)
{
    struct both b;

    open_both(&b);
    atomic_store(&b.reader.header->in_use[SHM_PRODUCER], 1);
    assert_false(shm_reactor_push(&b.writer, 7, true));
    assert_false(shm_reactor_push(&b.writer, 7, false));
    atomic_store(&b.reader.header->in_use[SHM_PRODUCER], 0);
    assert_true(shm_reactor_push(&b.writer, 7, true));
    close_both(&b);
}

TEST(reactor_with_markers_that_cannot_be_takes_nothing)
{
    static const uint64_t bad[][2] = { { 0, SIZE + 1 }, { 1, 0 }, { 0, UINT64_MAX - 3 } };
    struct both b;

    open_both(&b);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        atomic_store(&b.reader.header->marker[SHM_CONSUMER], bad[i][0]);
        atomic_store(&b.reader.header->marker[SHM_PRODUCER], bad[i][1]);
        assert_false(shm_reactor_push(&b.writer, 7, true));
    }
    /* One that is possible but crooked is harmless: the token goes around the end. */
    atomic_store(&b.reader.header->marker[SHM_CONSUMER], SIZE - 2);
    atomic_store(&b.reader.header->marker[SHM_PRODUCER], SIZE - 2);
    assert_true(shm_reactor_push(&b.writer, 7, true));
    close_both(&b);
}

#define PUSHERS 4
#define PUSHES 250

static void *push_many(void *arg)
{
    for (uint32_t i = 0; i < PUSHES; i++)
        while (!shm_reactor_push(arg, 1, true))
            continue;
    return NULL;
}

TEST(reactor_takes_tokens_of_several_threads)
{
    pthread_t thread[PUSHERS];
    struct both b;

    open_both(&b);
    for (int i = 0; i < PUSHERS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, push_many, &b.writer), 0);
    for (int i = 0; i < PUSHERS; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(available(&b.reader), 4 * PUSHERS * PUSHES);
    close_both(&b);
}

/* ---- handshake ---- */

static void open_pair(int fd[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
}

TEST(handshake_hands_over_tokens_and_descriptors)
{
    struct shm_hello in = { 0x01020304, 5, { file_of(1), file_of(2), file_of(3), file_of(4) } };
    struct shm_hello out;
    int fd[2];

    open_pair(fd);
    assert_int_equal(shm_hello_receive(fd[1], &out), EAGAIN);
    assert_int_equal(shm_hello_send(fd[0], &in), 0);
    assert_int_equal(shm_hello_receive(fd[1], &out), 0);
    assert_int_equal(out.inbox_token, 0x01020304);
    assert_int_equal(out.outbox_token, 5);
    assert_int_equal(lseek(out.fd[SHM_HELLO_REACTOR + SHM_HEADER], 0, SEEK_END), 1);
    assert_int_equal(lseek(out.fd[SHM_HELLO_REACTOR + SHM_DATA], 0, SEEK_END), 2);
    assert_int_equal(lseek(out.fd[SHM_HELLO_INBOX + SHM_HEADER], 0, SEEK_END), 3);
    assert_int_equal(lseek(out.fd[SHM_HELLO_INBOX + SHM_DATA], 0, SEEK_END), 4);
    assert_int_equal(fcntl(out.fd[SHM_HELLO_INBOX + SHM_DATA], F_GETFD), FD_CLOEXEC);
    shm_hello_close(&in);
    shm_hello_close(&out);
    close(fd[0]);
    assert_int_equal(shm_hello_receive(fd[1], &out), ECONNRESET);
    close(fd[1]);
}

static int open_descriptors(void)
{
    int n = 0;

    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* `len` bytes with `n` descriptors. */
static void send_odd(int fd, size_t len, int n)
{
    char control[CMSG_SPACE(8 * sizeof(int))] __attribute__((aligned(8))) = { 0 };
    char data[64] = { 0 };
    struct iovec iov = { data, len };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

    if (n) {
        struct cmsghdr *c = (struct cmsghdr *)(void *)control;

        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = (socklen_t)CMSG_LEN((size_t)n * sizeof(int));
        for (int i = 0; i < n; i++)
            memcpy(CMSG_DATA(c) + (size_t)i * sizeof fd, &fd, sizeof fd);
        m.msg_control = control;
        m.msg_controllen = (socklen_t)CMSG_SPACE((size_t)n * sizeof(int));
    }
    assert_int_equal(sendmsg(fd, &m, 0), len);
}

TEST(handshake_refuses_odd_messages_and_keeps_no_descriptor)
{
    static const struct {
        size_t len;
        int n, expected;
    } odd[] = {
        { 8, 0, EPROTO }, { 8, 3, EPROTO }, { 4, 4, EPROTO }, { 1, 1, EPROTO }, { 8, 8, EMFILE }
    };

    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        struct shm_hello out;
        int fd[2], before;

        open_pair(fd);
        before = open_descriptors();
        send_odd(fd[0], odd[i].len, odd[i].n);
        assert_int_equal(shm_hello_receive(fd[1], &out), odd[i].expected);
        assert_int_equal(open_descriptors(), before);
        close(fd[0]);
        close(fd[1]);
    }
}

TEST(handshake_trusts_our_own_user)
{
    const struct endpoint ep = { .proof = NULL };
    int fd[2], pid = 0;

    open_pair(fd);
    assert_true(local_peer_is_ours(&ep, fd[0], &pid));
    assert_int_equal(pid, getpid());
    close(fd[0]);
    assert_false(local_peer_is_ours(&ep, fd[0], &pid));
    close(fd[1]);
}
