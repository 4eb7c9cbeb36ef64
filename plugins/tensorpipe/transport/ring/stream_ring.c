/* SPDX-License-Identifier: Apache-2.0 */
/* stream_ring.c - bytes through rings in shared memory.
 *
 * Reading and writing are copies by the thread that wants them, without system
 * call. A thread that waits is woken in one of two ways, and only after it has said
 * that it sleeps: a thread that polls for its answer by a futex, since that takes one
 * system call to sleep; the loop thread, and a thread that sleeps for long, by a bell:
 * a byte on the connection's socket, which is in the epoll set (ring_bells.h).
 *
 * `got` is how far was read; the same number in shared memory is the peer's to change,
 * and so is never read.
 *
 * A ring whose peer moved a cursor to an impossible place is broken: from then on
 * no thread reads from it or writes to it. */
#include "endpoint.h"
#include "transport/ring/ring_medium.h"
#include "transport/ring/transport_ring.h"
#include "transport/transport_local.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SMALL 4096                 /* bytes of messages that are copied at once */
#define BLIND_NS UINT64_C(1000000) /* a sleep that no bell can end */
#define FALSE_ALARMS 16            /* wake-ups without news that a waiting read puts up with */

/* Published at once, so that the other side copies at the same time. */
static size_t chunk_of(uint64_t size)
{
    return size < 1u << 20 ? 16u << 10 : 32u << 10;
}

static long ring_futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *limit)
{
    return syscall(SYS_futex, word, op, value, limit, NULL, 0);
}

static void wake_peer(struct ring_medium *m, _Atomic uint32_t *word, uint32_t how)
{
    if (how & RING_FUTEX)
        ring_futex(word, FUTEX_WAKE, 1, NULL);
    if (how & RING_BELL)
        bells_ring(&m->bells);
}

void ring_medium_end(struct ring_medium *m)
{
    _Atomic uint32_t *word = m->state == RING_OPEN ? &m->end.in.words->reader_sleeps : NULL;

    if (atomic_exchange(&m->ended, true) || !word)
        return;
    ring_awake(word, RING_FUTEX);
    ring_futex(word, FUTEX_WAKE, INT_MAX, NULL);
}

/* ---- reading ---- */

static long ring_break(struct ring_medium *m)
{
    if (!atomic_exchange(&m->broken, true))
        endpoint_log(m->conn->ep, TENREC_LOG_WARN,
                     "process %d: impossible cursor in its ring; the connection ends",
                     (int)m->conn->pid);
    return -EPROTO;
}

static bool ring_is_broken(const struct ring_medium *m)
{
    return atomic_load_explicit(&m->broken, memory_order_relaxed);
}

static void stream_let_write(struct ring_medium *m)
{
    wake_peer(m, &m->end.in.words->writer_sleeps, ring_writer_to_wake(&m->end.in));
}

static long stream_take(struct ring_medium *m, const struct iovec *iov, int n)
{
    struct ring_reader *r = &m->end.in;
    const size_t chunk = chunk_of(r->size);
    long total = 0;

    for (int i = 0; i < n; i++) {
        for (size_t at = 0; at < iov[i].iov_len;) {
            size_t left = iov[i].iov_len - at, part = left < chunk ? left : chunk;
            long got = ring_take(r, (char *)iov[i].iov_base + at, part, iov[i].iov_len);

            if (got < 0)
                return ring_break(m);
            if (got == 0)
                return total;
            ring_release(r);
            if (ring_should_look(r, false))
                stream_let_write(m);
            at += (size_t)got;
            total += got;
            if ((size_t)got < part)
                return total;
        }
    }
    return total;
}

/* The same for small messages, which are mostly contiguous, with room for all received bytes. */
static long stream_take_small(struct ring_medium *m, const struct iovec *iov, int n)
{
    struct ring_reader *r = &m->end.in;
    const uint64_t head = ring_head(r), there = head - r->tail, at = r->tail & (r->size - 1);

    if (there == 0)
        return 0;
    if (n > 1 || there > SMALL || there > iov->iov_len || there > r->size - at)
        return stream_take(m, iov, n);
    r->head = head;
    memcpy(iov->iov_base, r->data + at, (size_t)there);
    r->tail = head;
    ring_release(r);
    if (ring_should_look(r, false))
        stream_let_write(m);
    return (long)there;
}

/* Sleeps until the writer says that there is something, or CONN_WAIT_MS. */
static void sleep_for_data(struct ring_medium *m)
{
    const struct timespec limit = { 0, CONN_WAIT_MS * 1000000L };
    const struct ring_reader *r = &m->end.in;
    _Atomic uint32_t *word = &r->words->reader_sleeps;

    for (int i = 0; i < FALSE_ALARMS; i++) {
        uint32_t value;

        ring_sleep(word, RING_FUTEX);
        value = atomic_load_explicit(word, memory_order_relaxed);
        if (ring_head(r) != r->tail || atomic_load(&m->ended))
            break;
        if (!(value & RING_FUTEX))
            continue;
        if (ring_futex(word, FUTEX_WAIT, value, &limit) < 0 && errno == ETIMEDOUT)
            break;
        if (ring_head(r) != r->tail)
            return; /* the writer took RING_FUTEX away as it woke this thread */
    }
    ring_awake(word, RING_FUTEX);
}

static ssize_t ring_read(struct conn *c, struct iovec *iov, int n, bool wait)
{
    struct ring_medium *m = c->medium;
    struct ring_reader *r = &m->end.in;
    bool ended;
    long got;

    if (m->bare)
        return c->tls ? c->ep->tls->read(c->tls, iov, n)
                      : local_receive(c->source.fd, iov->iov_base, iov->iov_len);
    if (m->state != RING_OPEN)
        return m->error ? -m->error : atomic_load(&m->ended) ? 0 : -EAGAIN;
    if (ring_is_broken(m))
        return -EPROTO;
    ended = atomic_load_explicit(&m->ended, memory_order_acquire);
    got = stream_take_small(m, iov, n);
    if (got == 0 && !ended) {
        if (ring_should_look(r, true))
            stream_let_write(m);
        if (!wait)
            return -EAGAIN;
        sleep_for_data(m);
        ended = atomic_load(&m->ended);
        got = stream_take_small(m, iov, n);
    }
    if (got > 0) {
        atomic_store_explicit(&m->got, r->tail, memory_order_relaxed);
        atomic_store_explicit(&m->seen, r->tail, memory_order_relaxed);
    }
    return got || ended ? got : -EAGAIN;
}

/* ---- writing ---- */

/* Publishes what was staged, and wakes the reader if it sleeps. */
static void stream_publish(struct ring_medium *m)
{
    struct ring_writer *w = &m->end.out;

    ring_publish(w);
    wake_peer(m, &w->words->reader_sleeps, ring_reader_to_wake(w));
}

/* Writes a message that has contiguous room. Returns false if nothing was written. */
static bool stream_write_small(struct ring_medium *m, const struct iovec *iov)
{
    struct ring_writer *w = &m->end.out;
    const uint64_t at = w->head & (w->size - 1), room = w->size - (w->head - w->tail);
    const size_t len = iov->iov_len;

    if (len > SMALL || len > room || len > w->size - at)
        return false;
    memcpy(w->data + at, iov->iov_base, len);
    w->head += len;
    stream_publish(m);
    return true;
}

static ssize_t ring_write(struct conn *c, struct iovec *iov, unsigned n)
{
    struct ring_medium *m = c->medium;
    struct ring_writer *w = &m->end.out;
    const size_t chunk = chunk_of(w->size);
    ssize_t total = 0;
    size_t staged = 0;

    if (m->bare)
        return c->tls ? c->ep->tls->write(c->tls, iov, n)
                      : local_send(c->source.fd, iov->iov_base, iov->iov_len);
    if (m->state != RING_OPEN || atomic_load_explicit(&m->ended, memory_order_relaxed))
        return -EPIPE;
    if (ring_is_broken(m))
        return -EPROTO;
    if (n == 1 && stream_write_small(m, iov))
        return (ssize_t)iov->iov_len;
    for (unsigned i = 0; i < n; i++) {
        for (size_t at = 0; at < iov[i].iov_len;) {
            size_t left = iov[i].iov_len - at, part = left < chunk ? left : chunk;
            long put = ring_stage(w, (const char *)iov[i].iov_base + at, part);

            if (put < 0)
                return ring_break(m);
            at += (size_t)put;
            staged += (size_t)put;
            total += put;
            if ((size_t)put == part && staged < chunk)
                continue;
            if (staged)
                stream_publish(m);
            staged = 0;
            if (put == 0)
                return total ? total : -EAGAIN;
        }
    }
    if (staged)
        stream_publish(m);
    return total;
}

static bool ring_want_room(struct conn *c, bool masked)
{
    struct ring_medium *m = c->medium;
    struct ring_writer *w = &m->end.out;

    (void)masked;
    if (m->state != RING_OPEN)
        return false;
    atomic_store(&m->wants_room, true);
    bells_ask(&m->bells, &w->words->writer_sleeps);
    if (ring_is_full(w) && !atomic_load(&m->ended) && !ring_is_broken(m))
        return false;
    ring_awake(&w->words->writer_sleeps, RING_BELL);
    atomic_store(&m->wants_room, false);
    return true;
}

static int ring_connected(struct conn *c)
{
    struct ring_medium *m = c->medium;

    return m->error || m->bare || m->state == RING_OPEN ? m->error : ECONNRESET;
}

/* ---- sleeping for longer than a futex should ---- */

/* A bell that this thread takes away may have been the loop's. */
static void ring_take_bells(struct ring_medium *m, bool sleeps)
{
    if (bells_take_as_sleeper(&m->bells, sleeps) &&
        (atomic_load(&m->hears) == HEARS_ALL || atomic_load(&m->wants_room)))
        reactor_post(&m->conn->ep->reactor, &m->recheck);
}

static bool ring_sleep_long(struct conn *c, struct conn_sleep *ret)
{
    struct ring_medium *m = c->medium;
    const struct ring_reader *r = &m->end.in;

    ring_take_bells(m, true);
    bells_ask(&m->bells, &r->words->reader_sleeps);
    *ret = bells_are_alone(&m->bells) ? (struct conn_sleep){ .fd = c->source.fd }
                                      : (struct conn_sleep){ .fd = -1, .ns = BLIND_NS };
    return ring_head(r) == r->tail && !atomic_load(&m->ended);
}

static void ring_awake_long(struct conn *c)
{
    struct ring_medium *m = c->medium;

    ring_take_bells(m, false);
    if (atomic_load(&m->hears) != HEARS_ALL)
        ring_awake(&m->end.in.words->reader_sleeps, RING_BELL);
}

/* ---- the end ---- */

static void ring_cut(struct conn *c)
{
    struct ring_medium *m = c->medium;

    shutdown(c->source.fd, SHUT_RDWR);
    ring_medium_end(m);
}

static void ring_drop(struct conn *c)
{
    struct ring_medium *m = c->medium;
    struct reactor *r = &c->ep->reactor;

    reactor_unwatch(r, &c->source);
    reactor_look_remove(&m->look);
}

static void ring_free(struct conn *c)
{
    struct ring_medium *m = c->medium;

    ring_session_close(c);
    close(c->source.fd);
    if (!m)
        return;
    ring_end_close(&m->end);
    bells_finish(&m->bells);
    free(m);
}

static const struct stream stream_ring = {
    .bounded = true,
    .passes_fds = true,
    .read = ring_read,
    .write = ring_write,
    .hear = ring_events_hear,
    .want_room = ring_want_room,
    .events = ring_events,
    .sleep = ring_sleep_long,
    .awake = ring_awake_long,
    .share = ring_opening_share,
    .shake = ring_session_shake,
    .connected = ring_connected,
    .cut = ring_cut,
    .drop = ring_drop,
    .free = ring_free,
};

struct conn *stream_ring_conn(struct endpoint *ep, const struct transport *transport, int fd,
                              const union transport_address *peer)
{
    struct ring_medium *m = calloc(1, sizeof *m);
    struct conn *c;

    if (!m) {
        close(fd);
        return NULL;
    }
    c = conn_new(ep, transport, &stream_ring, fd, peer);
    if (!c) {
        free(m);
        return NULL;
    }
    m->conn = c;
    m->bare = ep->proves;
    bells_init(&m->bells, c);
    ring_events_init(m);
    c->medium = m;
    return c;
}
