/* SPDX-License-Identifier: Apache-2.0 */
#include "group/store/store_conn.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "security/tls/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#define CONNECT_MS 3000 /* for one address; a lost SYN must not use up all */

/* Waits until the socket can be used; ETIMEDOUT at the deadline. */
static tenrec_status wait_for(int fd, short events, uint64_t deadline_ns, tenrec_error *err)
{
    struct pollfd p = { .fd = fd, .events = events };
    int r;

    for (;;) {
        r = poll(&p, 1, clock_left_ms(deadline_ns));
        if (r > 0)
            return TENREC_OK;
        if (r == 0 && clock_passed(deadline_ns))
            return tenrec_fail(err, TENREC_ETIMEDOUT, "no answer in time");
        if (r < 0 && errno != EINTR)
            return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot poll");
    }
}

tenrec_status store_conn_wait(const struct store_conn *c, short events, uint64_t deadline_ns,
                              tenrec_error *err)
{
    return wait_for(c->fd, events, deadline_ns, err);
}

static tenrec_status connect_one(const struct address *to, uint64_t deadline_ns, int *ret,
                                 tenrec_error *err)
{
    uint64_t limit_ns = clock_deadline_ms(CONNECT_MS);
    int fd, one = 1, reason = 0;
    socklen_t len = sizeof reason;
    tenrec_status st;

    fd = socket(to->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return tenrec_fail_errno(err, TENREC_ECONNECT, errno, "cannot make a socket");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    if (connect(fd, (const struct sockaddr *)&to->addr, to->len) == 0) {
        *ret = fd;
        return TENREC_OK;
    }
    if (errno != EINPROGRESS) {
        st = tenrec_fail_errno(err, TENREC_ECONNECT, errno, "cannot connect");
        goto err_socket;
    }
    st = wait_for(fd, POLLOUT, deadline_ns < limit_ns ? deadline_ns : limit_ns, err);
    if (st != TENREC_OK)
        goto err_socket;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &reason, &len);
    if (reason != 0) {
        st = tenrec_fail_errno(err, TENREC_ECONNECT, reason, "cannot connect");
        goto err_socket;
    }
    *ret = fd;
    return TENREC_OK;

err_socket:
    close(fd);
    return st;
}

/* Linux may connect a socket to itself when no socket listens at a port of the range that clients
 * get theirs from. */
static bool is_myself(int fd)
{
    struct sockaddr_storage me = { 0 }, peer = { 0 };
    socklen_t len = sizeof me, peer_len = sizeof peer;

    if (getsockname(fd, (struct sockaddr *)&me, &len) != 0 ||
        getpeername(fd, (struct sockaddr *)&peer, &peer_len) != 0)
        return false;
    return len == peer_len && memcmp(&me, &peer, len) == 0;
}

tenrec_status store_conn_open(const struct address *list, size_t n, uint64_t deadline_ns,
                              struct store_conn **ret, tenrec_error *err)
{
    struct store_conn *c = memory_new(1, sizeof *c);
    tenrec_error why;
    tenrec_status st = tenrec_fail(&why, TENREC_ECONNECT, "no address to connect to");

    if (!c)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a connection");
    for (size_t i = 0; i < n; i++) {
        st = connect_one(&list[i], deadline_ns, &c->fd, &why);
        if (st == TENREC_OK && is_myself(c->fd)) {
            close(c->fd);
            st = tenrec_fail_errno(&why, TENREC_ECONNECT, ECONNREFUSED, "cannot connect");
        }
        if (st == TENREC_OK) {
            *ret = c;
            return TENREC_OK;
        }
    }
    free(c);
    if (err)
        *err = why;
    return st;
}

void store_conn_drop(struct store_conn *c)
{
    if (!c)
        return;
    tls_session_close(c->tls);
    close(c->fd);
    free(c);
}

/* Sends some bytes. Returns how many, -EAGAIN when the socket is full, or another -errno. */
static ssize_t conn_write(struct store_conn *c, const void *data, size_t len)
{
    /* struct iovec has no const; a write only reads from it. */
    const struct iovec left = { (void *)(uintptr_t)data, len };
    ssize_t n;

    if (c->tls)
        return tls_session_write(c->tls, &left, 1);
    do
        n = send(c->fd, data, len, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

/* Reads some bytes. Returns how many, 0 at the end, -EAGAIN when there are none, or another -errno.
 */
static ssize_t conn_read(struct store_conn *c, void *ret, size_t room)
{
    const struct iovec to = { ret, room };
    ssize_t n;

    if (c->tls)
        return tls_session_read(c->tls, &to, 1);
    do
        n = recv(c->fd, ret, room, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

bool store_conn_quiet(struct store_conn *c)
{
    char byte;

    if (c->at < c->end)
        return false;
    /* Over TLS a record without data may have come, or bytes that are decrypted already wait. */
    if (c->tls)
        return conn_read(c, &byte, 1) == -EAGAIN;
    return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           (errno == EAGAIN || errno == EWOULDBLOCK);
}

static tenrec_status conn_fail(const struct store_conn *c, ssize_t error, tenrec_error *err)
{
    if (c->tls && error == -EPROTO)
        return tenrec_fail(err, c->heard ? TENREC_EPEER_LOST : TENREC_EPERM, "%s",
                           tls_session_reason(c->tls));
    return tenrec_fail_errno(err, TENREC_EPEER_LOST, (int)-error, "connection broke");
}

/* With certificates the server refuses a client only after the client's part of the handshake: the
 * alert that says why may be there when a write fails. */
static tenrec_status conn_fail_write(struct store_conn *c, ssize_t error, tenrec_error *err)
{
    char byte;

    if (c->tls && conn_read(c, &byte, 1) == -EPROTO)
        error = -EPROTO;
    return conn_fail(c, error, err);
}

tenrec_status store_conn_send(struct store_conn *c, const struct bytes *request,
                              uint64_t deadline_ns, tenrec_error *err)
{
    size_t at = 0;
    tenrec_status st;

    if (request->failed)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a request");
    while (at < request->len) {
        const ssize_t n = conn_write(c, request->data + at, request->len - at);
        if (n >= 0)
            at += (size_t)n;
        else if (n != -EAGAIN)
            return conn_fail_write(c, n, err);
        else if ((st = wait_for(c->fd, POLLOUT, deadline_ns, err)) != TENREC_OK)
            return st;
    }
    return TENREC_OK;
}

/* Uses bytes that were read ahead. Returns how many. */
static size_t conn_take_ahead(struct store_conn *c, void *ret, size_t room)
{
    const size_t n = c->end - c->at < room ? c->end - c->at : room;

    memcpy(ret, c->ahead + c->at, n);
    c->at += n;
    return n;
}

/* Reads at least one byte from the connection, and at most `room`. */
static tenrec_status conn_fetch(struct store_conn *c, void *ret, size_t room, uint64_t deadline_ns,
                                size_t *ret_len, tenrec_error *err)
{
    tenrec_status st;

    for (;;) {
        const ssize_t n = conn_read(c, ret, room);
        if (n > 0) {
            c->heard = true;
            *ret_len = (size_t)n;
            return TENREC_OK;
        }
        if (n == 0)
            return tenrec_fail(err, TENREC_EPEER_LOST, "the server closed the connection");
        if (n != -EAGAIN)
            return conn_fail(c, n, err);
        if ((st = wait_for(c->fd, POLLIN, deadline_ns, err)) != TENREC_OK)
            return st;
    }
}

tenrec_status store_conn_read_some(struct store_conn *c, void *ret, size_t room,
                                   uint64_t deadline_ns, size_t *ret_len, tenrec_error *err)
{
    if (c->at == c->end)
        return conn_fetch(c, ret, room, deadline_ns, ret_len, err);
    *ret_len = conn_take_ahead(c, ret, room);
    return TENREC_OK;
}

tenrec_status store_conn_read(struct store_conn *c, void *ret, size_t len, uint64_t deadline_ns,
                              tenrec_error *err)
{
    size_t at = conn_take_ahead(c, ret, len);
    tenrec_status st = TENREC_OK;

    while (st == TENREC_OK && at < len) {
        size_t n = 0; /* also after an error */
        if (len - at < sizeof c->ahead) {
            st = conn_fetch(c, c->ahead, sizeof c->ahead, deadline_ns, &n, err);
            c->at = 0;
            c->end = n;
            n = conn_take_ahead(c, (char *)ret + at, len - at);
        } else {
            st = conn_fetch(c, (char *)ret + at, len - at, deadline_ns, &n, err);
        }
        at += n;
    }
    return st;
}

tenrec_status store_conn_read_u8(struct store_conn *c, uint8_t *ret, uint64_t deadline_ns,
                                 tenrec_error *err)
{
    return store_conn_read(c, ret, 1, deadline_ns, err);
}

tenrec_status store_conn_read_i64(struct store_conn *c, int64_t *ret, uint64_t deadline_ns,
                                  tenrec_error *err)
{
    uint8_t raw[8];
    tenrec_status st = store_conn_read(c, raw, sizeof raw, deadline_ns, err);

    if (st == TENREC_OK)
        *ret = (int64_t)bytes_get_u64(raw);
    return st;
}

tenrec_status store_conn_read_blob(struct store_conn *c, void **ret, size_t *ret_len,
                                   uint64_t deadline_ns, tenrec_error *err)
{
    int64_t len;
    char *data;
    tenrec_status st = store_conn_read_i64(c, &len, deadline_ns, err);

    if (st != TENREC_OK)
        return st;
    if ((uint64_t)len > STORE_MAX_VALUE)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "the server announced a value of %llu bytes, at most %zu are accepted",
                           (unsigned long long)len, STORE_MAX_VALUE);
    if (!(data = memory_new((size_t)len + 1, 1)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a value of %lld bytes",
                           (long long)len);
    if ((st = store_conn_read(c, data, (size_t)len, deadline_ns, err)) != TENREC_OK) {
        free(data);
        return st;
    }
    *ret = data;
    *ret_len = (size_t)len;
    return TENREC_OK;
}
