/* SPDX-License-Identifier: Apache-2.0 */
#include "trial.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_S = 10, CAME_BACK = 42 };

/* Drops the output of the plugin, which would appear again when it is really used. */
static void trial_child(trial_fn *fn, void *arg)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (null >= 0) {
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
    }
    fn(arg);
    _exit(CAME_BACK);
}

/* Returns true if the child has ended: it holds the other end of the pipe. */
static bool trial_wait(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    int n;

    do
        n = poll(&p, 1, LIMIT_S * 1000);
    while (n < 0 && errno == EINTR);
    return n != 0;
}

bool trial_run(trial_fn *fn, void *arg, char *text, size_t size)
{
    int fd[2], status = 0;
    bool ended;
    pid_t pid;

    if (pipe2(fd, O_CLOEXEC))
        return true; /* the real call reports the error */
    fflush(NULL);
    pid = fork();
    if (pid == 0)
        trial_child(fn, arg);
    close(fd[1]);
    ended = pid < 0 || trial_wait(fd[0]);
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
