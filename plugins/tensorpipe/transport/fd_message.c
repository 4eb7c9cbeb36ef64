/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/transport_local.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Aligned for its head. Room for one more than there should be, to notice it. */
union fd_message_control {
    struct cmsghdr head;
    char buf[CMSG_SPACE((FD_MESSAGE_MAX + 1) * sizeof(int))];
};

int fd_message_send(int sock, const void *data, size_t len, const int *fds, unsigned n)
{
    const size_t bytes = n * sizeof *fds;
    union fd_message_control control = { .buf = { 0 } };
    struct iovec iov = { (void *)(uintptr_t)data, len };
    struct msghdr m = { .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control.buf,
                        .msg_controllen = (socklen_t)CMSG_SPACE(bytes) };
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    ssize_t sent;

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = (socklen_t)CMSG_LEN(bytes);
    memcpy(CMSG_DATA(c), fds, bytes);
    do
        sent = sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return errno;
    return (size_t)sent == len ? 0 : EMSGSIZE;
}

static unsigned fd_message_take(struct msghdr *m, int *fds, unsigned max)
{
    unsigned got = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= c->cmsg_len; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (got < max)
                fds[got] = fd;
            else
                close(fd);
            got++;
        }
    }
    return got;
}

ssize_t fd_message_receive(int sock, void *data, size_t len, int *fds, unsigned max,
                           unsigned *ret_n, bool *ret_cut)
{
    union fd_message_control control;
    struct iovec iov = { data, len };
    struct msghdr m = { .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control.buf,
                        .msg_controllen = sizeof control.buf };
    ssize_t n;

    do
        n = recvmsg(sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    *ret_n = fd_message_take(&m, fds, max);
    *ret_cut = m.msg_flags & MSG_CTRUNC;
    return n;
}
