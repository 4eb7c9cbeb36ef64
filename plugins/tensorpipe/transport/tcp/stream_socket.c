/* SPDX-License-Identifier: Apache-2.0 */
/* stream_socket.c - a connection over a stream socket of the kernel. */
#include "endpoint.h"
#include "transport/conn.h"
#include "transport/tcp/transport_uv.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

/* Edge-triggered. Without EPOLLIN for a connection that others read: pipe_mask_events. */
#define EVENTS_ROOM (EPOLLOUT | EPOLLRDHUP | EPOLLET)
#define EVENTS_ALL (EPOLLIN | EVENTS_ROOM)

/* The bare system calls: the C library's are cancellation points, which cost
 * as much as the parsing of a small message. */
static ssize_t socket_read(struct conn *c, struct iovec *iov, int n, bool wait)
{
    struct msghdr m = { .msg_iov = iov, .msg_iovlen = (size_t)n };
    int fd = c->source.fd, flags = wait ? 0 : MSG_DONTWAIT;
    ssize_t r;

    do {
        if (n > 1)
            r = (ssize_t)syscall(SYS_recvmsg, fd, &m, flags);
        else
            r = (ssize_t)syscall(SYS_recvfrom, fd, iov->iov_base, iov->iov_len, flags, NULL, NULL);
    } while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : r;
}

static void socket_let_wait(struct conn *c)
{
    const struct timeval limit = { 0, CONN_WAIT_MS * 1000L };

    setsockopt(c->source.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    fcntl(c->source.fd, F_SETFL, fcntl(c->source.fd, F_GETFL) & ~O_NONBLOCK);
}

static ssize_t socket_write(struct conn *c, struct iovec *iov, unsigned n)
{
    const int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
    struct msghdr m = { .msg_iov = iov, .msg_iovlen = n };
    ssize_t r;

    do {
        if (n == 1)
            r = (ssize_t)syscall(SYS_sendto, c->source.fd, iov[0].iov_base, iov[0].iov_len, flags,
                                 NULL, 0);
        else
            r = (ssize_t)syscall(SYS_sendmsg, c->source.fd, &m, flags);
    } while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : r;
}

/* A socket without wanted events is not in the epoll set, since the kernel's check costs each
 * message 200 ns. */
static int socket_hear(struct conn *c, enum conn_hears what)
{
    struct reactor *r = &c->ep->reactor;

    if (what != HEARS_NOTHING)
        return reactor_rewatch(r, &c->source, what == HEARS_ALL ? EVENTS_ALL : EVENTS_ROOM);
    reactor_unwatch(r, &c->source);
    return 0;
}

bool socket_want_room(struct conn *c, bool masked)
{
    if (masked)
        socket_hear(c, HEARS_ROOM);
    return false;
}

static bool socket_sleep(struct conn *c, struct conn_sleep *ret)
{
    *ret = (struct conn_sleep){ .fd = c->source.fd };
    return true;
}

int socket_connected(struct conn *c)
{
    int e = 0;
    socklen_t len = sizeof e;

    return getsockopt(c->source.fd, SOL_SOCKET, SO_ERROR, &e, &len) < 0 ? errno : e;
}

void socket_cut(struct conn *c)
{
    reactor_unwatch(&c->ep->reactor, &c->source);
    shutdown(c->source.fd, SHUT_RDWR);
}

static void socket_free(struct conn *c)
{
    close(c->source.fd);
}

const struct stream stream_socket = {
    .read = socket_read,
    .let_wait = socket_let_wait,
    .write = socket_write,
    .hear = socket_hear,
    .want_room = socket_want_room,
    .sleep = socket_sleep,
    .connected = socket_connected,
    .cut = socket_cut,
    .free = socket_free,
};
