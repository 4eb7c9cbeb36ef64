/* SPDX-License-Identifier: Apache-2.0 */
/* handover.c - hands memory over without a copy: sends its descriptor over a Unix
 * socket; the other process maps it, reads one byte, unmaps it and answers. */
#include "raw.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

union control { /* aligned for the header */
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr head;
};

struct handover {
    int fd[2]; /* [0] the caller's socket */
    int memory;
};

static void prepare(struct trial *t)
{
    struct handover *h = calloc(1, sizeof *h);

    if (!h || socketpair(AF_UNIX, SOCK_STREAM, 0, h->fd))
        pair_die("socketpair");
    t->state = h;
}

static int receive_fd(int from)
{
    union control c;
    char byte;
    struct iovec v = { &byte, 1 };
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c
    };
    int fd;

    if (recvmsg(from, &m, 0) <= 0 || !CMSG_FIRSTHDR(&m))
        return -1;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
    return fd;
}

static int serve(struct trial *t)
{
    struct handover *h = t->state;
    char answer[PAIR_SMALL] = { 1 };
    int fd;

    close(h->fd[0]);
    for (bool first = true; (fd = receive_fd(h->fd[1])) >= 0; first = false) {
        unsigned char *p = mmap(NULL, t->size, PROT_READ, MAP_SHARED, fd, 0);

        if (p == MAP_FAILED)
            pair_die("mmap");
        if (first)
            pair_expect(t->peer, p, t->size);
        answer[0] = (char)*(volatile unsigned char *)p;
        munmap(p, t->size);
        close(fd);
        pair_write(h->fd[1], answer, sizeof answer);
    }
    return 0;
}

static void start(struct trial *t)
{
    struct handover *h = t->state;
    void *p;

    close(h->fd[1]);
    h->memory = memfd_create("bench", MFD_CLOEXEC);
    if (h->memory < 0 || ftruncate(h->memory, (off_t)t->size))
        pair_die("memfd_create");
    p = mmap(NULL, t->size, PROT_READ | PROT_WRITE, MAP_SHARED, h->memory, 0);
    if (p == MAP_FAILED)
        pair_die("mmap");
    pair_fill(p, t->size);
    munmap(p, t->size);
}

static void call(struct trial *t)
{
    struct handover *h = t->state;
    union control c = { .bytes = { 0 } };
    char byte = 1, answer[PAIR_SMALL];
    struct iovec v = { &byte, 1 };
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c
    };

    c.head.cmsg_level = SOL_SOCKET;
    c.head.cmsg_type = SCM_RIGHTS;
    c.head.cmsg_len = CMSG_LEN(sizeof h->memory);
    memcpy(CMSG_DATA(&c.head), &h->memory, sizeof h->memory);
    if (sendmsg(h->fd[0], &m, 0) != 1 || !pair_read(h->fd[0], answer, sizeof answer))
        pair_die("the callee ended");
}

static void end(struct trial *t)
{
    close(((struct handover *)t->state)->fd[0]);
}

const struct way raw_memfd = { .peer = "raw",
                               .via = "memfd",
                               .modes = "handover",
                               .progress = "sleep",
                               .prepare = prepare,
                               .serve = serve,
                               .open = start,
                               .call = call,
                               .close = end };
