/* SPDX-License-Identifier: Apache-2.0 */
/* two.h - both sides of a TLS session in one thread, over a socket pair or over memory. */
#ifndef TENREC_TESTS_TLS_TWO_H
#define TENREC_TESTS_TLS_TWO_H

#include "../support/authority.h"
#include "../testing.h"
#include "security/tls/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct two {
    int fd[2]; /* -1: over memory */
    struct tls_session *side[2];
    tenrec_status status[2];
    tenrec_error err[2];
};

static inline void two_open(struct two *x, struct tls *dialler, struct tls *listener, bool sockets)
{
    struct tls *const of[] = { dialler, listener };
    tenrec_error err;

    memset(x, 0, sizeof *x);
    x->fd[0] = x->fd[1] = -1;
    if (sockets)
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, x->fd),
                         0);
    for (int i = 0; i < 2; i++)
        assert_status(tls_session_open(of[i], x->fd[i], (enum tls_side)i, &x->side[i], &err), &err);
}

/* Over memory: carries what `from` has to send; returns the bytes. */
static inline size_t two_carry(struct two *x, int from)
{
    size_t n;
    const void *data = tls_session_output(x->side[from], &n);
    tenrec_error err;

    if (n)
        assert_status(tls_session_feed(x->side[!from], data, n, &err), &err);
    return n;
}

/* Shakes in turn until both sides have ended, well or not. */
static inline void two_shake(struct two *x)
{
    x->status[0] = x->status[1] = TENREC_EAGAIN;
    for (int round = 0; round < 10; round++)
        for (int i = 0; i < 2; i++) {
            if (x->status[i] == TENREC_EAGAIN)
                x->status[i] = tls_session_shake(x->side[i], &x->err[i]);
            if (x->fd[i] < 0)
                two_carry(x, i);
        }
}

static inline void two_close(struct two *x)
{
    for (int i = 0; i < 2; i++) {
        tls_session_close(x->side[i]);
        if (x->fd[i] >= 0)
            close(x->fd[i]);
    }
}

static inline struct tls *two_of_secret(uint8_t fill)
{
    uint8_t bytes[SECRET_BYTES];
    struct secret *secret;
    struct tls *t;
    tenrec_error err;

    memset(bytes, fill, sizeof bytes);
    assert_status(secret_new(bytes, sizeof bytes, &secret, &err), &err);
    assert_status(tls_open_secret(secret, &t, &err), &err);
    secret_drop(secret);
    return t;
}

#endif
