/* ring_setup.c - the memory and descriptors of a pair of rings.
 *
 * What comes from the other process is looked at before it is used: memory that
 * could shrink under us would end in SIGBUS, a bell that is a pipe in SIGPIPE or
 * in a write that never returns. */
#include "transport/ring_setup.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MAGIC "tenrring" /* another layout gets another one, and another domain */
#define WORDS_LEN 4096   /* the words of both rings, before their data */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define TMPFS 0x01021994 /* not hugetlbfs, whose pages may be lacking when they are touched */

enum { FD_MEMORY, FD_LISTENER_BELL, FD_CALLER_BELL, FDS };

struct setup {
    char magic[8];
    uint64_t to_listener, to_caller; /* sizes of the rings, little endian */
};

/* Room for one more than there should be, to notice it. */
union control {
    struct cmsghdr align;
    char buf[CMSG_SPACE((FDS + 1) * sizeof(int))];
};

static void close_all(int *fd)
{
    for (int i = 0; i < FDS; i++) {
        if (fd[i] >= 0)
            close(fd[i]);
        fd[i] = -1;
    }
}

static size_t total_of(const struct setup *s)
{
    return WORDS_LEN + (size_t)le64toh(s->to_listener) + (size_t)le64toh(s->to_caller);
}

/* Maps the memory; the ring to the listener comes first. */
static int map(struct ring_end *e, const struct setup *s, const int *fd, bool caller)
{
    size_t len = total_of(s);
    uint64_t first = le64toh(s->to_listener), second = le64toh(s->to_caller);
    char *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd[FD_MEMORY], 0);
    struct ring_words *words;
    unsigned char *data;

    if (at == MAP_FAILED)
        return errno;
    /* A child of fork has no part in it. */
    madvise(at, len, MADV_DONTFORK);
    words = (struct ring_words *)(void *)at;
    data = (unsigned char *)at + WORDS_LEN;
    *e = (struct ring_end){ .memory = at, .len = len };
    if (caller) {
        e->out = (struct ring_writer){ .words = &words[0], .data = data, .size = first };
        e->in = (struct ring_reader){ .words = &words[1], .data = data + first, .size = second };
    } else {
        e->in = (struct ring_reader){ .words = &words[0], .data = data, .size = first };
        e->out = (struct ring_writer){ .words = &words[1], .data = data + first, .size = second };
    }
    e->bell = fd[caller ? FD_CALLER_BELL : FD_LISTENER_BELL];
    e->peer_bell = fd[caller ? FD_LISTENER_BELL : FD_CALLER_BELL];
    return 0;
}

static int make_memory(size_t len)
{
    int e, fd = memfd_create("tenrec ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return -1;
    if (ftruncate(fd, (off_t)len) == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
        return fd;
    e = errno;
    close(fd);
    errno = e;
    return -1;
}

static int send_setup(int sock, const struct setup *s, const int *fd)
{
    union control control = { .buf = { 0 } };
    struct iovec iov = { (void *)(uintptr_t)s, sizeof *s };
    struct msghdr m = { .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control.buf,
                        .msg_controllen = CMSG_SPACE(FDS * sizeof(int)) };
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    ssize_t n;

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(FDS * sizeof(int));
    memcpy(CMSG_DATA(c), fd, FDS * sizeof(int));
    do
        n = sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno;
    return n == sizeof *s ? 0 : EMSGSIZE;
}

int ring_setup_call(int sock, uint64_t size, struct ring_end *ret)
{
    struct setup s = { .to_listener = htole64(size), .to_caller = htole64(size) };
    int fd[FDS] = { -1, -1, -1 }, e = 0;

    memcpy(s.magic, MAGIC, sizeof s.magic);
    fd[FD_MEMORY] = make_memory(total_of(&s));
    fd[FD_LISTENER_BELL] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    fd[FD_CALLER_BELL] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd[FD_MEMORY] < 0 || fd[FD_LISTENER_BELL] < 0 || fd[FD_CALLER_BELL] < 0)
        e = errno;
    if (!e)
        e = send_setup(sock, &s, fd);
    if (!e)
        e = map(ret, &s, fd, true);
    if (e) {
        close_all(fd);
        return e;
    }
    close(fd[FD_MEMORY]);
    return 0;
}

/* Takes the descriptors of the message; closes those that are too many. */
static bool take_fds(struct msghdr *m, int *fd)
{
    int got = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= c->cmsg_len; i++) {
            int one;

            memcpy(&one, CMSG_DATA(c) + i * sizeof(int), sizeof one);
            if (got < FDS)
                fd[got] = one;
            else
                close(one);
            got++;
        }
    }
    return got == FDS && !(m->msg_flags & MSG_CTRUNC);
}

static bool is_eventfd(int fd)
{
    char path[40], what[32];
    ssize_t n;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    n = readlink(path, what, sizeof what - 1);
    what[n > 0 ? n : 0] = '\0';
    /* Set by who made it; but that may be somebody else's program. */
    return strcmp(what, "anon_inode:[eventfd]") == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

static const char *check(const struct setup *s, const int *fd)
{
    struct stat st;
    struct statfs fs;
    int seals;

    if (memcmp(s->magic, MAGIC, sizeof s->magic) != 0)
        return "it does not begin with " MAGIC;
    if (!ring_size_valid(le64toh(s->to_listener)) || !ring_size_valid(le64toh(s->to_caller)))
        return "the size of a ring is out of range";
    seals = fcntl(fd[FD_MEMORY], F_GET_SEALS);
    if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_WRITE)) != F_SEAL_SHRINK)
        return "the memory is not sealed against shrinking";
    if (fstat(fd[FD_MEMORY], &st) < 0 || (uint64_t)st.st_size != total_of(s))
        return "the memory has not the size of the rings";
    if (fstatfs(fd[FD_MEMORY], &fs) < 0 || fs.f_type != TMPFS)
        return "the memory is of an unexpected kind";
    if (!is_eventfd(fd[FD_LISTENER_BELL]) || !is_eventfd(fd[FD_CALLER_BELL]))
        return "a bell is no eventfd";
    return NULL;
}

int ring_setup_answer(int sock, struct ring_end *ret, const char **ret_why)
{
    struct setup s;
    union control control;
    struct iovec iov = { &s, sizeof s };
    struct msghdr m = { .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control.buf,
                        .msg_controllen = sizeof control.buf };
    int fd[FDS] = { -1, -1, -1 }, e;
    bool complete;
    ssize_t n;

    do
        n = recvmsg(sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    *ret_why = "closed before it said what it is";
    if (n <= 0)
        return n < 0 ? errno : ECONNRESET;
    complete = take_fds(&m, fd) && n == sizeof s;
    *ret_why = complete ? check(&s, fd) : "expected one message of 24 bytes with 3 descriptors";
    if (*ret_why) {
        close_all(fd);
        return EPROTO;
    }
    e = map(ret, &s, fd, false);
    *ret_why = "cannot map its memory";
    if (e) {
        close_all(fd);
        return e;
    }
    close(fd[FD_MEMORY]);
    return 0;
}

void ring_end_close(struct ring_end *e)
{
    if (!e->memory)
        return;
    munmap(e->memory, e->len);
    close(e->bell);
    close(e->peer_bell);
    *e = (struct ring_end){ .bell = -1, .peer_bell = -1 };
}

bool ring_setup_viable(char why[], size_t cap)
{
    int fd = make_memory(WORDS_LEN);

    if (fd < 0) {
        snprintf(why, cap, "cannot make sealed shared memory: %s", strerror(errno));
        return false;
    }
    close(fd);
    if (access("/proc/self/fd", X_OK) < 0) {
        snprintf(why, cap, "/proc is not there: %s", strerror(errno));
        return false;
    }
    return true;
}
