/* SPDX-License-Identifier: Apache-2.0 */
/* workers_out.c - passes the output of the workers to stdout and stderr. */
#include "run/workers_run.h"

#include "core/base/clock.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Ends the run: stdout has no reader any more, or its disk is full. The first is
 * usual (head) and reported by the exit status only. */
static void cannot_write(struct run *r, int why)
{
    r->deaf = true;
    r->failed = true;
    r->status = why == EPIPE ? 128 + SIGPIPE : TOOL_FAILED;
    if (why != EPIPE)
        run_say(r, "cannot write to stdout: %s; terminating the workers", strerror(why));
    run_end_all(r, SIGTERM);
}

/* A reader of stdout that stopped reading must not block the end of the run: signals
 * and deadlines are handled here too, and the rest of the output is dropped once the
 * workers were killed. A pipe that is writable accepts PIPE_BUF bytes without
 * blocking. */
void run_write(void *arg, int fd, const char *data, size_t n)
{
    struct run *r = arg;

    while (n && !(fd == 1 && r->deaf)) {
        struct pollfd p[1 + RUN_OWN_MAX] = { { fd, POLLOUT, 0 } };
        const nfds_t many = 1 + (nfds_t)run_watch_own(r, p + 1);
        ssize_t k;

        /* Killed workers need no more signals or deadlines. */
        if (poll(p, many, r->killed ? 0 : clock_left_ms(r->kill_at)) < 0 && errno != EINTR)
            return;
        if (!p[0].revents) {
            if (r->killed)
                return;
            run_serve_own(r);
            run_kill_late(r);
            continue;
        }
        k = write(fd, data, n < PIPE_BUF ? n : PIPE_BUF);
        if (k < 0 && errno != EINTR && errno != EAGAIN) {
            if (fd == 1)
                cannot_write(r, errno);
            return;
        }
        if (k > 0) {
            data += k;
            n -= (size_t)k;
        }
    }
}

/* ---- streams of the workers ------------------------------------------------- */

void worker_close_stream(struct worker *w, int which)
{
    close(w->fd[which]);
    w->fd[which] = -1;
    stream_finish(&w->stream[which]);
}

void worker_read_stream(struct worker *w, int which)
{
    char buf[16384];
    ssize_t k = read(w->fd[which], buf, sizeof buf);

    if (k > 0)
        stream_feed(&w->stream[which], buf, (size_t)k);
    else if (k == 0 || (errno != EINTR && errno != EAGAIN)) /* EIO: end of a terminal */
        worker_close_stream(w, which);
}

void worker_hear_out(struct worker *w)
{
    for (int k = 1; k <= 2; k++) {
        struct pollfd p = { w->fd[k], POLLIN, 0 };

        while (w->fd[k] >= 0 && poll(&p, 1, 0) > 0)
            worker_read_stream(w, k);
        if (w->fd[k] >= 0)
            worker_close_stream(w, k);
    }
}
