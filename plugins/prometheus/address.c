/* SPDX-License-Identifier: Apache-2.0 */
#include "prometheus.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BACKLOG = 64 };

static tenrec_status address_fail(const char *text, tenrec_error *err)
{
    return tenrec_fail(err, TENREC_EINVAL,
                       "expected an address such as 127.0.0.1:9464, [::1]:9464 or "
                       "unix:/run/tenrec/metrics.sock, found '%.200s'",
                       text);
}

static tenrec_status address_parse_unix(const char *path, struct address *ret, tenrec_error *err)
{
    const size_t n = strlen(path);

    if (*path != '/' || n >= sizeof ret->u.local.sun_path)
        return tenrec_fail(err, TENREC_EINVAL,
                           "expected an absolute path of at most %zu bytes after unix:, found "
                           "'%.200s'",
                           sizeof ret->u.local.sun_path - 1, path);
    ret->u.local.sun_family = AF_UNIX;
    memcpy(ret->u.local.sun_path, path, n + 1);
    ret->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
    return TENREC_OK;
}

/* Splits "host:port" at the last colon; a host in brackets is IPv6. */
static bool address_split(const char *text, char host[64], uint16_t *ret_port)
{
    const char *colon = strrchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : 0;
    char *end;
    unsigned long port;

    if (n == 0 || colon[1] < '0' || colon[1] > '9')
        return false;
    port = strtoul(colon + 1, &end, 10);
    if (*end || port > 65535)
        return false;
    if (*text == '[' && text[n - 1] == ']') {
        text++;
        n -= 2;
    }
    if (n == 0 || n >= 64)
        return false;
    memcpy(host, text, n);
    host[n] = '\0';
    *ret_port = (uint16_t)port;
    return true;
}

tenrec_status address_parse(const char *text, struct address *ret, tenrec_error *err)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)&ret->u.storage;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&ret->u.storage;
    char host[64];
    uint16_t port;

    *ret = (struct address){ 0 };
    if (strncmp(text, "unix:", 5) == 0)
        return address_parse_unix(text + 5, ret, err);
    if (!address_split(text, host, &port))
        return address_fail(text, err);
    if (inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &v4->sin_addr) ==
        1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        ret->len = sizeof *v4;
        ret->beyond = (ntohl(v4->sin_addr.s_addr) >> 24) != 127;
        return TENREC_OK;
    }
    if (inet_pton(AF_INET6, host, &v6->sin6_addr) != 1)
        return address_fail(text, err);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    ret->len = sizeof *v6;
    ret->beyond = !IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
    return TENREC_OK;
}

/* Removes the socket of a process that has ended: only a socket, and only this user's. */
static void address_clear(const struct sockaddr_un *local)
{
    struct stat sb;

    if (lstat(local->sun_path, &sb) == 0 && S_ISSOCK(sb.st_mode) && sb.st_uid == geteuid())
        unlink(local->sun_path);
}

tenrec_status address_listen(const struct address *a, int *ret, tenrec_error *err)
{
    const bool local = a->u.any.sa_family == AF_UNIX;
    const int fd = socket(a->u.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;

    if (fd < 0)
        return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot make a socket");
    if (local)
        address_clear(&a->u.local);
    else
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    /* Before the socket has its name: mode 0600 for the file that bind makes. */
    if (local)
        fchmod(fd, 0600);
    if (bind(fd, &a->u.any, a->len) == 0 && listen(fd, BACKLOG) == 0) {
        *ret = fd;
        return TENREC_OK;
    }
    tenrec_fail_errno(err, TENREC_EOS, errno, "cannot listen");
    close(fd);
    return TENREC_EOS;
}
