/* SPDX-License-Identifier: Apache-2.0 */
/* socket.c - a stream socket, over TCP on loopback or of the Unix domain. Busy: both
 * sides spin on a non-blocking socket; sleep: the socket blocks. With many messages
 * in flight each side writes and reads all available ones at once. */
#include "raw.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct sockets {
    int fd[2]; /* [0] the caller's */
    char *data;
};

/* A congestion control that paces, as bbr does, is a setting of the system and no limit
 * of the machine. Set before the connect: pacing stays on once started. */
static void unpaced(int fd)
{
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", strlen("reno"));
}

void raw_tcp_pair(int fd[2])
{
    struct sockaddr_in a = { .sin_family = AF_INET };
    socklen_t n = sizeof a;
    int one = 1;
    int l = socket(AF_INET, SOCK_STREAM, 0);

    unpaced(l);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (l < 0 || bind(l, (struct sockaddr *)&a, n) || listen(l, 1) ||
        getsockname(l, (struct sockaddr *)&a, &n))
        pair_die("cannot listen on loopback");
    fd[0] = socket(AF_INET, SOCK_STREAM, 0);
    unpaced(fd[0]);
    if (fd[0] < 0 || connect(fd[0], (struct sockaddr *)&a, n))
        pair_die("cannot connect to loopback");
    fd[1] = accept(l, NULL, NULL);
    if (fd[1] < 0)
        pair_die("accept");
    close(l);
    for (int i = 0; i < 2; i++)
        setsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void prepare(struct trial *t)
{
    struct sockets *s = calloc(1, sizeof *s);

    if (!s)
        pair_die("calloc");
    if (!strcmp(t->via, "tcp"))
        raw_tcp_pair(s->fd);
    else if (socketpair(AF_UNIX, SOCK_STREAM, 0, s->fd))
        pair_die("socketpair");
    for (int i = 0; t->busy && i < 2; i++)
        fcntl(s->fd[i], F_SETFL, O_NONBLOCK);
    t->state = s;
}

/* Returns 0 if no bytes are available, -1 at the end. */
static ssize_t read_some(int fd, void *p, size_t n)
{
    ssize_t k = read(fd, p, n);

    if (k < 0 && errno != EAGAIN && errno != EINTR)
        pair_die("read");
    return k < 0 ? 0 : k == 0 ? -1 : k;
}

static int serve_many(int fd)
{
    char b[2 * PAIR_INFLIGHT * PAIR_SMALL];
    size_t have = 0, whole;
    ssize_t k;

    while ((k = read_some(fd, b + have, sizeof b - have)) >= 0) {
        have += (size_t)k;
        whole = have - have % PAIR_SMALL;
        pair_write(fd, b, whole);
        have -= whole;
        memmove(b, b + whole, have);
    }
    return 0;
}

static int serve(struct trial *t)
{
    struct sockets *s = t->state;
    char answer[PAIR_SMALL] = { 1 };
    char *data = pair_memory(t->size, false);
    bool first = raw_is_large(t);

    close(s->fd[0]);
    if (!strcmp(t->mode, "rate"))
        return serve_many(s->fd[1]);
    while (pair_read(s->fd[1], data, t->size)) {
        if (first)
            pair_expect(t->peer, data, t->size);
        first = false;
        pair_write(s->fd[1], answer, sizeof answer);
    }
    return 0;
}

static void start(struct trial *t)
{
    struct sockets *s = t->state;

    close(s->fd[1]);
    s->data = pair_memory(t->size, false);
    pair_fill(s->data, t->size);
}

static void call(struct trial *t)
{
    struct sockets *s = t->state;
    char answer[PAIR_SMALL];

    pair_write(s->fd[0], s->data, t->size);
    if (!pair_read(s->fd[0], answer, sizeof answer))
        pair_die("the callee ended");
}

static void flood(struct trial *t, size_t calls)
{
    char out[PAIR_INFLIGHT * PAIR_SMALL] = { 1 }, in[2 * PAIR_INFLIGHT * PAIR_SMALL];
    int fd = ((struct sockets *)t->state)->fd[0];
    size_t sent = 0, got = 0, bytes = 0;

    while (got < calls) {
        size_t room = PAIR_INFLIGHT - (sent - got);
        ssize_t k;

        if (room > calls - sent)
            room = calls - sent;
        pair_write(fd, out, room * PAIR_SMALL);
        sent += room;
        k = read_some(fd, in, sizeof in);
        if (k < 0)
            pair_die("the callee ended");
        bytes += (size_t)k;
        got = bytes / PAIR_SMALL;
    }
}

static void end(struct trial *t)
{
    close(((struct sockets *)t->state)->fd[0]);
}

#define SOCKET_WAY(name)                                                                           \
    {                                                                                              \
        .peer = "raw", .via = name, .modes = "latency rate bandwidth", .progress = "busy sleep",   \
        .prepare = prepare, .serve = serve, .open = start, .call = call, .flood = flood,           \
        .close = end                                                                               \
    }

const struct way raw_tcp = SOCKET_WAY("tcp");
const struct way raw_unix = SOCKET_WAY("unix");
