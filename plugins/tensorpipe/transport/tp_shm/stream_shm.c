/* SPDX-License-Identifier: Apache-2.0 */
/* stream_shm.c - a connection over the rings of TensorPipe's shm transport.
 *
 * The socket stays in the loop's epoll set for as long as the connection lives,
 * because nothing but its end ever comes there. */
#include "transport/tp_shm/stream_shm.h"
#include "endpoint.h"
#include "transport/conn.h"
#include "transport/tp_shm/shm_watch.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* ---- handshake ---- */

struct conn *stream_shm_conn(struct endpoint *ep, const struct transport *transport, int fd,
                             const union transport_address *peer, int *ret_errno)
{
    struct shm_medium *m = calloc(1, sizeof *m);
    struct conn *c = conn_new(ep, transport, &stream_shm, fd, peer);
    tenrec_error err;

    *ret_errno = ENOMEM;
    if (!m || !c)
        goto err;
    if (shm_link_init(&m->link, &m->ours, &err)) {
        *ret_errno = err.os_errno ? err.os_errno : ENOMEM;
        goto err;
    }
    m->conn = c;
    c->medium = m;
    return c;

err:
    free(m);
    conn_drop(c);
    return NULL;
}

int stream_shm_reached(struct conn *c)
{
    struct shm_medium *m = c->medium;
    int e = shm_hello_send(c->source.fd, &m->ours);

    shm_hello_close(&m->ours);
    m->reached = e == 0;
    return e;
}

void stream_shm_reached_late(struct conn *c, int e)
{
    struct shm_medium *m = c->medium;

    if (!e)
        e = stream_shm_reached(c);
    if (!e)
        return;
    m->failed = e;
    atomic_store(&m->ended, true);
    c->on_events(c, EPOLLIN | EPOLLERR);
}

/* Attaches the peer's rings if they have arrived. Stores a failure as an errno in
 * m->failed; the log has the details. */
static void shm_attach(struct conn *c, struct shm_medium *m)
{
    struct shm_hello hello;
    tenrec_error err;
    tenrec_status st;

    m->failed = shm_hello_receive(c->source.fd, &hello);
    if (m->failed)
        return;
    st = shm_link_attach(&m->link, &hello, &err);
    shm_hello_close(&hello);
    if (st) {
        m->failed = err.os_errno ? err.os_errno : EPROTO;
        endpoint_log(c->ep, TENREC_LOG_WARN, "shm connection with process %d closed: %s",
                     (int)c->pid, err.text);
        return;
    }
    m->attached = true;
    shm_watch_add(c->ep->shm, m);
}

static uint32_t shm_events(struct conn *c, uint32_t fetched)
{
    struct shm_medium *m = c->medium;
    uint32_t events = 0;

    if (!m->reached)
        return 0; /* that a socket is not connected counts as its end, too */
    if (!m->attached && !m->failed) {
        shm_attach(c, m);
        if (m->failed == EAGAIN) {
            m->failed = 0;
        } else if (m->failed) {
            atomic_store(&m->ended, true);
            return EPOLLIN | EPOLLERR;
        } else {
            /* What comes next is the hello, which may be here already. */
            events = EPOLLIN | EPOLLOUT;
            fetched &= ~(uint32_t)EPOLLIN;
        }
    }
    /* Whatever comes afterwards is the end: nothing else is allowed there. */
    if (fetched & (CONN_END | (m->attached ? EPOLLIN : 0))) {
        atomic_store(&m->ended, true);
        if (atomic_load(&m->hears) != HEARS_NOTHING)
            events |= EPOLLIN | EPOLLRDHUP;
        if (atomic_exchange(&m->wants_room, false))
            events |= EPOLLOUT;
    }
    return events;
}

static int shm_connected(struct conn *c)
{
    const struct shm_medium *m = c->medium;

    if (m->failed)
        return m->failed;
    return m->attached ? 0 : ECONNRESET;
}

/* ---- reading ---- */

static ssize_t read_once(struct shm_medium *m, const struct iovec *iov, int n)
{
    /* Asked first: what was written before the end is read before it. */
    bool ended = atomic_load(&m->ended);
    ssize_t r;

    if (!m->attached)
        return m->failed ? -m->failed : ended ? 0 : -EAGAIN;
    r = shm_link_read(&m->link, iov, n);
    if (r > 0)
        m->naps = 0;
    return r == -EAGAIN && ended ? 0 : r;
}

/* Looks again and again, with pauses in which only the end wakes. */
static ssize_t read_waiting(struct conn *c, const struct iovec *iov, int n)
{
    struct shm_medium *m = c->medium;
    uint64_t since = now_ns(), waited = 0;
    ssize_t r;

    while ((r = read_once(m, iov, n)) == -EAGAIN && waited < CONN_WAIT_MS * UINT64_C(1000000)) {
        struct timespec pause = { 0, (long)shm_pause_ns(waited) };
        struct pollfd socket = { .fd = c->source.fd, .events = POLLIN };

        if (ppoll(&socket, 1, &pause, NULL) > 0)
            atomic_store(&m->ended, true);
        waited = now_ns() - since;
    }
    return r;
}

static ssize_t shm_read(struct conn *c, struct iovec *iov, int n, bool wait)
{
    struct shm_medium *m = c->medium;
    ssize_t r = wait && m->attached ? read_waiting(c, iov, n) : read_once(m, iov, n);

    if (r > 0 && shm_link_owes(&m->link))
        shm_watch_wake(c->ep);
    return r;
}

static bool shm_sleep(struct conn *c, struct conn_sleep *ret)
{
    struct shm_medium *m = c->medium;
    uint64_t ns = SHM_PAUSE_MIN_NS << m->naps;

    if (ns < SHM_PAUSE_MAX_NS)
        m->naps++;
    else
        ns = SHM_PAUSE_MAX_NS;
    *ret = (struct conn_sleep){ .fd = c->source.fd, .ns = ns };
    return !atomic_load(&m->ended) && !shm_link_readable(&m->link);
}

/* ---- writing ---- */

static ssize_t shm_write(struct conn *c, struct iovec *iov, unsigned n)
{
    struct shm_medium *m = c->medium;
    ssize_t r;

    if (atomic_load_explicit(&m->ended, memory_order_relaxed) || !m->attached)
        return -EPIPE;
    r = shm_link_write(&m->link, iov, (int)n);
    if (shm_link_owes(&m->link))
        shm_watch_wake(c->ep);
    return r;
}

static bool shm_want_room(struct conn *c, bool quiet)
{
    struct shm_medium *m = c->medium;

    atomic_store(&m->taken, shm_link_taken(&m->link));
    atomic_store(&m->wants_room, true);
    /* The room may have come before we said where to look for it from, or the end. */
    if (shm_link_writable(&m->link) || atomic_load(&m->ended)) {
        atomic_store(&m->wants_room, false);
        return true;
    }
    if (quiet)
        shm_watch_wake(c->ep);
    return false;
}

static uint64_t shm_unread(struct conn *c)
{
    const struct shm_medium *m = c->medium;

    return m->attached && !atomic_load(&m->ended) ? shm_link_unread(&m->link) : 0;
}

/* ---- events ---- */

static int shm_hear(struct conn *c, enum conn_hears what)
{
    struct shm_medium *m = c->medium;
    int before;

    if (!m)
        return 0;
    before = atomic_exchange(&m->hears, (int)what);
    if (what == HEARS_NOTHING)
        return 0;
    atomic_store(&m->look_again, true);
    /* The first time it is the loop thread that asks. */
    if (!m->watched) {
        m->watched = true;
        return reactor_watch(&c->ep->reactor, &c->source, EPOLLIN | EPOLLRDHUP | EPOLLET);
    }
    if (before == HEARS_NOTHING)
        shm_watch_wake(c->ep);
    return 0;
}

static void shm_cut(struct conn *c)
{
    struct shm_medium *m = c->medium;

    atomic_store(&m->hears, HEARS_NOTHING);
    atomic_store(&m->wants_room, false);
    atomic_store(&m->ended, true);
    reactor_unwatch(&c->ep->reactor, &c->source);
    shutdown(c->source.fd, SHUT_RDWR);
}

/* A writer may have wanted room after the cut. It is looked at until it is freed,
 * and its pipe may be gone by then. */
static void shm_drop(struct conn *c)
{
    struct shm_medium *m = c->medium;

    if (!m)
        return;
    atomic_store(&m->hears, HEARS_NOTHING);
    atomic_store(&m->wants_room, false);
}

static void shm_free(struct conn *c)
{
    struct shm_medium *m = c->medium;

    close(c->source.fd);
    if (!m) /* it did not become one */
        return;
    shm_watch_remove(c->ep->shm, m);
    shm_hello_close(&m->ours);
    shm_link_finish(&m->link);
    free(m);
}

const struct stream stream_shm = {
    .read = shm_read,
    .write = shm_write,
    .hear = shm_hear,
    .want_room = shm_want_room,
    .events = shm_events,
    .sleep = shm_sleep,
    .unread = shm_unread,
    .connected = shm_connected,
    .cut = shm_cut,
    .drop = shm_drop,
    .free = shm_free,
};
