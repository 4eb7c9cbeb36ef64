/* SPDX-License-Identifier: Apache-2.0 */
/* ring_test.c - rings alone: bytes, impossible cursors, wake-ups, and the
 * memory of another process that is refused. */
#include "node.h"
#include "transport/ring/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIZE RING_SIZE_MIN

struct ring {
    struct ring_words words;
    unsigned char data[SIZE];
    struct ring_writer out;
    struct ring_reader in;
};

static struct ring *ring_new(uint64_t at)
{
    struct ring *r = aligned_alloc(RING_LINE, sizeof *r + RING_LINE - sizeof *r % RING_LINE);

    memset(r, 0, sizeof *r);
    atomic_store(&r->words.head, at);
    atomic_store(&r->words.tail, at);
    r->out = (struct ring_writer){
        .words = &r->words, .data = r->data, .size = SIZE, .head = at, .tail = at
    };
    r->in = (struct ring_reader){
        .words = &r->words, .data = r->data, .size = SIZE, .tail = at, .released = at, .head = at
    };
    return r;
}

static long put(struct ring *r, const void *data, size_t len)
{
    long n = ring_stage(&r->out, data, len);

    if (n > 0)
        ring_publish(&r->out);
    return n;
}

static long get(struct ring *r, void *to, size_t len)
{
    long n = ring_take(&r->in, to, len, len);

    if (n > 0)
        ring_release(&r->in);
    return n;
}

/* ---- bytes ---- */

TEST(ring_carries_bytes_around_its_end_and_past_the_last_number)
{
    static const uint64_t from[] = { 0, SIZE - 3, UINT64_MAX - 10000 };
    unsigned char data[300], back[300];

    for (size_t f = 0; f < sizeof from / sizeof from[0]; f++) {
        struct ring *r = ring_new(from[f]);

        for (unsigned i = 0; i < 1000; i++) {
            size_t len = i % sizeof data;

            memset(data, (int)i, sizeof data);
            assert_int_equal(put(r, data, len), len);
            assert_int_equal(get(r, back, sizeof back), len);
            assert_memory_equal(back, data, len);
        }
        free(r);
    }
}

TEST(ring_accepts_bytes_up_to_its_free_space)
{
    unsigned char data[SIZE + 100] = { 1 };
    struct ring *r = ring_new(SIZE - 7);

    assert_false(ring_is_full(&r->out));
    assert_int_equal(put(r, data, sizeof data), SIZE);
    assert_true(ring_is_full(&r->out));
    assert_int_equal(put(r, data, 1), 0);
    assert_int_equal(get(r, data, 10), 10);
    assert_false(ring_is_full(&r->out));
    assert_int_equal(put(r, data, 11), 10);
    free(r);
}

TEST(ring_shows_nothing_before_the_publication)
{
    struct ring *r = ring_new(0);
    char back[4];

    assert_int_equal(ring_stage(&r->out, "ab", 2), 2);
    assert_int_equal(get(r, back, 4), 0);
    assert_int_equal(put(r, "cd", 2), 2);
    assert_int_equal(get(r, back, 4), 4);
    assert_memory_equal(back, "abcd", 4);
    free(r);
}

/* ---- what the other side writes into the words ---- */

TEST(ring_does_not_believe_the_writers_cursor)
{
    static const uint64_t bad[] = { SIZE + 101, UINT64_MAX, 99, 0, UINT64_C(1) << 63 };
    char back[16];

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct ring *r = ring_new(100);

        atomic_store(&r->words.head, bad[i]);
        assert_int_equal(get(r, back, sizeof back), -1);
        free(r);
    }
}

TEST(ring_does_not_believe_the_readers_cursor)
{
    static const uint64_t bad[] = { SIZE + 101, UINT64_MAX, 0, UINT64_C(1) << 63 };
    unsigned char data[SIZE] = { 0 };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct ring *r = ring_new(100);

        assert_int_equal(put(r, data, SIZE), SIZE);
        atomic_store(&r->words.tail, bad[i]);
        assert_int_equal(put(r, data, 1), -1);
        assert_false(ring_is_full(&r->out));
        free(r);
    }
}

/* The cursor that was refused is not kept: it would make room of nothing. */
TEST(ring_writes_nothing_outside_after_an_impossible_cursor_of_the_reader)
{
    static unsigned char data[4 * SIZE];
    struct ring *r = ring_new(0);
    const struct ring_writer before = r->out;

    assert_int_equal(put(r, data, SIZE), SIZE);
    atomic_store(&r->words.tail, UINT64_C(1) << 40);
    assert_false(ring_is_full(&r->out));
    assert_int_equal(r->out.tail, before.tail);
    atomic_store(&r->words.tail, 0);
    assert_int_equal(put(r, data, sizeof data), 0);
    assert_int_equal(r->out.head, SIZE);
    free(r);
}

TEST(ring_reads_nothing_outside_after_an_impossible_cursor_of_the_writer)
{
    static unsigned char back[4 * SIZE];
    struct ring *r = ring_new(0);

    atomic_store(&r->words.head, UINT64_C(1) << 40);
    assert_int_equal(get(r, back, 8), -1);
    assert_int_equal(r->in.head, 0);
    atomic_store(&r->words.head, 3);
    assert_int_equal(get(r, back, sizeof back), 3);
    /* Between what was released and what was taken lies no place for a writer. */
    assert_int_equal(put(r, "abcd", 4), 4);
    atomic_store(&r->words.head, 7);
    assert_int_equal(ring_take(&r->in, back, 4, 4), 4);
    atomic_store(&r->words.head, 5);
    assert_int_equal(ring_take(&r->in, back, 4, 4), -1);
    free(r);
}

/* A side's own words are of no interest to it: others may have written there. */
TEST(ring_does_not_read_its_own_cursor_back)
{
    struct ring *r = ring_new(0);
    char back[8];

    atomic_store(&r->words.tail, 77);
    assert_int_equal(put(r, "ab", 2), 2);
    assert_int_equal(get(r, back, 8), 2);
    atomic_store(&r->words.head, 2);
    assert_int_equal(put(r, "cd", 2), 2);
    assert_int_equal(get(r, back, 8), 2);
    assert_memory_equal(back, "cd", 2);
    free(r);
}

/* ---- wake-ups ---- */

TEST(ring_wakes_a_reader_once_and_only_when_asleep)
{
    struct ring *r = ring_new(0);

    put(r, "a", 1);
    assert_int_equal(ring_reader_to_wake(&r->out), 0);
    ring_sleep(&r->words.reader_sleeps, RING_FUTEX);
    ring_sleep(&r->words.reader_sleeps, RING_BELL);
    put(r, "b", 1);
    assert_int_equal(ring_reader_to_wake(&r->out), RING_FUTEX | RING_BELL);
    assert_int_equal(ring_reader_to_wake(&r->out), 0);
    ring_sleep(&r->words.reader_sleeps, RING_FUTEX | RING_BELL);
    ring_awake(&r->words.reader_sleeps, RING_FUTEX);
    assert_int_equal(ring_reader_to_wake(&r->out), RING_BELL);
    free(r);
}

TEST(ring_wakes_a_writer_when_half_or_all_space_is_free)
{
    unsigned char data[SIZE] = { 0 };
    struct ring *r = ring_new(0);

    put(r, data, SIZE);
    ring_sleep(&r->words.writer_sleeps, RING_BELL);
    assert_true(ring_is_full(&r->out));
    get(r, data, SIZE / 2);
    assert_false(ring_should_look(&r->in, false));
    get(r, data, 1);
    assert_true(ring_should_look(&r->in, false));
    assert_int_equal(ring_writer_to_wake(&r->in), RING_BELL);
    assert_int_equal(ring_writer_to_wake(&r->in), 0);
    get(r, data, 1);
    assert_false(ring_should_look(&r->in, false));
    assert_true(ring_should_look(&r->in, true));
    free(r);
}

/* ---- two threads, each of which sleeps whenever it can ---- */

#define RACE_BYTES (4u << 20)

static void wait_at(_Atomic uint32_t *word)
{
    uint32_t v = atomic_load(word);

    /* Without a limit: a wake-up that is lost hangs the test. */
    if (v)
        syscall(SYS_futex, word, FUTEX_WAIT, v, NULL, NULL, 0);
}

static void wake(_Atomic uint32_t *word, uint32_t how)
{
    if (how)
        syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void *race_write(void *arg)
{
    struct ring *r = arg;
    unsigned char data[700];
    unsigned seed = 1, at = 0;

    while (at < RACE_BYTES) {
        size_t len = 1 + (seed = seed * 1103515245 + 12345) / 65536 % sizeof data;
        long n;

        if (len > RACE_BYTES - at)
            len = RACE_BYTES - at;
        for (size_t i = 0; i < len; i++)
            data[i] = (unsigned char)((at + i) * 7);
        n = put(r, data, len);
        at += (unsigned)n;
        wake(&r->words.reader_sleeps, n ? ring_reader_to_wake(&r->out) : 0);
        if (n)
            continue;
        ring_sleep(&r->words.writer_sleeps, RING_FUTEX);
        if (ring_is_full(&r->out))
            wait_at(&r->words.writer_sleeps);
        else
            ring_awake(&r->words.writer_sleeps, RING_FUTEX);
    }
    return NULL;
}

static void *race_read(void *arg)
{
    struct ring *r = arg;
    unsigned char data[900];
    unsigned seed = 2, at = 0, wrong = 0;

    while (at < RACE_BYTES) {
        size_t len = 1 + (seed = seed * 1103515245 + 12345) / 65536 % sizeof data;
        long n = get(r, data, len);

        for (long i = 0; i < n; i++)
            wrong += data[i] != (unsigned char)((at + (unsigned)i) * 7);
        at += (unsigned)n;
        if (ring_should_look(&r->in, n == 0))
            wake(&r->words.writer_sleeps, ring_writer_to_wake(&r->in));
        if (n)
            continue;
        ring_sleep(&r->words.reader_sleeps, RING_FUTEX);
        if (ring_head(&r->in) == r->in.tail)
            wait_at(&r->words.reader_sleeps);
        else
            ring_awake(&r->words.reader_sleeps, RING_FUTEX);
    }
    return (void *)(uintptr_t)wrong;
}

TEST(ring_loses_no_byte_and_no_wake_up_between_threads)
{
    struct ring *r = ring_new(0);
    pthread_t writer, reader;
    void *wrong;

    alarm(120); /* a lost wake-up ends here */
    pthread_create(&writer, NULL, race_write, r);
    pthread_create(&reader, NULL, race_read, r);
    pthread_join(writer, NULL);
    pthread_join(reader, &wrong);
    alarm(0);
    assert_null(wrong);
    free(r);
}

/* ---- memory from another process ---- */

TEST(ring_setup_connects_both_ends)
{
    struct ring_end caller, listener;
    const char *why;
    char back[8];
    int s[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
    assert_int_equal(ring_setup_take(s[1], &listener, &why), EAGAIN);
    assert_int_equal(ring_setup_call(s[0], SIZE, &caller), 0);
    assert_int_equal(ring_setup_answered(s[0], &why), EAGAIN);
    assert_int_equal(ring_setup_take(s[1], &listener, &why), 0);
    assert_int_equal(ring_setup_answered(s[0], &why), 0);
    ring_stage(&caller.out, "to", 2);
    ring_publish(&caller.out);
    ring_stage(&listener.out, "fro", 3);
    ring_publish(&listener.out);
    assert_int_equal(ring_take(&listener.in, back, 8, 8), 2);
    assert_int_equal(ring_take(&caller.in, back, 8, 8), 3);
    ring_end_close(&caller);
    ring_end_close(&listener);
    close(s[0]);
    close(s[1]);
}

enum flaw {
    FLAW_NONE,
    FLAW_MAGIC,
    FLAW_SIZE_ODD,
    FLAW_SIZE_HUGE,
    FLAW_SIZE_OTHER,
    FLAW_NO_SEALS,
    FLAW_READ_ONLY,
    FLAW_FILE,
    FLAW_PIPE_AS_MEMORY,
    FLAW_SHORT,
    FLAW_TOO_FEW_FDS,
    FLAW_TOO_MANY_FDS,
    FLAWS,
};

static int memory_with(enum flaw flaw)
{
    const off_t len = 4096 + 2 * SIZE;
    char path[] = "/tmp/tenrec_ring_XXXXXX";
    int fd;

    if (flaw == FLAW_FILE) {
        fd = mkstemp(path);
        unlink(path);
    } else {
        fd = memfd_create("test", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    }
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, flaw == FLAW_SIZE_OTHER ? len - 1 : len), 0);
    if (flaw != FLAW_NO_SEALS && flaw != FLAW_FILE)
        fcntl(fd, F_ADD_SEALS,
              F_SEAL_SHRINK | F_SEAL_GROW | (flaw == FLAW_READ_ONLY ? F_SEAL_WRITE : 0));
    return fd;
}

static void send_with(int sock, enum flaw flaw)
{
    unsigned char text[24] = "tenring2";
    int fd[2] = { memory_with(flaw), eventfd(0, EFD_CLOEXEC) };
    int n = flaw == FLAW_TOO_FEW_FDS ? 0 : flaw == FLAW_TOO_MANY_FDS ? 2 : 1, tube[2];
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(sizeof fd)];
    } control = { .buf = { 0 } };
    struct iovec iov = { text, flaw == FLAW_SHORT ? 23 : 24 };
    struct msghdr m = { .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control.buf,
                        .msg_controllen = (socklen_t)CMSG_SPACE((size_t)n * sizeof(int)) };
    struct cmsghdr *c = &control.align;
    uint64_t size[2] = { SIZE, SIZE };

    if (flaw == FLAW_MAGIC)
        text[7] = 'x';
    if (flaw == FLAW_SIZE_ODD)
        size[0]++;
    if (flaw == FLAW_SIZE_HUGE)
        size[1] = UINT64_C(1) << 63;
    memcpy(text + 8, size, sizeof size);
    assert_int_equal(pipe(tube), 0);
    if (flaw == FLAW_PIPE_AS_MEMORY)
        dup2(tube[0], fd[0]);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = (socklen_t)CMSG_LEN((size_t)n * sizeof(int));
    memcpy(CMSG_DATA(c), fd, (size_t)n * sizeof(int));
    if (!n)
        m.msg_controllen = 0;
    assert_int_equal(sendmsg(sock, &m, 0), iov.iov_len);
    for (int i = 0; i < 2; i++)
        close(fd[i]);
    close(tube[0]);
    close(tube[1]);
}

static int count_fds(void)
{
    int n = 0;

    for (int fd = 0; fd < 1000; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

TEST(ring_setup_refuses_dangerous_files_and_keeps_no_descriptor)
{
    struct ring_end end;
    const char *why;
    int before, s[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
    before = count_fds();
    for (enum flaw flaw = FLAW_NONE + 1; flaw < FLAWS; flaw++) {
        send_with(s[0], flaw);
        if (ring_setup_take(s[1], &end, &why) == 0)
            fail_msg("flaw %d was not noticed", (int)flaw);
        assert_non_null(why);
        assert_int_equal(count_fds(), before);
        assert_int_equal(ring_setup_answered(s[0], &why), EPROTO);
    }
    send_with(s[0], FLAW_NONE);
    assert_int_equal(ring_setup_take(s[1], &end, &why), 0);
    ring_end_close(&end);
    assert_int_equal(count_fds(), before);
    close(s[0]);
    assert_int_equal(ring_setup_take(s[1], &end, &why), ECONNRESET);
    close(s[1]);
}
