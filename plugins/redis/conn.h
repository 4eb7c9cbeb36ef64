/* SPDX-License-Identifier: Apache-2.0 */
/* conn.h - one connection to a Redis server: sends commands and reads replies,
 * each within a deadline. Used by one thread at a time. */
#ifndef REDIS_CONN_H
#define REDIS_CONN_H

#include "core/base/clock.h"
#include "store/url.h"

#include <hiredis/hiredis.h>
#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenrec/error.h>

struct conn;
struct tls_context;

/* Login data; borrows all until the last conn_open with it. */
struct conn_login {
    const struct store_url *url;
    const char *user;     /* "": the server's default user */
    const char *password; /* "": log in without a password */
    int64_t database;
    struct tls_context *tls; /* NULL: without TLS */
};

/* The result of an operation, by whether a retry may help. */
enum conn_end {
    CONN_OK,
    CONN_AGAIN, /* broken, or refused for now: retry over a new connection */
    CONN_LATE,  /* the deadline expired */
    CONN_NEVER, /* a retry cannot help */
};

/* Connects, with TLS if login->tls, logs in, and selects the database. */
enum conn_end conn_open(const struct conn_login *login, uint64_t deadline_ns, struct conn **ret,
                        tenrec_error *err);
void conn_drop(struct conn *c); /* NULL is fine */

/* The address of the server: "10.0.0.3:6379", "[fd00::1]:6379"; "" when unknown. */
#define CONN_ADDRESS_MAX 80
void conn_address(const struct conn *c, char ret[CONN_ADDRESS_MAX]);

/* Sends one command, as redisFormatCommand makes it of a format and texts. */
enum conn_end conn_sendf(struct conn *c, uint64_t deadline_ns, tenrec_error *err,
                         const char *format, ...);

/* Sends one command of `argc` words. */
enum conn_end conn_send(struct conn *c, int argc, const char **argv, const size_t *len,
                        uint64_t deadline_ns, tenrec_error *err);

/* Reads one reply, which may be an error reply; free it with freeReplyObject. */
enum conn_end conn_read(struct conn *c, uint64_t deadline_ns, redisReply **ret, tenrec_error *err);

/* Maps an error reply to a result and an error. */
enum conn_end conn_refused(const redisReply *r, tenrec_error *err);

/* dial.c: a TCP connection to a Redis server, within a deadline. */

/* Connects to the first address of the host that answers. *ret_fd: a non-blocking socket */
enum conn_end dial_open(const struct store_url *url, uint64_t deadline_ns, int *ret_fd,
                        tenrec_error *err);

/* Waits until the socket is ready. CONN_LATE has no error text. */
enum conn_end dial_await(int fd, short events, uint64_t deadline_ns, tenrec_error *err);

/* resolve.c: resolves a host name to addresses within a deadline. */

/* At least one address; free them with freeaddrinfo.
 *
 * errors: ECONNECT (no such host), ETIMEDOUT, ENOMEM */
tenrec_status resolve(const char *host, uint16_t port, uint64_t deadline_ns, struct addrinfo **ret,
                      tenrec_error *err);

#endif
