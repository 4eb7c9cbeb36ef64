/* SPDX-License-Identifier: Apache-2.0 */
#include "group/store/host_copy.h"

#include "core/base/clock.h"
#include "core/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A program may have closed the inherited descriptor and opened another file at its number. */
#define COPY_MARK "TNRHOST2"
#define LOCKED_MS 5000 /* the process that reads the store may be stopped */
#define LOOK_MS 500    /* or has died: its lock is free then, but nothing wakes the others */
#define USED_MS 20     /* nor when those have done that use a copy which is too old for us */

struct copy_head {
    char mark[8];
    uint64_t len;          /* 0: no value */
    _Atomic uint32_t turn; /* a futex: of the readers of the store that have ended */
    uint32_t reserved;
};

struct copy {
    int fd;                 /* -1: none */
    struct copy_head *head; /* mapped; any process may write it at any time */
};

/* Opens the file again, as a lock belongs to an open file, and all heirs of it share that lock. A
 * file that may shrink is not mapped. */
static int copy_open_file(void)
{
    const char *text = secure_getenv(HOST_COPY_VARIABLE);
    char path[40], *end;
    struct stat found;
    int seals;
    long fd;

    if (!text || !*text)
        return -1;
    errno = 0;
    fd = strtol(text, &end, 10);
    if (*end || errno || fd < 0 || fd > INT32_MAX || (seals = fcntl((int)fd, F_GET_SEALS)) < 0 ||
        !(seals & F_SEAL_SHRINK) || fstat((int)fd, &found) < 0 ||
        found.st_size < (off_t)sizeof(struct copy_head))
        return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%ld", fd);
    return open(path, O_RDWR | O_CLOEXEC);
}

static bool copy_read_head(int fd, struct copy_head *ret)
{
    return pread(fd, ret, sizeof *ret, 0) == (ssize_t)sizeof *ret &&
           memcmp(ret->mark, COPY_MARK, sizeof ret->mark) == 0;
}

static bool copy_open(struct copy *ret)
{
    struct copy_head found;
    void *head = MAP_FAILED;

    *ret = (struct copy){ .fd = copy_open_file() };
    if (ret->fd < 0)
        return false;
    if (copy_read_head(ret->fd, &found))
        head = mmap(NULL, sizeof *ret->head, PROT_READ | PROT_WRITE, MAP_SHARED, ret->fd, 0);
    if (head == MAP_FAILED) {
        close(ret->fd);
        return false;
    }
    ret->head = head;
    return true;
}

/* After the file was unlocked. */
static void copy_wake_others(const struct copy *c)
{
    atomic_fetch_add(&c->head->turn, 1);
    syscall(SYS_futex, &c->head->turn, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* Waits until the process that had the lock after `turn` was read has done, for `ms` at most. */
static void copy_wait(const struct copy *c, uint32_t turn, unsigned ms, uint64_t until_ns)
{
    const uint64_t look_ns = clock_deadline_ms(ms);
    struct timespec left;

    syscall(SYS_futex, &c->head->turn, FUTEX_WAIT, turn,
            clock_left_ts(look_ns < until_ns ? look_ns : until_ns, &left), NULL, 0);
}

/* Returns true if the file has a value that fits. Locked. */
static bool copy_get(int fd, const struct host_copy *h, struct host_value *ret)
{
    struct copy_head head;
    struct stat found;
    char *all;

    if (!copy_read_head(fd, &head) || head.len == 0 || head.len > TENREC_STORE_MAX_VALUE ||
        fstat(fd, &found) < 0 || (uint64_t)found.st_size < sizeof head + head.len)
        return false;
    all = mmap(NULL, sizeof head + head.len, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (all == MAP_FAILED)
        return false;
    *ret = (struct host_value){ { all + sizeof head, head.len }, all, fd };
    if (h->fits(h->arg, &ret->value))
        return true;
    munmap(all, sizeof head + head.len);
    *ret = (struct host_value){ .mapped = NULL };
    return false;
}

static bool copy_write_length(int fd, uint64_t len)
{
    return pwrite(fd, &len, sizeof len, offsetof(struct copy_head, len)) == (ssize_t)sizeof len;
}

/* A process that dies meanwhile leaves no value. Locked against all others. */
static void copy_put(int fd, const struct store_value *value)
{
    struct copy_head head;

    if (value->data && file_limit_check(sizeof head + value->len, NULL) == TENREC_OK &&
        copy_read_head(fd, &head) && copy_write_length(fd, 0) &&
        pwrite(fd, value->data, value->len, sizeof head) == (ssize_t)value->len)
        copy_write_length(fd, value->len);
}

enum copy_outcome { COPY_GOT, COPY_FETCHED, COPY_LOCKED, COPY_USED };

/* Tries to get the value from the copy, which stays locked, or to make the copy. COPY_LOCKED:
 * another process is about to make it. COPY_USED: others use a copy that does not fit. */
static enum copy_outcome copy_try(int fd, const struct host_copy *h, uint64_t deadline_ns,
                                  struct host_value *ret, tenrec_status *ret_st, tenrec_error *err)
{
    const bool shared = flock(fd, LOCK_SH | LOCK_NB) == 0;

    *ret_st = TENREC_OK;
    if (shared && copy_get(fd, h, ret))
        return COPY_GOT;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        flock(fd, LOCK_UN);
        return shared ? COPY_USED : COPY_LOCKED;
    }
    if (!copy_get(fd, h, ret)) {
        *ret_st = h->fetch(h->arg, deadline_ns, &ret->value, err);
        if (*ret_st == TENREC_OK)
            copy_put(fd, &ret->value);
    }
    flock(fd, ret->mapped ? LOCK_SH : LOCK_UN);
    return COPY_FETCHED;
}

void host_value_drop(struct host_value *v)
{
    if (v->mapped) {
        munmap(v->mapped, sizeof(struct copy_head) + v->value.len);
        flock(v->fd, LOCK_UN); /* a child of a fork may have the descriptor, too */
        close(v->fd);
    } else {
        free(v->value.data);
    }
    *v = (struct host_value){ .mapped = NULL };
}

tenrec_status host_copy_read(const struct host_copy *h, uint64_t deadline_ns,
                             struct host_value *ret, tenrec_error *err)
{
    const uint64_t locked_ns = clock_deadline_ms(LOCKED_MS);
    const uint64_t until_ns = locked_ns < deadline_ns ? locked_ns : deadline_ns;
    enum copy_outcome outcome = COPY_LOCKED;
    struct copy c;
    tenrec_status st = TENREC_OK;

    *ret = (struct host_value){ .mapped = NULL };
    if (!copy_open(&c))
        return h->fetch(h->arg, deadline_ns, &ret->value, err);
    for (;;) {
        const uint32_t turn = atomic_load(&c.head->turn);
        outcome = copy_try(c.fd, h, deadline_ns, ret, &st, err);
        if (outcome <= COPY_FETCHED || clock_passed(until_ns))
            break;
        /* It may last much longer on a busy host. */
        copy_wait(&c, turn, outcome == COPY_USED ? USED_MS : LOOK_MS, until_ns);
    }
    if (outcome == COPY_FETCHED)
        copy_wake_others(&c);
    munmap(c.head, sizeof *c.head);
    if (!ret->mapped)
        close(c.fd); /* unlocked */
    return outcome <= COPY_FETCHED ? st : h->fetch(h->arg, deadline_ns, &ret->value, err);
}

tenrec_status host_copy_new(int *ret_fd, tenrec_error *err)
{
    const struct copy_head head = { .mark = COPY_MARK };
    int fd;
    tenrec_status st = memory_file_new("tenrec-host", sizeof head, 0, &fd, err);

    if (st != TENREC_OK)
        return st;
    if (pwrite(fd, &head, sizeof head, 0) != (ssize_t)sizeof head ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0) {
        st = tenrec_fail_errno(err, TENREC_EOS, errno, "cannot make a memory file");
        close(fd);
        return st;
    }
    *ret_fd = fd;
    return TENREC_OK;
}
