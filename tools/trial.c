/* SPDX-License-Identifier: Apache-2.0 */
#include "entry.h"

#include "core/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_S = 10, CAME_BACK = 42 };

/* Drops the output of the plugin, which would appear again when it is really used. */
static void trial_child(trial_fn *fn, void *arg, int fd)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    FILE *to = fdopen(fd, "w");

    if (null >= 0) {
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
    }
    if (to)
        fn(arg, to);
    if (to)
        fflush(to);
    _exit(CAME_BACK);
}

/* Reads until the child has ended, which holds the other end of the pipe; returns false if it does
 * not in time. */
static bool trial_read(int fd, struct trial_output *to)
{
    const uint64_t until_ns = clock_deadline_ms((uint64_t)LIMIT_S * 1000);
    char dropped[4096];
    ssize_t n = 1;

    while (n != 0) {
        const bool keeps = to->text && to->len < TRIAL_MAX;
        struct pollfd p = { .fd = fd, .events = POLLIN };

        if (clock_passed(until_ns) || poll(&p, 1, clock_left_ms(until_ns)) == 0)
            return false;
        n = read(fd, keeps ? to->text + to->len : dropped,
                 keeps ? TRIAL_MAX - to->len : sizeof dropped);
        if (n < 0 && errno != EINTR)
            return true;
        to->len += keeps && n > 0 ? (size_t)n : 0;
    }
    return true;
}

bool trial_run(trial_fn *fn, void *arg, struct trial_output *ret, char *text, size_t size)
{
    struct trial_output dropped = { NULL, 0 }, *to = ret ? ret : &dropped;
    int fd[2], status = 0;
    bool ended;
    pid_t pid;

    *to = (struct trial_output){ ret ? calloc(TRIAL_MAX + 1, 1) : NULL, 0 };
    if (pipe2(fd, O_CLOEXEC))
        return true; /* the real call reports the error */
    fflush(NULL);
    pid = fork();
    if (pid == 0)
        trial_child(fn, arg, fd[1]);
    close(fd[1]);
    ended = pid < 0 || trial_read(fd[0], to);
    close(fd[0]);
    if (!ended)
        kill(pid, SIGKILL);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid < 0 || (ended && WIFEXITED(status) && WEXITSTATUS(status) == CAME_BACK))
        return true;
    if (!ended)
        snprintf(text, size, "does not return within %d s", LIMIT_S);
    else if (WIFSIGNALED(status))
        snprintf(text, size, "is killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(text, size, "ends the process with exit status %d", WEXITSTATUS(status));
    return false;
}
