/* SPDX-License-Identifier: Apache-2.0 */
#include "conn.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECT_MS 3000 /* per address: the next address may answer */

enum conn_end dial_await(int fd, short events, uint64_t deadline_ns, tenrec_error *err)
{
    struct pollfd p = { .fd = fd, .events = events };

    for (;;) {
        int n = poll(&p, 1, clock_left_ms(deadline_ns));
        if (n > 0)
            return CONN_OK;
        if (n < 0 && errno != EINTR) {
            tenrec_fail_errno(err, TENREC_EOS, errno, "cannot wait for the server");
            return CONN_NEVER;
        }
        if (n == 0 && clock_passed(deadline_ns))
            return CONN_LATE;
    }
}

static enum conn_end dial_one(const struct addrinfo *a, uint64_t deadline_ns, int *ret_fd,
                              tenrec_error *err)
{
    const uint64_t limit_ns = clock_deadline_ms(CONNECT_MS);
    const int on = 1, idle = 10;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), failed = 0;
    socklen_t len = sizeof failed;
    enum conn_end end = CONN_OK;

    if (fd < 0) {
        tenrec_fail_errno(err, TENREC_EOS, errno, "cannot make a socket");
        return CONN_AGAIN;
    }
    if (connect(fd, a->ai_addr, a->ai_addrlen) != 0 && errno != EINPROGRESS)
        failed = errno;
    else
        end = dial_await(fd, POLLOUT, deadline_ns < limit_ns ? deadline_ns : limit_ns, err);
    if (end == CONN_LATE && deadline_ns > limit_ns) {
        tenrec_fail(err, TENREC_ETIMEDOUT, "the server does not answer");
        end = CONN_AGAIN;
    }
    if (end == CONN_OK && !failed)
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &len);
    if (failed) {
        tenrec_fail_errno(err, TENREC_ECONNECT, failed, "cannot connect");
        end = CONN_AGAIN;
    }
    if (end != CONN_OK) {
        close(fd);
        return end;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    *ret_fd = fd;
    return CONN_OK;
}

enum conn_end dial_open(const struct store_url *url, uint64_t deadline_ns, int *ret_fd,
                        tenrec_error *err)
{
    struct addrinfo *list;
    enum conn_end end = CONN_AGAIN;
    tenrec_status st = resolve(url->at->host, url->at->port, deadline_ns, &list, err);

    if (st != TENREC_OK)
        return st == TENREC_ETIMEDOUT ? CONN_LATE : CONN_AGAIN;
    for (const struct addrinfo *a = list; a && end != CONN_OK && end != CONN_LATE; a = a->ai_next)
        end = dial_one(a, deadline_ns, ret_fd, err);
    freeaddrinfo(list);
    return end;
}
