/* SPDX-License-Identifier: Apache-2.0 */
#include "group/store/host_copy.h"

#include "core/base/clock.h"
#include "core/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* A program may have closed the inherited descriptor and opened another file at its number. */
#define COPY_MARK "TNRHOST1"
#define RETRY_FIRST_US 200
#define RETRY_MOST_US 20000
#define LOCKED_MS 5000 /* the process that reads the store may be stopped */

struct copy_head {
    char mark[8];
    uint64_t len; /* 0: no value */
};

/* Opens the file again, as a lock belongs to an open file, and all heirs of it share that lock.
 * Returns -1 if there is none. */
static int copy_open(void)
{
    const char *text = secure_getenv(HOST_COPY_VARIABLE);
    char path[40], *end;
    long fd;

    if (!text || !*text)
        return -1;
    errno = 0;
    fd = strtol(text, &end, 10);
    if (*end || errno || fd < 0 || fd > INT32_MAX || fcntl((int)fd, F_GET_SEALS) < 0)
        return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%ld", fd);
    return open(path, O_RDWR | O_CLOEXEC);
}

static bool copy_read_head(int fd, struct copy_head *ret)
{
    return pread(fd, ret, sizeof *ret, 0) == (ssize_t)sizeof *ret &&
           memcmp(ret->mark, COPY_MARK, sizeof ret->mark) == 0;
}

/* Returns true if the file has a value that fits. Locked. */
static bool copy_get(int fd, const struct host_copy *h, struct store_value *ret)
{
    struct copy_head head;
    struct stat found;
    char *data;

    if (!copy_read_head(fd, &head) || head.len == 0 || head.len > TENREC_STORE_MAX_VALUE ||
        fstat(fd, &found) < 0 || (uint64_t)found.st_size < sizeof head + head.len ||
        !(data = malloc(head.len + 1)))
        return false;
    data[head.len] = '\0';
    *ret = (struct store_value){ data, head.len };
    if (pread(fd, data, head.len, sizeof head) == (ssize_t)head.len && h->fits(h->arg, ret))
        return true;
    free(data);
    *ret = (struct store_value){ 0 };
    return false;
}

/* A process that dies meanwhile leaves no value. Locked against all others. */
static void copy_put(int fd, const struct store_value *value)
{
    struct copy_head head;

    if (!value->data || file_limit_check(sizeof head + value->len, NULL) != TENREC_OK ||
        !copy_read_head(fd, &head))
        return;
    head.len = 0;
    if (pwrite(fd, &head, sizeof head, 0) != (ssize_t)sizeof head ||
        pwrite(fd, value->data, value->len, sizeof head) != (ssize_t)value->len)
        return;
    head.len = value->len;
    (void)!pwrite(fd, &head, sizeof head, 0);
}

/* Tries to get the value from the copy, or to make the copy. Returns false if another process is
 * about to make it. */
static bool copy_try(int fd, const struct host_copy *h, uint64_t deadline_ns,
                     struct store_value *ret, tenrec_status *ret_st, tenrec_error *err)
{
    *ret_st = TENREC_OK;
    if (flock(fd, LOCK_SH | LOCK_NB) == 0 && copy_get(fd, h, ret))
        return true;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        flock(fd, LOCK_UN);
        return false;
    }
    if (copy_get(fd, h, ret))
        return true;
    *ret_st = h->fetch(h->arg, deadline_ns, ret, err);
    if (*ret_st == TENREC_OK)
        copy_put(fd, ret);
    return true;
}

tenrec_status host_copy_read(const struct host_copy *h, uint64_t deadline_ns,
                             struct store_value *ret, tenrec_error *err)
{
    const uint64_t locked_ns = clock_deadline_ms(LOCKED_MS);
    const uint64_t until_ns = locked_ns < deadline_ns ? locked_ns : deadline_ns;
    struct backoff pause = { RETRY_FIRST_US, RETRY_MOST_US };
    const int fd = copy_open();
    tenrec_status st;

    while (fd >= 0) {
        if (copy_try(fd, h, deadline_ns, ret, &st, err)) {
            close(fd);
            return st;
        }
        if (!backoff_take(&pause, until_ns))
            break;
    }
    if (fd >= 0)
        close(fd);
    return h->fetch(h->arg, deadline_ns, ret, err);
}

tenrec_status host_copy_new(int *ret_fd, tenrec_error *err)
{
    const struct copy_head head = { COPY_MARK, 0 };
    int fd;
    tenrec_status st = memory_file_new("tenrec-host", sizeof head, 0, &fd, err);

    if (st != TENREC_OK)
        return st;
    if (pwrite(fd, &head, sizeof head, 0) != (ssize_t)sizeof head) {
        st = tenrec_fail_errno(err, TENREC_EOS, errno, "cannot write a memory file");
        close(fd);
        return st;
    }
    *ret_fd = fd;
    return TENREC_OK;
}
