/* SPDX-License-Identifier: Apache-2.0 */
/* shm_handshake.c - tokens and descriptors over a Unix socket. */
#include "transport/tp_shm/shm_handshake.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FDS ((size_t)4) /* headers and data of two rings */

/* Control messages want the alignment of their head. */
union shm_handshake_control {
    struct cmsghdr head;
    char buf[CMSG_SPACE(FDS * sizeof(int))];
};

int shm_hello_send(int fd, const struct shm_hello *hello)
{
    const uint32_t tokens[2] = { htole32(hello->inbox_token), htole32(hello->outbox_token) };
    const int fds[FDS] = { hello->reactor[SHM_HEADER], hello->reactor[SHM_DATA],
                           hello->inbox[SHM_HEADER], hello->inbox[SHM_DATA] };
    struct iovec iov = { (void *)(uintptr_t)tokens, sizeof tokens };
    union shm_handshake_control control = { .buf = { 0 } };
    struct msghdr m = { .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control.buf,
                        .msg_controllen = sizeof control.buf };
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    ssize_t n;

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fds);
    memcpy(CMSG_DATA(c), fds, sizeof fds);
    do
        n = sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno;
    return n == (ssize_t)sizeof tokens ? 0 : EPROTO;
}

/* Takes up to FDS descriptors out of the message; further ones are closed. */
static size_t take_fds(struct msghdr *m, int fds[FDS])
{
    size_t n = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        size_t count;

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (n < FDS)
                fds[n++] = fd;
            else
                close(fd);
        }
    }
    return n;
}

int shm_hello_receive(int fd, struct shm_hello *ret)
{
    uint32_t tokens[2];
    int fds[FDS];
    struct iovec iov = { tokens, sizeof tokens };
    union shm_handshake_control control;
    struct msghdr m = { .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control.buf,
                        .msg_controllen = sizeof control.buf };
    size_t n_fds;
    ssize_t n;

    do
        n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EWOULDBLOCK ? EAGAIN : errno;
    n_fds = take_fds(&m, fds);
    if (n == (ssize_t)sizeof tokens && n_fds == FDS && !(m.msg_flags & MSG_CTRUNC)) {
        *ret = (struct shm_hello){ .inbox_token = le32toh(tokens[0]),
                                   .outbox_token = le32toh(tokens[1]),
                                   .reactor = { fds[0], fds[1] },
                                   .inbox = { fds[2], fds[3] } };
        return 0;
    }
    for (size_t i = 0; i < n_fds; i++)
        close(fds[i]);
    if (n == 0)
        return ECONNRESET;
    return m.msg_flags & MSG_CTRUNC ? EMFILE : EPROTO;
}

void shm_hello_close(struct shm_hello *hello)
{
    for (int i = 0; i < SHM_FILES; i++) {
        if (hello->reactor[i] >= 0)
            close(hello->reactor[i]);
        if (hello->inbox[i] >= 0)
            close(hello->inbox[i]);
        hello->reactor[i] = hello->inbox[i] = -1;
    }
}
