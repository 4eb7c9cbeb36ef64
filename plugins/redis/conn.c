/* SPDX-License-Identifier: Apache-2.0 */
#include "conn.h"

#include "tls.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct conn {
    int fd;
    struct tls *tls; /* NULL: none */
    redisReader *reader;
    char buf[32768]; /* bytes just received */
};

/* ---- bytes ---------------------------------------------------------------- */

static enum conn_end send_wire(struct conn *c, const char *data, size_t len, uint64_t deadline_ns,
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
        if ((end = dial_await(c->fd, POLLOUT, deadline_ns, err)) != CONN_OK)
            return end;
    }
    return CONN_OK;
}

static enum conn_end send_tls(struct conn *c, uint64_t deadline_ns, tenrec_error *err)
{
    size_t len;
    const char *out = tls_output(c->tls, &len);
    enum conn_end end = send_wire(c, out, len, deadline_ns, err);

    tls_sent(c->tls);
    return end;
}

static enum conn_end send_all(struct conn *c, const char *data, size_t len, uint64_t deadline_ns,
                              tenrec_error *err)
{
    if (!c->tls)
        return send_wire(c, data, len, deadline_ns, err);
    if (tls_write(c->tls, data, len, err) != TENREC_OK)
        return CONN_AGAIN;
    return send_tls(c, deadline_ns, err);
}

/* Takes the `n` bytes of a command; n < 0: it could not be formatted. The type of n is the widest
 * of hiredis' versions. */
static enum conn_end send_command(struct conn *c, char *text, long long n, uint64_t deadline_ns,
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
    long long n = redisFormatCommandArgv(&text, argc, argv, len);

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

static enum conn_end conn_ended(tenrec_error *err)
{
    tenrec_fail(err, TENREC_EPEER_LOST, "the server closed the connection");
    return CONN_AGAIN;
}

/* Reads once into c->buf. */
static enum conn_end receive_wire(struct conn *c, uint64_t deadline_ns, size_t *ret_len,
                                  tenrec_error *err)
{
    enum conn_end end;
    ssize_t n;

    do {
        if ((end = dial_await(c->fd, POLLIN, deadline_ns, err)) != CONN_OK)
            return end;
        n = recv(c->fd, c->buf, sizeof c->buf, 0);
    } while (n < 0 && (errno == EINTR || errno == EAGAIN));
    if (n == 0)
        return conn_ended(err);
    if (n < 0) {
        tenrec_fail_errno(err, TENREC_EPEER_LOST, errno, "the connection broke");
        return CONN_AGAIN;
    }
    *ret_len = (size_t)n;
    return CONN_OK;
}

static enum conn_end conn_feed(struct conn *c, size_t len, tenrec_error *err)
{
    if (redisReaderFeed(c->reader, c->buf, len) == REDIS_OK)
        return CONN_OK;
    tenrec_fail(err, TENREC_ENOMEM, "no memory for a reply");
    return CONN_NEVER;
}

/* Sends what TLS wants to send, and gives it what the server sends. */
static enum conn_end conn_exchange(struct conn *c, uint64_t deadline_ns, tenrec_error *err)
{
    size_t len;
    enum conn_end end = send_tls(c, deadline_ns, err);

    if (end == CONN_OK)
        end = receive_wire(c, deadline_ns, &len, err);
    if (end == CONN_OK && tls_take(c->tls, c->buf, len, err) != TENREC_OK)
        end = CONN_NEVER;
    return end;
}

static enum conn_end receive_tls(struct conn *c, uint64_t deadline_ns, size_t *ret_len,
                                 tenrec_error *err)
{
    enum conn_end end = CONN_OK;
    enum tls_step step;

    while ((step = tls_read(c->tls, c->buf, sizeof c->buf, ret_len, err)) == TLS_MORE &&
           end == CONN_OK)
        end = conn_exchange(c, deadline_ns, err);
    if (step == TLS_FAILED)
        return CONN_NEVER;
    return step == TLS_ENDED ? conn_ended(err) : end;
}

static enum conn_end conn_receive(struct conn *c, uint64_t deadline_ns, tenrec_error *err)
{
    size_t len = 0;
    enum conn_end end =
        c->tls ? receive_tls(c, deadline_ns, &len, err) : receive_wire(c, deadline_ns, &len, err);

    return end == CONN_OK ? conn_feed(c, len, err) : end;
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
                tenrec_fail(err, TENREC_EPROTOCOL, "the reply is not from a Redis server%s (%s)",
                            c->tls ? "" : " without TLS", c->reader->errstr);
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

static enum conn_end conn_shake(struct conn *c, const struct conn_login *login,
                                uint64_t deadline_ns, tenrec_error *err)
{
    enum conn_end end = CONN_OK;
    enum tls_step step;

    if (tls_open(login->tls, login->url->at->host, &c->tls, err) != TENREC_OK)
        return CONN_NEVER;
    while ((step = tls_shake(c->tls, err)) == TLS_MORE && end == CONN_OK)
        end = conn_exchange(c, deadline_ns, err);
    if (step == TLS_ENDED)
        return conn_ended(err);
    if (end == CONN_OK && step == TLS_DONE)
        return send_tls(c, deadline_ns, err);
    send_tls(c, deadline_ns, NULL); /* the alert says why */
    return step == TLS_FAILED ? CONN_NEVER : end;
}

enum conn_end conn_open(const struct conn_login *login, uint64_t deadline_ns, struct conn **ret,
                        tenrec_error *err)
{
    struct conn *c;
    enum conn_end end;
    int fd = -1;

    if ((end = dial_open(login->url, deadline_ns, &fd, err)) != CONN_OK)
        return end;
    if (!(c = calloc(1, sizeof *c)) || !(c->reader = redisReaderCreate())) {
        free(c);
        close(fd);
        tenrec_fail(err, TENREC_ENOMEM, "no memory for a connection");
        return CONN_NEVER;
    }
    c->fd = fd;
    if (login->tls)
        end = conn_shake(c, login, deadline_ns, err);
    if (end == CONN_OK)
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
    tls_drop(c->tls);
    redisReaderFree(c->reader);
    free(c);
}
