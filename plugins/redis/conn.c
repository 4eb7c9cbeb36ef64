/* SPDX-License-Identifier: Apache-2.0 */
#include "conn.h"

#include "clock.h"
#include "resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECT_MS 3000 /* per address: the next address may answer */

struct conn {
    int fd;
    redisReader *reader;
    char buf[32768]; /* bytes just received */
};

/* ---- bytes ---------------------------------------------------------------- */

/* Waits until the socket is ready. CONN_LATE has no error text. */
static enum conn_end conn_await(int fd, short events, uint64_t deadline_ns, tenrec_error *err)
{
    struct pollfd p = { .fd = fd, .events = events };

    for (;;) {
        int n = poll(&p, 1, clock_poll_ms(deadline_ns));
        if (n > 0)
            return CONN_OK;
        if (n < 0 && errno != EINTR) {
            tenrec_fail_errno(err, TENREC_EOS, errno, "cannot wait for the server");
            return CONN_NEVER;
        }
        if (n == 0 && clock_over(deadline_ns))
            return CONN_LATE;
    }
}

static enum conn_end send_all(struct conn *c, const char *data, size_t len, uint64_t deadline_ns,
                              tenrec_error *err)
{
    while (len > 0) {
        ssize_t n = send(c->fd, data, len, MSG_NOSIGNAL);
        enum conn_end end;
        if (n >= 0) {
            data += n;
            len -= (size_t)n;
            continue;
        }
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN) {
            tenrec_fail_errno(err, TENREC_EPEER_LOST, errno, "the connection broke");
            return CONN_AGAIN;
        }
        if ((end = conn_await(c->fd, POLLOUT, deadline_ns, err)) != CONN_OK)
            return end;
    }
    return CONN_OK;
}

/* Takes the `n` bytes of a command; n < 0: it could not be formatted. */
static enum conn_end send_command(struct conn *c, char *text, int n, uint64_t deadline_ns,
                                  tenrec_error *err)
{
    enum conn_end end;

    if (n < 0) {
        tenrec_fail(err, TENREC_ENOMEM, "no memory for a command");
        return CONN_NEVER;
    }
    end = send_all(c, text, (size_t)n, deadline_ns, err);
    redisFreeCommand(text);
    return end;
}

enum conn_end conn_send(struct conn *c, int argc, const char **argv, const size_t *len,
                        uint64_t deadline_ns, tenrec_error *err)
{
    char *text = NULL;
    int n = redisFormatCommandArgv(&text, argc, argv, len);

    return send_command(c, text, n, deadline_ns, err);
}

enum conn_end conn_sendf(struct conn *c, uint64_t deadline_ns, tenrec_error *err,
                         const char *format, ...)
{
    char *text = NULL;
    va_list ap;
    int n;

    va_start(ap, format);
    n = redisvFormatCommand(&text, format, ap);
    va_end(ap);
    return send_command(c, text, n, deadline_ns, err);
}

static enum conn_end conn_receive(struct conn *c, uint64_t deadline_ns, tenrec_error *err)
{
    enum conn_end end;
    ssize_t n;

    do {
        if ((end = conn_await(c->fd, POLLIN, deadline_ns, err)) != CONN_OK)
            return end;
        n = recv(c->fd, c->buf, sizeof c->buf, 0);
    } while (n < 0 && (errno == EINTR || errno == EAGAIN));
    if (n == 0)
        tenrec_fail(err, TENREC_EPEER_LOST, "the server closed the connection");
    else if (n < 0)
        tenrec_fail_errno(err, TENREC_EPEER_LOST, errno, "the connection broke");
    if (n <= 0)
        return CONN_AGAIN;
    if (redisReaderFeed(c->reader, c->buf, (size_t)n) == REDIS_OK)
        return CONN_OK;
    tenrec_fail(err, TENREC_ENOMEM, "no memory for a reply");
    return CONN_NEVER;
}

enum conn_end conn_read(struct conn *c, uint64_t deadline_ns, redisReply **ret, tenrec_error *err)
{
    void *reply = NULL;

    for (;;) {
        enum conn_end end;
        if (redisReaderGetReply(c->reader, &reply) != REDIS_OK) {
            if (c->reader->err == REDIS_ERR_OOM)
                tenrec_fail(err, TENREC_ENOMEM, "no memory for a reply");
            else
                tenrec_fail(err, TENREC_EPROTOCOL,
                            "the reply is not from a Redis server without TLS (%s)",
                            c->reader->errstr);
            return CONN_NEVER;
        }
        if (reply) {
            *ret = reply;
            return CONN_OK;
        }
        if ((end = conn_receive(c, deadline_ns, err)) != CONN_OK)
            return end;
    }
}

/* ---- logging in --------------------------------------------------------------- */

/* The result of a command that was sent as `end` says, of whose reply only an error matters. */
static enum conn_end conn_confirm(struct conn *c, enum conn_end end, uint64_t deadline_ns,
                                  tenrec_error *err)
{
    redisReply *reply = NULL;

    if (end == CONN_OK)
        end = conn_read(c, deadline_ns, &reply, err);
    if (end == CONN_OK && reply->type == REDIS_REPLY_ERROR)
        end = conn_refused(reply, err);
    freeReplyObject(reply);
    return end;
}

static enum conn_end log_in(struct conn *c, const struct conn_login *login, uint64_t deadline_ns,
                            tenrec_error *err)
{
    const char *user = login->user, *password = login->password;
    enum conn_end end = CONN_OK;

    if (*password) {
        end = *user ? conn_sendf(c, deadline_ns, err, "AUTH %s %s", user, password)
                    : conn_sendf(c, deadline_ns, err, "AUTH %s", password);
        end = conn_confirm(c, end, deadline_ns, err);
    }
    if (end == CONN_OK && login->database) {
        end = conn_sendf(c, deadline_ns, err, "SELECT %lld", (long long)login->database);
        end = conn_confirm(c, end, deadline_ns, err);
    }
    if (end != CONN_OK)
        return end;
    /* PING shows that a Redis server listens on the port. */
    return conn_confirm(c, conn_sendf(c, deadline_ns, err, "PING"), deadline_ns, err);
}

/* ---- opening -------------------------------------------------------------- */

static enum conn_end connect_one(const struct addrinfo *a, uint64_t deadline_ns, int *ret_fd,
                                 tenrec_error *err)
{
    const uint64_t limit_ns = clock_in_ms(CONNECT_MS);
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
        end = conn_await(fd, POLLOUT, deadline_ns < limit_ns ? deadline_ns : limit_ns, err);
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

static enum conn_end connect_any(const struct redis_url *url, uint64_t deadline_ns, int *ret_fd,
                                 tenrec_error *err)
{
    struct addrinfo *list;
    enum conn_end end = CONN_AGAIN;
    tenrec_status st = resolve(url->host, url->port, deadline_ns, &list, err);

    if (st != TENREC_OK)
        return st == TENREC_ETIMEDOUT ? CONN_LATE : CONN_AGAIN;
    for (const struct addrinfo *a = list; a && end != CONN_OK && end != CONN_LATE; a = a->ai_next)
        end = connect_one(a, deadline_ns, ret_fd, err);
    freeaddrinfo(list);
    return end;
}

enum conn_end conn_open(const struct conn_login *login, uint64_t deadline_ns, struct conn **ret,
                        tenrec_error *err)
{
    struct conn *c;
    enum conn_end end;
    int fd = -1;

    if ((end = connect_any(login->url, deadline_ns, &fd, err)) != CONN_OK)
        return end;
    if (!(c = malloc(sizeof *c)) || !(c->reader = redisReaderCreate())) {
        free(c);
        close(fd);
        tenrec_fail(err, TENREC_ENOMEM, "no memory for a connection");
        return CONN_NEVER;
    }
    c->fd = fd;
    end = log_in(c, login, deadline_ns, err);
    if (end == CONN_OK)
        *ret = c;
    else
        conn_drop(c);
    return end;
}

void conn_address(const struct conn *c, char ret[CONN_ADDRESS_MAX])
{
    struct sockaddr_storage a = { .ss_family = AF_UNSPEC };
    socklen_t len = sizeof a;
    char host[INET6_ADDRSTRLEN + 16], port[8];

    *ret = '\0';
    if (getpeername(c->fd, (struct sockaddr *)&a, &len) == 0 &&
        getnameinfo((struct sockaddr *)&a, len, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        snprintf(ret, CONN_ADDRESS_MAX, a.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

void conn_drop(struct conn *c)
{
    if (!c)
        return;
    close(c->fd);
    redisReaderFree(c->reader);
    free(c);
}
