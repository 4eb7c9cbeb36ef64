/* SPDX-License-Identifier: Apache-2.0 */
/* conn.h - one connection to a Redis server: commands go out, replies come in,
 * each wait within a deadline. Used by one thread at a time. */
#ifndef REDIS_CONN_H
#define REDIS_CONN_H

#include "url.h"

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>

struct conn;

/* Who we are there. All borrowed while connections are opened with it. */
struct conn_login {
    const struct redis_url *url;
    const char *user;     /* "": the server's default one */
    const char *password; /* "": none is sent */
    int64_t database;
};

/* What a failure means for who may try again. */
enum conn_end {
    CONN_OK,
    CONN_AGAIN, /* broken, or refused for now: a new connection may do */
    CONN_LATE,  /* the deadline came first */
    CONN_NEVER, /* trying again does not help */
};

/* Connects, logs in, and selects the database. */
enum conn_end conn_open(const struct conn_login *login, uint64_t deadline_ns, struct conn **ret,
                        tenrec_error *err);
void conn_drop(struct conn *c); /* NULL is fine */

/* Who is at the other end: "10.0.0.3:6379", "[fd00::1]:6379"; "" when not known. */
#define CONN_ADDRESS_MAX 80
void conn_address(const struct conn *c, char ret[CONN_ADDRESS_MAX]);

/* Sends one command of `argc` words. */
enum conn_end conn_send(struct conn *c, int argc, const char **argv, const size_t *len,
                        uint64_t deadline_ns, tenrec_error *err);

/* Reads one reply, which may be an error of the server's: freeReplyObject it. */
enum conn_end conn_read(struct conn *c, uint64_t deadline_ns, redisReply **ret, tenrec_error *err);

/* A reply that is an error: what it means, and the text. */
enum conn_end conn_refused(const redisReply *r, tenrec_error *err);

#endif
