/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_ring.c - a peer that does what it likes with rings that it shares, and with the
 * messages over which memory comes.
 *
 * The first byte says what gets the rest: the cursors of ring.c over memory of the heap,
 * where a sanitizer sees each byte beyond; a stream over a ring of two ends; or the
 * message of ring_setup.c, with descriptors of all kinds. */
#include "fuzz.h"

#include "endpoint.h"
#include "reactor/reactor_inside.h"
#include "transport/ring/ring.h"
#include "transport/ring/transport_ring.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES (3 * RING_SIZE_MIN)

static unsigned char bytes[BYTES];

/* Mostly a little: far away is found out at once. */
static uint64_t take_distance(struct fuzz_input *in)
{
    return fuzz_take(in, 1) % 8 ? fuzz_take(in, 2) : fuzz_take(in, 8);
}

/* ---- cursors ---- */

static void fuzz_cursors(struct fuzz_input *in)
{
    struct ring_words *words = aligned_alloc(RING_LINE, sizeof *words);
    unsigned char *data = calloc(1, RING_SIZE_MIN), *to = malloc(BYTES);
    struct ring_writer w = { words, data, RING_SIZE_MIN, 0, 0 };
    struct ring_reader r = { words, data, RING_SIZE_MIN, 0, 0, 0, 0 };
    size_t len;
    long n;

    fuzz_expect(words && data && to);
    *words = (struct ring_words){ .head = 0 };
    while (in->len) {
        switch (fuzz_take(in, 1) % 7) {
        case 0:
            len = (size_t)fuzz_take(in, 2) % BYTES;
            n = ring_stage(&w, bytes, len);
            fuzz_expect(n >= -1 && n <= (long)len && w.head - w.tail <= RING_SIZE_MIN);
            break;
        case 1:
            ring_publish(&w);
            break;
        case 2:
            len = (size_t)fuzz_take(in, 2) % BYTES;
            n = ring_take(&r, to, len, len);
            fuzz_expect(n >= -1 && n <= (long)len && r.head - r.tail <= RING_SIZE_MIN);
            break;
        case 3:
            ring_release(&r);
            break;
        case 4:
            (void)ring_is_full(&w);
            break;
        case 5:
            atomic_fetch_add(&words->tail, take_distance(in));
            break;
        default:
            atomic_fetch_add(&words->head, take_distance(in));
        }
    }
    free(words);
    free(data);
    free(to);
}

/* ---- descriptors ---- */

/* One of the kinds of descriptor that a peer may send; -1: none. */
static int descriptor(unsigned kind)
{
    int fd = -1;

    switch (kind % 6) {
    case 1:
    case 2:
        fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        fuzz_expect(ftruncate(fd, kind % 6 == 1 ? 512 + 2 * RING_SIZE_MIN : 100) == 0);
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
        break;
    case 3:
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        break;
    case 4:
        fd = eventfd(0, EFD_CLOEXEC);
        break;
    case 5:
        fd = dup(STDERR_FILENO);
        break;
    }
    return fd;
}

/* Sends up to 7 descriptors and up to 40 bytes. */
static void send_message(int sock, struct fuzz_input *in)
{
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(7 * sizeof(int))];
    } control = { .buf = { 0 } };
    unsigned n = (unsigned)fuzz_take(in, 1) % 8, got = 0;
    int fd[7];
    struct fuzz_input text;
    struct iovec iov;
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

    for (unsigned i = 0; i < n; i++) {
        fd[got] = descriptor((unsigned)fuzz_take(in, 1));
        got += fd[got] >= 0;
    }
    text = fuzz_take_bytes(in);
    iov = (struct iovec){ (void *)(uintptr_t)text.at, text.len < 40 ? text.len : 40 };
    if (got) {
        m.msg_control = control.buf;
        m.msg_controllen = (socklen_t)CMSG_SPACE(got * sizeof(int));
        CMSG_FIRSTHDR(&m)->cmsg_level = SOL_SOCKET;
        CMSG_FIRSTHDR(&m)->cmsg_type = SCM_RIGHTS;
        CMSG_FIRSTHDR(&m)->cmsg_len = (socklen_t)CMSG_LEN(got * sizeof(int));
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), fd, got * sizeof(int));
    }
    (void)!sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (got)
        close(fd[--got]);
}

static void fuzz_ring_setup(struct fuzz_input *in)
{
    struct ring_end end;
    const char *why;
    int pair[2];

    fuzz_expect(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    send_message(pair[1], in);
    if (ring_setup_answered(pair[0], &why) != 0)
        fuzz_touch(why, 1);
    send_message(pair[1], in);
    if (ring_setup_take(pair[0], &end, &why) == 0) {
        fuzz_touch(end.memory, end.len);
        ring_end_close(&end);
    }
    close(pair[0]);
    close(pair[1]);
}

/* ---- a stream ---- */

static bool log_nothing(const void *self, enum tenrec_log_level level)
{
    (void)self, (void)level;
    return false;
}

/* What the kernel's wake-ups would make of the peer's doings is left out: the stream is
 * asked directly, so that nothing waits. */
static void use(struct conn *c, unsigned what, struct fuzz_input *in)
{
    unsigned char *to = malloc(BYTES);
    struct iovec iov[2] = { { to, (size_t)fuzz_take(in, 1) },
                            { to + 256, (size_t)fuzz_take(in, 2) % (BYTES - 256) } };
    struct conn_sleep sleep;
    ssize_t n;

    fuzz_expect(to != NULL);
    memset(to, 3, BYTES);
    switch (what) {
    case 0:
        n = c->stream->read(c, iov, 2, false);
        fuzz_expect(n == -EAGAIN || n == -EPROTO ||
                    (n >= 0 && (size_t)n <= iov[0].iov_len + iov[1].iov_len));
        break;
    case 1:
        n = c->stream->write(c, iov, 2);
        fuzz_expect(n == -EAGAIN || n == -EPROTO || n == -EPIPE ||
                    (n >= 0 && (size_t)n <= iov[0].iov_len + iov[1].iov_len));
        break;
    case 2:
        (void)c->stream->want_room(c, false);
        break;
    case 3:
        (void)c->stream->events(c, EPOLLIN);
        break;
    default:
        if ((*c->stream->sleep)(c, &sleep))
            c->stream->awake(c);
    }
    free(to);
}

static void peer_does(struct ring_end *peer, unsigned what, struct fuzz_input *in)
{
    switch (what) {
    case 0:
        if (ring_stage(&peer->out, bytes, (size_t)fuzz_take(in, 2) % BYTES) > 0)
            ring_publish(&peer->out);
        break;
    case 1:
        if (ring_take(&peer->in, bytes, (size_t)fuzz_take(in, 2) % BYTES, 1) > 0)
            ring_release(&peer->in);
        break;
    case 2:
        atomic_fetch_add(&peer->out.words->head, take_distance(in));
        break;
    case 3:
        atomic_fetch_add(&peer->in.words->tail, take_distance(in));
        break;
    default:
        atomic_store(&peer->out.words->tail, take_distance(in));
        atomic_store(&peer->out.words->writer_sleeps, (uint32_t)take_distance(in));
        atomic_store(&peer->in.words->reader_sleeps, (uint32_t)take_distance(in));
    }
}

static void ignore_events(struct conn *c, uint32_t events)
{
    (void)c, (void)events;
}

static void fuzz_stream(struct fuzz_input *in)
{
    static const struct tenrec_host host = { .log_enabled = log_nothing };
    struct endpoint *ep = calloc(1, sizeof *ep);
    const union transport_address from = { .any = { .sa_family = AF_UNIX } };
    struct ring_end peer;
    struct conn *c;
    int pair[2];

    fuzz_expect(ep && reactor_init(&ep->reactor, NULL) == TENREC_OK);
    ep->host = &host;
    reactor_mine = &ep->reactor;
    fuzz_expect(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
    c = stream_ring_conn(ep, &transport_ring, pair[0], &from);
    fuzz_expect(c != NULL);
    conn_set_owner(c, ignore_events, NULL);
    fuzz_expect(c->stream->hear(c, HEARS_ALL) == 0);
    fuzz_expect(ring_setup_call(pair[1], RING_SIZE_MIN, &peer) == 0);
    (void)c->stream->events(c, EPOLLIN);
    while (in->len) {
        const unsigned what = (unsigned)fuzz_take(in, 1) % 11;

        if (what < 5)
            use(c, what, in);
        else if (what < 10)
            peer_does(&peer, what - 5, in);
        else
            send_message(pair[1], in); /* bells, and what is none */
    }
    conn_drop(c);
    while (atomic_load(&ep->reactor.waiting))
        reactor_round(&ep->reactor, 0);
    ring_end_close(&peer);
    close(pair[1]);
    reactor_mine = NULL;
    reactor_finish(&ep->reactor);
    free(ep);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static void (*const readers[])(struct fuzz_input *) = { fuzz_cursors, fuzz_stream,
                                                            fuzz_ring_setup };
    struct fuzz_input in = { data + 1, len - 1 };

    if (len > 0)
        readers[data[0] % (sizeof readers / sizeof readers[0])](&in);
    return 0;
}
