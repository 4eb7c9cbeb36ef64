/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/transport_local.h"
#include "endpoint.h"
#include "transport/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* since Linux 6.3, of which some refuse a call without it */
#endif

#define BACKLOG 1024
/* The length of an address whose name, after its first byte, is empty. */
#define NAMELESS (offsetof(struct sockaddr_un, sun_path) + 1)

/* The file is made with the mode of the socket, so that no path is followed a second time. */
int local_open(const struct sockaddr_un *at, socklen_t len, int *ret_fd)
{
    const bool has_file = *at->sun_path != '\0';
    int e, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return errno;
    if ((!has_file || fchmod(fd, S_IRUSR | S_IWUSR) == 0) &&
        bind(fd, (const struct sockaddr *)at, len) == 0 && listen(fd, BACKLOG) == 0) {
        *ret_fd = fd;
        return 0;
    }
    e = errno;
    local_unlink(fd); /* if the socket is bound */
    close(fd);
    return e;
}

void local_unlink(int fd)
{
    struct sockaddr_un at = { .sun_family = AF_UNSPEC };
    socklen_t len = sizeof at;

    if (getsockname(fd, (struct sockaddr *)&at, &len) == 0 && at.sun_family == AF_UNIX &&
        *at.sun_path)
        unlink(at.sun_path);
}

tenrec_status local_listen(const struct tp_options *o, int *ret_fd,
                           char ret_address[TRANSPORT_TEXT_MAX], tenrec_error *err)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    socklen_t len = sizeof at;
    int fd = -1, e = local_open(&at, sizeof at.sun_family, &fd);

    (void)o;
    if (!e && getsockname(fd, (struct sockaddr *)&at, &len) < 0) {
        e = errno;
        close(fd);
    }
    if (e)
        return tenrec_fail_errno(err, TENREC_EOS, e, "cannot listen on a Unix socket");
    snprintf(ret_address, TRANSPORT_TEXT_MAX, "%.*s", (int)(len - NAMELESS), at.sun_path + 1);
    *ret_fd = fd;
    return TENREC_OK;
}

tenrec_status local_parse(const char *text, size_t len, union transport_address *ret,
                          tenrec_error *err)
{
    union transport_address a;

    memset(&a, 0, sizeof a);
    if (len == 0 || len > sizeof a.local.sun_path - 2 || memchr(text, '\0', len))
        return tenrec_fail(err, TENREC_EINVAL,
                           "address \"%.*s\": expected the name of an abstract Unix socket, 1 to "
                           "%zu bytes",
                           (int)(len < 80 ? len : 80), text, sizeof a.local.sun_path - 2);
    a.local.sun_family = AF_UNIX;
    memcpy(a.local.sun_path + 1, text, len);
    *ret = a;
    return TENREC_OK;
}

int local_connect(int fd, const union transport_address *to)
{
    socklen_t len = (socklen_t)(NAMELESS + strlen(to->local.sun_path + 1));

    return connect(fd, &to->any, len) < 0 ? errno : 0;
}

bool local_peer_is_ours(const struct endpoint *ep, int fd, pid_t *ret_pid)
{
    struct ucred peer;
    socklen_t len = sizeof peer;

    *ret_pid = 0;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return false;
    *ret_pid = peer.pid;
    /* A core without the service cannot compare user namespaces. */
    return ep->proof ? ep->proof->peer_is_ours(ep->self, fd)
                     : peer.uid == geteuid() || peer.uid == 0;
}

/* Returns false once half of the handshake's limit has passed: the rest is for another transport.
 */
static bool reach_later(struct conn *c, uint64_t retry_ns)
{
    const uint64_t now = clock_now_ns();

    if (!c->reach_until_ns)
        c->reach_until_ns = now + c->ep->options->handshake_timeout_ms * 500000u;
    if (now >= c->reach_until_ns)
        return false;
    reactor_arm(&c->ep->reactor, &c->timer, now + retry_ns);
    return true;
}

int local_reach(struct conn *c, uint64_t retry_ns)
{
    int e = local_connect(c->source.fd, &c->peer);

    if (e == EAGAIN && !reach_later(c, retry_ns)) {
        c->why = "the peer accepts no connection: its queue of them stays full";
        return ETIMEDOUT;
    }
    if (e)
        return e;
    return local_peer_is_ours(c->ep, c->source.fd, &c->pid) ? 0 : EPERM;
}

ssize_t local_receive(int sock, void *to, size_t len)
{
    ssize_t n;

    do
        n = recv(sock, to, len, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

ssize_t local_send(int sock, const void *data, size_t len)
{
    ssize_t n;

    do
        n = send(sock, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

uint64_t local_file_limit(void)
{
    struct rlimit l;

    return getrlimit(RLIMIT_FSIZE, &l) == 0 && l.rlim_cur != RLIM_INFINITY ? l.rlim_cur
                                                                           : UINT64_MAX;
}

int local_memory_new(const char *name, size_t bytes)
{
    int e, fd;

    if (bytes > local_file_limit()) { /* growing the file would raise SIGXFSZ */
        errno = EFBIG;
        return -1;
    }
    fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    if (ftruncate(fd, (off_t)bytes) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return fd;
    e = errno;
    close(fd);
    errno = e;
    return -1;
}

bool local_memory_viable(size_t bytes, char why[], size_t cap)
{
    int fd = local_memory_new("tenrec", bytes);

    if (fd >= 0) {
        close(fd);
        return true;
    }
    if (errno == EFBIG)
        snprintf(why, cap,
                 "it takes files in memory of %zu KiB; the limit of file sizes (ulimit -f) is %llu "
                 "KiB",
                 bytes / 1024, (unsigned long long)local_file_limit() / 1024);
    else
        snprintf(why, cap, "cannot make sealed shared memory: %s", strerror(errno));
    return false;
}
