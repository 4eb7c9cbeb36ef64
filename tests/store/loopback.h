/* SPDX-License-Identifier: Apache-2.0 */
/* loopback.h - listening sockets of this host, and the URLs of stores behind them. */
#ifndef TESTS_STORE_CLIENT_LOOPBACK_H
#define TESTS_STORE_CLIENT_LOOPBACK_H

#include "../support/test_store.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* A listening socket at a port that is free. */
static inline int listen_here(uint16_t *ret_port)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

static inline const char *url_of(uint16_t port)
{
    static char url[64];

    snprintf(url, sizeof url, "tcp://127.0.0.1:%u", port);
    return url;
}

#endif
