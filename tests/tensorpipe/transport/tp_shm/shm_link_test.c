/* SPDX-License-Identifier: Apache-2.0 */
/* shm_link_test.c - the stream of a connection, through the rings of another. */
#include "../../../testing.h"

#include "transport/tp_shm/shm_link.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Two links that exchanged their rings over a socket. */
struct pair {
    struct shm_link link[2];
};

static void open_pair(struct pair *p)
{
    struct shm_hello ours, theirs;
    tenrec_error err;
    int fd[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    for (int i = 0; i < 2; i++) {
        assert_status(shm_link_init(&p->link[i], &ours, &err), &err);
        assert_int_equal(shm_hello_send(fd[i], &ours), 0);
        shm_hello_close(&ours);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(shm_hello_receive(fd[i], &theirs), 0);
        assert_status(shm_link_attach(&p->link[i], &theirs, &err), &err);
        shm_hello_close(&theirs);
        close(fd[i]);
    }
}

static void close_pair(struct pair *p)
{
    shm_link_finish(&p->link[0]);
    shm_link_finish(&p->link[1]);
}

static size_t put_frame(unsigned char *at, const void *body, uint64_t len)
{
    uint64_t head = htole64(len);

    memcpy(at, &head, sizeof head);
    memcpy(at + sizeof head, body, (size_t)len);
    return sizeof head + (size_t)len;
}

static ssize_t link_write(struct shm_link *l, const void *data, size_t len)
{
    const struct iovec iov = { (void *)(uintptr_t)data, len };

    return shm_link_write(l, &iov, 1);
}

static ssize_t link_read(struct shm_link *l, void *data, size_t len)
{
    const struct iovec iov = { data, len };

    return shm_link_read(l, &iov, 1);
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* The contents of the ring: length of 4 bytes, body. */
TEST(link_puts_frames_into_the_ring_with_short_heads)
{
    static const unsigned char expected[] = {
        3, 0, 0, 0, 'a', 'b', 'c', 0, 0, 0, 0, 1, 0, 0, 0, 'd'
    };
    unsigned char stream[64];
    size_t len = 0;
    struct pair p;

    open_pair(&p);
    len += put_frame(stream + len, "abc", 3);
    len += put_frame(stream + len, "", 0);
    len += put_frame(stream + len, "d", 1);
    assert_int_equal(link_write(&p.link[0], stream, len), len);
    assert_int_equal(shm_link_unread(&p.link[0]), sizeof expected);
    assert_memory_equal(p.link[1].inbox.data, expected, sizeof expected);
    close_pair(&p);
}

TEST(link_pushes_the_peers_tokens)
{
    unsigned char stream[16];
    size_t len = put_frame(stream, "abc", 3);
    uint32_t token = 0;
    struct pair p;

    open_pair(&p);
    assert_int_equal(link_write(&p.link[0], stream, len), len);
    shm_ring_get(&p.link[1].reactor, 0, &token, 4);
    assert_int_equal(token, p.link[0].inbox_token);
    assert_int_equal(link_read(&p.link[1], stream, sizeof stream), len);
    shm_ring_get(&p.link[0].reactor, 0, &token, 4);
    assert_int_equal(token, p.link[1].outbox_token);
    close_pair(&p);
}

/* Random frames, written and read in random pieces, come out as they went in. */
TEST(link_carries_a_stream_that_is_cut_anywhere)
{
    static unsigned char in[8u << 20], out[sizeof in], body[3u << 20];
    uint32_t random = 1;
    size_t len = 0, written = 0, got = 0;
    struct pair p;

    open_pair(&p);
    for (size_t i = 0; i < sizeof body; i++)
        body[i] = (unsigned char)next_random(&random);
    while (len < 4u << 20)
        len += put_frame(in + len, body + next_random(&random) % 1000,
                         next_random(&random) % (next_random(&random) % 8 ? 40 : 70000));
    len += put_frame(in + len, body, sizeof body); /* more than a ring holds */
    while (got < len) {
        unsigned limit = next_random(&random) % 4 ? 20 : 100000;
        size_t n = 1 + next_random(&random) % limit;
        struct iovec iov[2] = { { in + written, n / 3 }, { in + written + n / 3, n - n / 3 } };
        ssize_t r;

        if (n <= len - written) {
            r = shm_link_write(&p.link[0], iov, 2);
            assert_true(r > 0 || r == -EAGAIN);
            written += r > 0 ? (size_t)r : 0;
        } else if (written < len) {
            r = link_write(&p.link[0], in + written, len - written);
            assert_true(r > 0 || r == -EAGAIN);
            written += r > 0 ? (size_t)r : 0;
        }
        r = link_read(&p.link[1], out + got, 1 + next_random(&random) % limit);
        assert_true(r > 0 || r == -EAGAIN);
        got += r > 0 ? (size_t)r : 0;
        shm_link_tend(&p.link[0]);
        shm_link_tend(&p.link[1]);
    }
    assert_int_equal(got, len);
    assert_memory_equal(in, out, len);
    assert_int_equal(shm_link_unread(&p.link[0]), 0);
    close_pair(&p);
}

TEST(link_takes_no_more_than_the_ring_holds)
{
    static unsigned char stream[3u << 20], out[3u << 20];
    size_t len = put_frame(stream, stream + 8, sizeof stream - 8);
    ssize_t first;
    struct pair p;

    open_pair(&p);
    first = link_write(&p.link[0], stream, len);
    assert_int_equal(first, SHM_INBOX_SIZE + SHM_FRAME_HEAD - SHM_RING_HEAD);
    assert_false(shm_link_writable(&p.link[0]));
    assert_int_equal(link_write(&p.link[0], stream + first, len - (size_t)first), -EAGAIN);
    assert_true(shm_link_readable(&p.link[1]));
    assert_int_equal(link_read(&p.link[1], out, sizeof out), first);
    assert_false(shm_link_readable(&p.link[1]));
    assert_int_equal(link_read(&p.link[1], out, sizeof out), -EAGAIN);
    assert_true(shm_link_writable(&p.link[0]));
    close_pair(&p);
}

TEST(link_refuses_a_frame_that_has_no_length_in_the_ring)
{
    const uint64_t head = htole64(UINT64_C(1) << 32);
    struct pair p;

    open_pair(&p);
    assert_int_equal(link_write(&p.link[0], &head, sizeof head), -EMSGSIZE);
    close_pair(&p);
}

TEST(link_reads_the_longest_length_of_the_ring)
{
    uint64_t head;
    struct pair p;

    open_pair(&p);
    memset(p.link[0].outbox.data, 0xff, 4);
    shm_ring_advance(&p.link[0].outbox, 4);
    assert_int_equal(link_read(&p.link[1], &head, sizeof head), sizeof head);
    assert_int_equal(le64toh(head), UINT32_MAX);
    close_pair(&p);
}

TEST(link_finds_out_markers_that_cannot_be)
{
    unsigned char buf[64] = { 0 };
    struct pair p;

    open_pair(&p);
    atomic_store(&p.link[1].inbox.header->marker[SHM_PRODUCER], UINT64_MAX / 2);
    assert_true(shm_link_readable(&p.link[1]));
    assert_int_equal(link_read(&p.link[1], buf, sizeof buf), -EPROTO);
    atomic_store(&p.link[0].outbox.header->marker[SHM_CONSUMER], 1);
    assert_true(shm_link_writable(&p.link[0]));
    assert_int_equal(link_write(&p.link[0], buf, 8), -EPROTO);
    assert_int_equal(shm_link_unread(&p.link[0]), 0);
    close_pair(&p);
}

/* A peer whose reactor is stuck gets its tokens when it is not any more. */
TEST(link_owes_tokens_that_found_no_place)
{
    unsigned char stream[16];
    size_t len = put_frame(stream, "abc", 3);
    struct shm_ring *reactor;
    uint64_t n;
    struct pair p;

    open_pair(&p);
    reactor = &p.link[1].reactor;
    atomic_store(&reactor->header->in_use[SHM_PRODUCER], 1);
    assert_int_equal(link_write(&p.link[0], stream, len), len);
    shm_link_tend(&p.link[0]);
    assert_true(shm_ring_available(reactor, &n));
    assert_int_equal(n, 0);
    atomic_store(&reactor->header->in_use[SHM_PRODUCER], 0);
    shm_link_tend(&p.link[0]);
    shm_link_tend(&p.link[0]);
    assert_true(shm_ring_available(reactor, &n));
    assert_int_equal(n, 4);
    close_pair(&p);
}

#define STREAM ((size_t)48 << 20)

static void *write_all(void *arg)
{
    struct shm_link *l = arg;
    unsigned char *data = malloc(STREAM);
    size_t at = 0, len = 0;

    assert_non_null(data);
    memset(data, 0, STREAM);
    while (len + 8 + (STREAM / 16) <= STREAM) {
        uint64_t head = htole64(STREAM / 16 - 8);

        memcpy(data + len, &head, sizeof head);
        for (size_t i = 8; i < STREAM / 16; i += 4096)
            data[len + i] = (unsigned char)(len + i) ^ (unsigned char)(i >> 12);
        len += STREAM / 16;
    }
    while (at < len) {
        ssize_t n = link_write(l, data + at, len - at);

        if (n > 0)
            at += (size_t)n;
        else
            sched_yield();
        shm_link_tend(l);
    }
    free(data);
    return (void *)(uintptr_t)len;
}

TEST(link_carries_large_frames_between_threads)
{
    unsigned char *out = malloc(STREAM);
    pthread_t thread;
    struct pair p;
    size_t got = 0, frame = STREAM / 16;
    void *len;

    assert_non_null(out);
    open_pair(&p);
    assert_int_equal(pthread_create(&thread, NULL, write_all, &p.link[0]), 0);
    while (got < 15 * frame) {
        ssize_t n = link_read(&p.link[1], out + got, STREAM - got);

        assert_true(n > 0 || n == -EAGAIN);
        if (n > 0)
            got += (size_t)n;
        else
            sched_yield();
    }
    pthread_join(thread, &len);
    assert_true((uintptr_t)len >= got);
    for (size_t f = 0; f < 15; f++)
        for (size_t i = 8; i < frame; i += 4096)
            if (out[f * frame + i] != (unsigned char)((f * frame + i) ^ (i >> 12)))
                fail_msg("byte %zu of frame %zu", i, f);
    free(out);
    close_pair(&p);
}
