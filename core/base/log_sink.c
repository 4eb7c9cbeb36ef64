/* SPDX-License-Identifier: Apache-2.0 */
/* log_sink.c - one write per line, and only when it cannot block. */
#include "core/base/log.h"

#include "core/base/file.h"

#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_ulong lost; /* lines, since a line was last written */

/* Opens the same pipe or terminal once more, non-blocking: another process may fill it
 * between poll and write. The caller closes it at once, so that the reader sees the end
 * when the program closes its own. Returns -1 without /proc. */
static int sink_reopen(int fd)
{
    char path[32];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* Writes to a pipe, a FIFO or a terminal. */
static bool sink_write_stream(int fd, const char *line, size_t len)
{
    struct pollfd p = { .fd = fd, .events = POLLOUT };
    ssize_t n;
    int own;

    /* POLLERR: the reader is gone, and a write would raise SIGPIPE. */
    if (poll(&p, 1, 0) != 1 || (p.revents & POLLOUT) == 0 || (p.revents & POLLERR))
        return false;
    own = sink_reopen(fd);
    n = write(own >= 0 ? own : fd, line, len);
    if (own >= 0)
        close(own);
    return n > 0;
}

static bool sink_write_file(int fd, const char *line, size_t len)
{
    struct file_limit held;
    bool written;

    file_limit_hold(&held);
    written = write(fd, line, len) > 0;
    file_limit_release(&held);
    return written;
}

static bool sink_write_any(int fd, const char *line, size_t len)
{
    struct stat st;

    if (fstat(fd, &st))
        return false;
    if (S_ISSOCK(st.st_mode))
        return send(fd, line, len, MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
    if (S_ISREG(st.st_mode))
        return sink_write_file(fd, line, len);
    return sink_write_stream(fd, line, len);
}

void log_sink_write(int fd, const char *line, size_t len)
{
    unsigned long n = atomic_exchange(&lost, 0);
    char note[96];

    if (n > 0) {
        int used =
            snprintf(note, sizeof note,
                     "tenrec: warn: log: %lu lines were lost: their reader was too slow\n", n);
        if (!sink_write_any(fd, note, (size_t)used)) {
            atomic_fetch_add(&lost, n + 1);
            return;
        }
    }
    if (!sink_write_any(fd, line, len))
        atomic_fetch_add(&lost, 1);
}
