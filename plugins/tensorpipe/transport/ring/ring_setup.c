/* SPDX-License-Identifier: Apache-2.0 */
/* ring_setup.c - the memory of a pair of rings.
 *
 * Memory from the other process is checked before it is mapped: memory that could shrink
 * would end in SIGBUS, and a file of a file system in user space could block each access. */
#include "transport/ring/ring.h"
#include "transport/transport_local.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MAGIC "tenring2" /* another layout gets another one, and another domain */
#define WORDS_LEN 4096   /* the words of both rings, before their data */
#define TMPFS 0x01021994 /* not hugetlbfs, whose pages may be lacking when they are touched */

struct setup {
    char magic[8];
    uint64_t to_listener, to_caller; /* sizes of the rings, little endian */
};

static size_t total_of(const struct setup *s)
{
    return WORDS_LEN + (size_t)le64toh(s->to_listener) + (size_t)le64toh(s->to_caller);
}

/* Maps the memory; the ring to the listener is the first. */
static int setup_map(struct ring_end *e, const struct setup *s, int fd, bool caller)
{
    size_t len = total_of(s);
    uint64_t first = le64toh(s->to_listener), second = le64toh(s->to_caller);
    char *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
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
    return 0;
}

size_t ring_setup_bytes(uint64_t size)
{
    return WORDS_LEN + 2 * (size_t)size;
}

int ring_setup_call(int sock, uint64_t size, struct ring_end *ret)
{
    struct setup s = { .to_listener = htole64(size), .to_caller = htole64(size) };
    struct ring_end end = { .memory = NULL };
    int e, fd;

    memcpy(s.magic, MAGIC, sizeof s.magic);
    fd = local_memory_new("tenrec ring", total_of(&s));
    if (fd < 0)
        return errno;
    e = setup_map(&end, &s, fd, true);
    if (!e) {
        e = fd_message_send(sock, &s, sizeof s, &fd, 1);
        if (e)
            ring_end_close(&end);
        else
            *ret = end;
    }
    close(fd);
    return e;
}

static const struct {
    int e;
    const char *why;
} answers[] = {
    [RING_TAKEN] = { 0, NULL },
    [RING_NO_DESCRIPTOR] = { EMFILE, "the peer has no file descriptor left" },
    [RING_NO_MEMORY] = { ENOMEM, "the peer has no memory for it" },
    [RING_MALFORMED] = { EPROTO, "the peer refused its memory" },
};

int ring_setup_answered(int sock, const char **ret_why)
{
    unsigned char answer;
    ssize_t n = local_receive(sock, &answer, 1);

    *ret_why = "the peer closed the connection";
    if (n <= 0)
        return n < 0 ? (int)-n : ECONNRESET;
    if (answer > RING_MALFORMED)
        answer = RING_MALFORMED;
    *ret_why = answers[answer].why;
    return answers[answer].e;
}

/* The seals are checked first: a file without them may be of a file system in user space, which can
 * block any other query. */
static const char *setup_check(const struct setup *s, int fd)
{
    struct stat st;
    struct statfs fs;
    int seals;

    if (memcmp(s->magic, MAGIC, sizeof s->magic) != 0)
        return "it does not begin with " MAGIC;
    if (!ring_size_valid(le64toh(s->to_listener)) || !ring_size_valid(le64toh(s->to_caller)))
        return "the size of a ring is out of range";
    seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_WRITE)) != F_SEAL_SHRINK)
        return "the memory is not sealed against shrinking";
    if (fstat(fd, &st) < 0 || (uint64_t)st.st_size != total_of(s))
        return "the memory has not the size of the rings";
    if (fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS)
        return "the memory is of an unexpected kind";
    return NULL;
}

/* Reads the message. Returns 0 with the descriptor, or an errno. */
static int receive_setup(int sock, struct setup *s, int *ret_fd, const char **ret_why)
{
    unsigned fds;
    bool is_cut;
    ssize_t n = fd_message_receive(sock, s, sizeof *s, ret_fd, 1, &fds, &is_cut);

    *ret_why = "closed before its hello";
    if (n <= 0)
        return n < 0 ? (int)-n : ECONNRESET;
    *ret_why = "no file descriptor is left for its memory; raise ulimit -n";
    if (!fds && is_cut)
        return EMFILE;
    *ret_why = "expected one message of 24 bytes with 1 descriptor";
    if (fds != 1 || is_cut || n != sizeof *s)
        return EPROTO;
    *ret_why = setup_check(s, *ret_fd);
    return *ret_why ? EPROTO : 0;
}

/* Returns 0 or an errno. A socket without room for one byte is not that of an honest peer. */
static int send_answer(int sock, int e)
{
    const unsigned char answer = e == 0                       ? RING_TAKEN
                                 : e == EMFILE || e == ENFILE ? RING_NO_DESCRIPTOR
                                 : e == ENOMEM                ? RING_NO_MEMORY
                                                              : RING_MALFORMED;
    ssize_t n = local_send(sock, &answer, 1);

    return n < 0 ? (int)-n : 0;
}

int ring_setup_take(int sock, struct ring_end *ret, const char **ret_why)
{
    struct ring_end end = { .memory = NULL };
    struct setup s;
    int answered, fd = -1, e = receive_setup(sock, &s, &fd, ret_why);

    if (e == EAGAIN)
        return e;
    if (!e) {
        e = setup_map(&end, &s, fd, false);
        *ret_why = "cannot map its memory";
    }
    if (fd >= 0)
        close(fd);
    answered = send_answer(sock, e);
    if (e)
        return e;
    if (answered) {
        ring_end_close(&end);
        *ret_why = "cannot answer";
        return answered;
    }
    *ret = end;
    return 0;
}

void ring_end_close(struct ring_end *e)
{
    if (!e->memory)
        return;
    munmap(e->memory, e->len);
    *e = (struct ring_end){ .memory = NULL };
}
