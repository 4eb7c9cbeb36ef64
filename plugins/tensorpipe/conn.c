/* conn.c - buffered reading from one socket. */
#include "conn.h"
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void conn_free(struct reactor_task *t)
{
    struct conn *c = (struct conn *)(void *)((char *)t - offsetof(struct conn, free_task));

    close(c->source.fd);
    free(c->buf);
    free(c);
}

struct conn *conn_new(struct agent *a, int fd, const union transport_address *peer)
{
    struct conn *c = calloc(1, sizeof *c);

    if (!c) {
        close(fd);
        return NULL;
    }
    c->agent = a;
    c->source.fd = fd;
    c->source.ready = agent_conn_ready;
    c->peer = *peer;
    c->free_task.run = conn_free;
    return c;
}

void conn_drop(struct conn *c)
{
    if (!c)
        return;
    reactor_disarm(&c->timer);
    reactor_unwatch(&c->agent->reactor, &c->source);
    reactor_defer(&c->agent->reactor, &c->free_task);
}

bool conn_reserve(struct conn *c, size_t need)
{
    unsigned char *bigger;
    size_t cap = CONN_BUFFER;

    if (c->pos + need <= c->cap)
        return true;
    if (c->buf && c->pos) {
        memmove(c->buf, c->buf + c->pos, conn_buffered(c));
        c->end -= c->pos;
        c->pos = 0;
        if (need <= c->cap)
            return true;
    }
    if (cap < need)
        cap = need;
    bigger = realloc(c->buf, cap);
    if (!bigger)
        return false;
    c->buf = bigger;
    c->cap = cap;
    return true;
}

/* A buffer that grew for one large object goes back once it is empty. */
static void shrink(struct conn *c)
{
    if (c->end == 0) {
        free(c->buf);
        c->buf = NULL;
        c->cap = 0;
    }
}

void conn_let_wait(struct conn *c)
{
    const struct timeval limit = { 0, CONN_WAIT_MS * 1000L };

    setsockopt(c->source.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    fcntl(c->source.fd, F_SETFL, fcntl(c->source.fd, F_GETFL) & ~O_NONBLOCK);
}

/* The bare system calls: the C library's are cancellation points, which cost
 * as much as the parsing of a small message. */
static ssize_t read_socket(int fd, struct iovec *iov, int n, int flags)
{
    if (n > 1) {
        struct msghdr m = { .msg_iov = iov, .msg_iovlen = (size_t)n };

        return (ssize_t)syscall(SYS_recvmsg, fd, &m, flags);
    }
    return (ssize_t)syscall(SYS_recvfrom, fd, iov->iov_base, iov->iov_len, flags, NULL, NULL);
}

ssize_t conn_read(struct conn *c, struct iovec *lead, int n_lead, int flags, bool *ret_short,
                  int *ret_errno)
{
    struct iovec iov[3];
    size_t lead_len = 0, asked;
    ssize_t n;

    if (c->cap > CONN_BUFFER)
        shrink(c);
    if (c->end == c->cap && !conn_reserve(c, conn_buffered(c) + 1)) {
        *ret_errno = ENOMEM;
        return -1;
    }
    for (int i = 0; i < n_lead; i++) {
        iov[i] = lead[i];
        lead_len += lead[i].iov_len;
    }
    iov[n_lead] = (struct iovec){ c->buf + c->end, c->cap - c->end };
    asked = lead_len + iov[n_lead].iov_len;
    do
        n = read_socket(c->source.fd, iov, n_lead + 1, flags);
    while (n < 0 && errno == EINTR);
    if (n < 0) {
        *ret_errno = errno;
        return *ret_errno == EAGAIN || *ret_errno == EWOULDBLOCK ? 0 : -1;
    }
    *ret_errno = 0;
    if (n == 0)
        return -1;
    *ret_short = (size_t)n < asked;
    if ((size_t)n > lead_len)
        c->end += (size_t)n - lead_len;
    return n;
}

enum frame conn_frame(struct conn *c, uint64_t max_len, const unsigned char **ret_body,
                      size_t *ret_len)
{
    uint64_t len;

    if (conn_buffered(c) < FRAME_HEAD)
        return conn_reserve(c, FRAME_HEAD) ? FRAME_PARTIAL : FRAME_NO_MEMORY;
    len = get_le64(c->buf + c->pos);
    *ret_len = (size_t)len;
    if (len > max_len)
        return FRAME_TOO_BIG;
    if (conn_buffered(c) - FRAME_HEAD < len)
        return conn_reserve(c, FRAME_HEAD + (size_t)len) ? FRAME_PARTIAL : FRAME_NO_MEMORY;
    *ret_body = c->buf + c->pos + FRAME_HEAD;
    return FRAME_WHOLE;
}

int conn_send_small(struct conn *c, const void *data, size_t len)
{
    ssize_t n;

    do
        n = send(c->source.fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno;
    return (size_t)n == len ? 0 : EMSGSIZE;
}
